"""Quotas of an account as rows of the plan space, and by the provider's own names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from catalogs.schema import InstanceType, Quota
from recommender.limits import QuotaLimit
from recommender.market.facts import Facts
from recommender.performance.fleet import Floats

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


def _use(facts: Facts, limit: QuotaLimit, pool: "Pool") -> float:
    o = facts.catalog.offers
    first = pool.rows[0]
    market = "spot" if pool.spot else "on_demand"
    names = (pool.type.quota_family, pool.type.family, _name(facts, pool, market))
    matches = (
        limit.provider == o.provider[first]
        and limit.market in ("any", market)
        and limit.region in ("", o.region[first])
        and limit.quota_family in names
    )
    return used_by(pool.type, limit.unit) if matches else 0.0


def _name(facts: Facts, pool: "Pool", market: str) -> str:
    quota = quota_of(facts, pool.type, market)
    return quota.name if quota is not None else ""


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
