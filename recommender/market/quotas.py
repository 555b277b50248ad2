"""Quotas of an account as rows of the plan space, and by the provider's own names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from catalogs.catalog import Catalog
from catalogs.schema import InstanceType, Quota
from recommender.errors import UsageError
from recommender.limits import QuotaLimit
from recommender.market.facts import Facts
from recommender.performance.fleet import Floats
from recommender.text import unknown

if TYPE_CHECKING:
    from recommender.market.sites import Pool


def quota_rows(facts: Facts, pools: "Sequence[Pool]") -> tuple[Floats, Floats]:
    """What one machine of each pool uses of each quota, and the quotas; (rows, pools), (rows,)."""
    use, amounts = [], []
    for limit in facts.choice.quotas:
        row = [_use(facts, limit, pool) for pool in pools]
        if any(row):
            use.append(row)
            amounts.append(limit.amount)
    return np.array(use, dtype=np.float64).reshape(-1, len(pools)), np.array(amounts)


def most_by_quota(facts: Facts, pool: "Pool") -> float:
    """Most machines of a pool that the quotas allow on their own."""
    uses = [(limit.amount, _use(facts, limit, pool)) for limit in facts.choice.quotas]
    return min((amount / use for amount, use in uses if use > 0), default=float("inf")) + 1e-9


def refuse_unknown(limits: Sequence[QuotaLimit], catalog: Catalog) -> None:
    """Raise `UsageError` for quotas of families that no machine has: they would limit nothing."""
    if not limits:
        return
    known: dict[str, set[str]] = {}
    for t in catalog.instance_types.values():
        known.setdefault(t.provider, set()).update((t.quota_family, t.family))
    for q in catalog.quotas:
        known.setdefault(q.provider, set()).add(q.name)
    wrong = [
        _unknown(limit, known[limit.provider])
        for limit in limits
        if limit.provider in known
        and limit.quota_family.casefold() not in map(str.casefold, known[limit.provider])
    ]
    if wrong:
        raise UsageError(*wrong)


def _unknown(limit: QuotaLimit, known: set[str]) -> str:
    place = f"{limit.place}: " if limit.place else ""
    return place + unknown(f"{limit.provider} quota", limit.quota_family, sorted(known - {""}))


def yours(facts: Facts, pool: "Pool", unit: str) -> float | None:
    """The least of the user's quotas that a pool falls under, in a unit; None without one."""
    amounts = [q.amount for q in facts.choice.quotas if q.unit == unit and _use(facts, q, pool)]
    return min(amounts, default=None)


def _use(facts: Facts, limit: QuotaLimit, pool: "Pool") -> float:
    o = facts.catalog.offers
    first = pool.rows[0]
    market = "spot" if pool.spot else "on_demand"
    matches = (
        limit.provider == o.provider[first]
        and limit.market in ("any", market)
        and limit.region in ("", o.region[first])
        and limit.quota_family.casefold() in _names(facts, pool, market)
    )
    return used_by(pool.type, limit.unit) if matches else 0.0


def _names(facts: Facts, pool: "Pool", market: str) -> tuple[str, ...]:
    """What a pool's quota is called: its family's code, the machines' family, the full name."""
    quota = quota_of(facts, pool.type, market)
    names = (pool.type.quota_family, pool.type.family, "" if quota is None else quota.name)
    return tuple(name.casefold() for name in names)


def used_by(t: InstanceType, unit: str) -> float:
    """What one machine takes of a quota."""
    return {"vcpu": float(t.vcpus), "gpu": float(t.gpus), "machine": 1.0}[unit]


def quota_of(facts: Facts, t: InstanceType, market: str) -> Quota | None:
    """The provider's quota for a machine in a market."""
    return next(
        (
            q
            for q in facts.catalog.quotas
            if (q.provider, q.quota_family, q.market) == (t.provider, t.quota_family, market)
        ),
        None,
    )
