"""The quotas that a plan's machines need, by the provider's own names."""

from collections.abc import Iterable, Sequence

from recommender.catalogs.schema import InstanceType
from recommender.market.account_quotas import quota_use
from recommender.market.offer_facts import Facts, Pool
from recommender.market.quota_rows import quota_market, regions_of, users_quota
from recommender.plan.plan import Need

Rented = tuple[InstanceType, str, str, int]  # market, region, and how many run at the same time


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
