"""Quotas of an account as rows of the plan space, and by the provider's own names."""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.schema import InstanceType, Quota
from recommender.inputs.csv_text import refuse_all
from recommender.market.offer_facts import Facts, Pool
from recommender.plan.limits import QuotaLimit
from recommender.text import unknown


def quota_rows(facts: Facts, pools: Sequence[Pool]) -> tuple[Floats, Floats]:
    """What one machine of each pool uses of each quota, and the quotas; (rows, pools), (rows,).

    Of quotas that count the same machines alike only the least can bind.
    """
    rows: dict[QuotaLimit, list[float]] = {}
    for number, pool in enumerate(pools):
        for limit, use in one_machine_more(facts, pool):
            rows.setdefault(limit, [0.0] * len(pools))[number] = use
    least: dict[tuple[float, ...], float] = {}
    for limit, row in rows.items():
        least[tuple(row)] = min(limit.amount, least.get(tuple(row), limit.amount))
    use_of_rows = np.array(list(least), dtype=np.float64).reshape(-1, len(pools))
    return use_of_rows, np.array(list(least.values()))


def one_machine_more(facts: Facts, pool: Pool) -> tuple[tuple[QuotaLimit, float], ...]:
    """Every quota that a pool falls under, and what one machine of it takes of the quota."""
    uses = ((limit, quota_use(pool.type, limit.unit)) for limit in _limits_of(facts, pool))
    return tuple((limit, use) for limit, use in uses if use > 0)


def max_machines_by_quota(facts: Facts, pool: Pool) -> float:
    """Most machines of a pool that the quotas allow on their own."""
    uses = one_machine_more(facts, pool)
    return min((limit.amount / use for limit, use in uses), default=float("inf")) + 1e-9


def refuse_unknown_quotas(limits: Sequence[QuotaLimit], catalog: Catalog) -> None:
    """Raise `UsageError` for quotas of families or regions that no machine has."""
    if not limits:
        return
    names, regions = _quota_names(catalog), _regions(catalog)
    families = {provider: {name.casefold() for name in each} for provider, each in names.items()}
    problems = []
    for limit in limits:
        if limit.provider not in names:
            continue
        if limit.quota_family.casefold() not in families[limit.provider]:
            problems.append(_unknown(limit, "quota", limit.quota_family, names[limit.provider]))
        known = regions.get(limit.provider, set())
        if limit.region and limit.region not in known:
            problems.append(_unknown(limit, "region", limit.region, known))
    refuse_all(problems)


def _quota_names(catalog: Catalog) -> dict[str, set[str]]:
    """What quotas may be called, by provider."""
    known: dict[str, set[str]] = {}
    for t in catalog.instance_types.values():
        known.setdefault(t.provider, set()).update((t.quota_family, t.family))
    for q in catalog.quotas:
        known.setdefault(q.provider, set()).add(q.name)
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


def users_quota(facts: Facts, pool: Pool, unit: str) -> float | None:
    """The least of the user's quotas that a pool falls under, in a unit; None without one."""
    amounts = [q.amount for q, _ in one_machine_more(facts, pool) if q.unit == unit]
    return min(amounts, default=None)


def _limits_of(facts: Facts, pool: Pool) -> tuple[QuotaLimit, ...]:
    """A pool's quota is called by its family's code, the machines' family, or the full name."""
    if not facts.quotas:
        return ()
    o, first = facts.catalog.offers, pool.rows[0]
    market = "spot" if pool.spot else "on_demand"
    quota = quota_of(facts, pool.type, market)
    names = (pool.type.quota_family, pool.type.family, "" if quota is None else quota.name)
    return facts.quotas.of(o.provider[first], market, o.region[first], names)


def quota_use(t: InstanceType, unit: str) -> float:
    """What one machine takes of a quota."""
    return {"vcpu": float(t.vcpus), "gpu": float(t.gpus), "machine": 1.0}[unit]


def quota_of(facts: Facts, t: InstanceType, market: str) -> Quota | None:
    """The provider's quota for a machine in a market."""
    return facts.quota_names.get((t.provider, t.quota_family, market))
