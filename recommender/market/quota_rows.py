"""Quotas of an account as rows of the plan space, and under the provider's own names."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType
from recommender.errors import refuse_all
from recommender.market.account_quotas import OVER, quota_names, quota_use
from recommender.market.offer_facts import Facts, Pool
from recommender.plan.limits import OTHERS, QuotaLimit
from recommender.plan.plan import Need
from recommender.text import unknown

Rented = tuple[InstanceType, str, str, int]  # market, region, and how many run at the same time


@dataclass(frozen=True, slots=True)
class QuotaRows:
    """The quotas of an account that may bind among some pools."""

    use: Floats  # of one machine of each pool; (rows, pools)
    amount: Floats  # (rows,)
    names: tuple[str, ...]  # "aws P on_demand us-east-1"; (rows,)


def quota_rows(facts: Facts, pools: Sequence[Pool], max_machines: int) -> QuotaRows:
    """How much one machine of each pool uses of each quota, and the quotas.

    All quotas of 0 become one row. Of quotas that count the same machines alike only the smallest
    can bind, and one that has room for `max_machines` of the largest cannot.
    """
    rows: dict[QuotaLimit | None, list[float]] = {}
    for column, pool in enumerate(pools):
        for limit, use in one_machine_more(facts, pool):
            rows.setdefault(limit if limit.amount else None, [0.0] * len(pools))[column] = use
    least: dict[tuple[float, ...], tuple[float, str]] = {}
    for binding, row in rows.items():
        found = (0.0, "of nothing") if binding is None else (binding.amount, _name(binding))
        least[tuple(row)] = min(found, least.get(tuple(row), found))
    kept = {row: most for row, most in least.items() if most[0] < max_machines * max(row)}
    return QuotaRows(
        use=np.array(list(kept), dtype=np.float64).reshape(len(kept), len(pools)),
        amount=np.array([amount for amount, _ in kept.values()], dtype=np.float64),
        names=tuple(name for _, name in kept.values()),
    )


def _name(limit: QuotaLimit) -> str:
    return f"{limit.provider} {limit.quota_family} {limit.market} {limit.region}".strip()


def quota_market(facts: Facts, pool: Pool) -> str:
    """The market whose quotas a pool's machines count on."""
    return facts.terms(pool.type, pool.market).quota_market or pool.market


def regions_of(facts: Facts, pool: Pool) -> tuple[str, ...]:
    """The distinct regions of a pool, in the order tried."""
    region = facts.catalog.offers.region
    return tuple(dict.fromkeys(region[row] for row in pool.rows))


def one_machine_more(facts: Facts, pool: Pool) -> tuple[tuple[QuotaLimit, float], ...]:
    """Every quota that applies to a pool, in any of its regions, and how much a machine uses."""
    if not facts.choice.quotas:
        return ()
    market, regions = quota_market(facts, pool), regions_of(facts, pool)
    found = (each for region in regions for each in facts.quotas.of(pool.type, market, region))
    limits = (each for each in dict.fromkeys(found) if math.isfinite(each.amount))
    uses = ((limit, quota_use(pool.type, limit.unit)) for limit in limits)
    return tuple((limit, use) for limit, use in uses if use > 0)


def max_machines_by_quota(facts: Facts, pool: Pool) -> float:
    """Number of machines of a pool that the quotas of all its regions allow."""
    market = quota_market(facts, pool)
    most = facts.quotas.most_machines
    return min(most(pool.type, market, each) for each in regions_of(facts, pool))


def refuse_unknown_quotas(limits: Sequence[QuotaLimit], catalog: Catalog) -> None:
    """Raise `UsageError` for quotas of families or regions that no machine has."""
    if limits:
        refuse_all(_unknown_words(limits, catalog))


def _unknown_words(limits: Sequence[QuotaLimit], catalog: Catalog) -> Iterator[str]:
    names, regions = _quota_names(catalog), _regions(catalog)
    families = {provider: {name.casefold() for name in each} for provider, each in names.items()}
    for limit in limits:
        if limit.provider not in names:
            continue
        if limit.quota_family.casefold() not in families[limit.provider]:
            yield _unknown(limit, "quota", limit.quota_family, names[limit.provider])
        known = regions.get(limit.provider, set())
        if limit.region and limit.region not in known:
            yield _unknown(limit, "region", limit.region, known)


def _quota_names(catalog: Catalog) -> dict[str, set[str]]:
    """What quotas may be called, by provider."""
    known: dict[str, set[str]] = {}
    types = catalog.instance_types
    for provider, name in types:
        own = provider == OWN  # has no other names: a hundred thousand machines are not made here
        names = (name,) if own else quota_names(types[provider, name], None)
        known.setdefault(provider, {OTHERS}).update(names)
    for q in catalog.quotas:
        known.setdefault(q.provider, {OTHERS}).add(q.name)
    for provider, over in OVER.items():
        known.setdefault(provider, {OTHERS}).update(over)
    return known


def _regions(catalog: Catalog) -> dict[str, set[str]]:
    """The regions of each provider: those with offers, and those that data are sent to."""
    known: dict[str, set[str]] = {}
    for provider, region in set(zip(catalog.offers.provider, catalog.offers.region, strict=True)):
        known.setdefault(provider, set()).add(region)
    for each in catalog.egress:
        known.setdefault(each.provider, set()).update((each.from_region, each.to_region))
    return known


def _unknown(limit: QuotaLimit, what: str, word: str, known: set[str]) -> str:
    place = f"{limit.place}: " if limit.place else ""
    return place + unknown(f"{limit.provider} {what}", word, sorted(known - {""}))


def users_quota(facts: Facts, t: InstanceType, market: str, region: str, unit: str) -> float | None:
    """The smallest of the user's quotas that apply to a machine, in a unit; None without one."""
    most = facts.quotas.of(t, market, region)
    uses = ((each.amount, quota_use(t, each.unit)) for each in most)
    return min((amount / use * quota_use(t, unit) for amount, use in uses if use), default=None)


def rented_of(facts: Facts, pools: Sequence[Pool], counts: Sequence[int]) -> list[Rented]:
    """The machines of a cluster, in each region of their failover lists."""
    return [
        (pool.type, quota_market(facts, pool), region, count)
        for pool, count in zip(pools, counts, strict=True)
        for region in regions_of(facts, pool)
    ]


def needs_of(
    facts: Facts, cluster: Iterable[Rented], fallback: Iterable[Rented]
) -> tuple[Need, ...]:
    """What the cluster needs, and what its fallback needs in addition.

    Machines of the same quota and region add up; the fallback replaces the cluster.
    """
    now = _needs(facts, cluster, False)
    held = {(need.name, need.region): need.amount for need in now}
    later = _needs(facts, fallback, True)
    return (*now, *(n for n in later if n.amount > held.get((n.name, n.region), 0.0)))


def _needs(facts: Facts, rented: Iterable[Rented], fallback: bool) -> list[Need]:
    found: dict[tuple[str, str], Need] = {}
    for machine, market, region, count in rented:
        quota = facts.quotas.quota(machine, market)
        if quota is None:
            continue
        before = found.get((quota.name, region))
        found[quota.name, region] = Need(
            name=quota.name,
            amount=count * quota_use(machine, quota.unit) + (before.amount if before else 0.0),
            unit=quota.unit,
            region=region,
            new_accounts=quota.default_new,
            yours=users_quota(facts, machine, market, region, quota.unit),
            fallback=fallback,
        )
    return list(found.values())
