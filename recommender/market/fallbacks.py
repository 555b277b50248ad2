"""On-demand clusters that can finish a job when spot machines stay away."""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import max_machines_by_quota
from recommender.optimize.space import Fallbacks
from recommender.plan.limits import Limits
from recommender.risk.on_demand_wait import OnDemandLaw


@dataclass(frozen=True, slots=True)
class _Clusters:
    """Numbers of machines of pools; shape (clusters,)."""

    place: Ints  # of the pool
    count: Ints
    step_s: Floats
    usd_per_hour: Floats
    law: OnDemandLaw

    def take(self, rows: Ints | Bools) -> "_Clusters":
        """Some of them."""
        law = OnDemandLaw(self.law.at_once[rows], self.law.wait_s[rows])
        step_s, usd = self.step_s[rows], self.usd_per_hour[rows]
        return _Clusters(self.place[rows], self.count[rows], step_s, usd, law)


def fallbacks_of(
    entries: OfferEntries, limits: Limits, step_s: Floats, pools: Sequence[Pool]
) -> Fallbacks:
    """Clusters of one pool that no other beats in speed and in cost, slowest first.

    A cheaper one that has to be waited for is started earlier, so it does not take the place of
    those that are there at once in as many runs as the limits ask for: these are compared with
    each other. `step_s` has shape (kinds, machines).
    """
    every = _clusters(entries, limits, step_s, pools)
    at_once = every.law.reserve_s(limits.confidence) <= 0.0
    everyone = np.ones(len(at_once), dtype=bool)
    kept = every.take(np.union1d(_front(every, everyone), _front(every, at_once)))
    kept = kept.take(np.lexsort((kept.usd_per_hour * kept.step_s, -kept.step_s)))
    mine = [pools[place] for place in kept.place.tolist()]
    return Fallbacks(
        kind=np.array([pool.kind for pool in mine], dtype=np.int64),
        count=kept.count,
        offer=np.array([pool.rows[0] for pool in mine], dtype=np.int64),
        step_s=kept.step_s,
        usd_per_hour=kept.usd_per_hour,
        boot_s=np.array([entries.start_s(pool) for pool in mine]),
        at_once=kept.law.at_once,
        wait_s=kept.law.wait_s,
        entries=entries.of(mine),
    )


def _clusters(
    entries: OfferEntries, limits: Limits, step_s: Floats, pools: Sequence[Pool]
) -> _Clusters:
    """Every number of machines of every pool that quotas and the price per hour allow."""
    facts = entries.facts
    kind = np.array([pool.kind for pool in pools], dtype=np.int64)
    usd = np.array([entries.machine_usd(pool) for pool in pools])
    most = np.array([max_machines_by_quota(facts, pool) for pool in pools])
    one = np.array([facts.on_demand_wait(pool.type) for pool in pools]).reshape(-1, 3).T
    n = np.arange(1, step_s.shape[1] + 1)
    allowed = np.isfinite(step_s[kind]) & (n <= most[:, None])
    if limits.hourly_usd is not None:
        allowed &= n * usd[:, None] <= limits.hourly_usd + 1e-9
    place, column = np.nonzero(allowed)
    count = n[column]
    law = OnDemandLaw(one[0][place], one[1][place]).of_gang(count, one[2][place])
    return _Clusters(place, count, step_s[kind[place], column], count * usd[place], law)


def _front(clusters: _Clusters, among: Bools) -> Ints:
    """Those that none among them beats in speed and in cost."""
    rows = np.flatnonzero(among)
    step_s = clusters.step_s[rows]
    usd = clusters.usd_per_hour[rows] * step_s
    order = np.lexsort((clusters.usd_per_hour[rows], usd, step_s))
    least = np.minimum.accumulate(usd[order])
    cheaper = np.ones(len(order), dtype=bool)
    cheaper[1:] = usd[order][1:] < least[:-1] * (1.0 - 1e-9)
    return rows[order[cheaper]]
