"""Selects on-demand clusters that can finish a job if spot machines stay away."""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import max_machines_by_quota
from recommender.optimize.fallback_choices import undominated
from recommender.optimize.space import Fallbacks
from recommender.risk.on_demand_wait import OnDemandLaw


@dataclass(frozen=True, slots=True)
class _Clusters:
    """Numbers of machines of pools, slowest first; shape (clusters,)."""

    place: Ints  # of the pool
    count: Ints
    step_s: Floats
    usd_per_hour: Floats
    boot_s: Floats
    law: OnDemandLaw

    def take(self, rows: Ints) -> "_Clusters":
        """Some of them."""
        return _Clusters(
            place=self.place[rows],
            count=self.count[rows],
            step_s=self.step_s[rows],
            usd_per_hour=self.usd_per_hour[rows],
            boot_s=self.boot_s[rows],
            law=OnDemandLaw(self.law.at_once[rows], self.law.wait_s[rows]),
        )


def fallbacks_of(
    entries: OfferEntries,
    step_s: Floats,
    steps_left: float,
    pools: Sequence[Pool],
) -> tuple[Fallbacks, tuple[Pool, ...]]:
    """Select the clusters of one pool that may be the best fallback of a cluster, slowest first.

    None beats them in the cost of the work, speed, chance to be there and GPUs. Also returns the
    pool of each. `step_s` has shape (kinds, machines).
    """
    every = _clusters(entries, step_s, pools)
    gpus = every.count * np.array([pool.type.gpus for pool in pools])[every.place]
    usd = every.usd_per_hour * (every.boot_s + steps_left * every.step_s)
    rows = undominated(usd, every.step_s, -every.law.at_once, gpus)
    return _as_fallbacks(pools, every.take(rows))


def _as_fallbacks(pools: Sequence[Pool], kept: _Clusters) -> tuple[Fallbacks, tuple[Pool, ...]]:
    mine = tuple(pools[place] for place in kept.place.tolist())
    found = Fallbacks(
        kind=np.array([pool.kind for pool in mine], dtype=np.int64),
        count=kept.count,
        offer=np.array([pool.rows[0] for pool in mine], dtype=np.int64),
        step_s=kept.step_s,
        usd_per_hour=kept.usd_per_hour,
        boot_s=kept.boot_s,
        at_once=kept.law.at_once,
        wait_s=kept.law.wait_s,
    )
    return found, mine


def _clusters(entries: OfferEntries, step_s: Floats, pools: Sequence[Pool]) -> _Clusters:
    """Every number of machines of every pool that quotas allow."""
    facts = entries.facts
    kind = np.array([pool.kind for pool in pools], dtype=np.int64)
    usd = np.array([entries.machine_usd(pool) for pool in pools])
    most = np.array([max_machines_by_quota(facts, pool) for pool in pools])
    one = np.array([facts.wait(pool.type) for pool in pools]).reshape(-1, 3).T
    n = np.arange(1, step_s.shape[1] + 1)
    allowed = np.isfinite(step_s[kind]) & (n <= most[:, None])
    place, column = np.nonzero(allowed)
    count = n[column]
    places = np.array([len(pool.rows) for pool in pools], dtype=np.float64)
    law = OnDemandLaw(one[0][place], one[1][place]).of_gang(count, one[2][place])
    law = law.of_list(places[place])
    boot = np.array([entries.start_s(pool) for pool in pools])
    seconds, hourly = step_s[kind[place], column], count * usd[place]
    found = _Clusters(place, count, seconds, hourly, boot[place], law)
    # Of one speed the cheapest last and the surest first: what it beats is not tried.
    return found.take(np.lexsort((-law.at_once, -hourly, -seconds)))
