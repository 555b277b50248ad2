"""Selects on-demand clusters that can finish a job if spot machines stay away."""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import max_machines_by_quota
from recommender.optimize.fallback_choices import of_each_speed, undominated, worth_trying
from recommender.optimize.space import Fallbacks
from recommender.plan.limits import Limits
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
    limits: Limits,
    step_s: Floats,
    steps_left: float,
    pools: Sequence[Pool],
) -> tuple[Fallbacks, tuple[Pool, ...]]:
    """Select the clusters of one pool that may be the best fallback of a cluster, slowest first.

    Also returns the pool of each. Under an overhead limit slower ones are selected too, at each
    speed, because less is lost while they start. `step_s` has shape (kinds, machines).
    """
    every = _clusters(entries, limits, step_s, pools)
    figures = (every.step_s, every.usd_per_hour, every.boot_s, every.law.at_once, steps_left)
    rows = worth_trying(*figures)
    if limits.max_overhead is not None:
        rows = np.flatnonzero(np.bincount(np.concatenate([rows, of_each_speed(*figures)])))
    return _as_fallbacks(entries, pools, every.take(rows))


def undominated_fallbacks(
    entries: OfferEntries,
    limits: Limits,
    step_s: Floats,
    steps_left: float,
    pools: Sequence[Pool],
) -> tuple[Fallbacks, tuple[Pool, ...]]:
    """Select the clusters that none beats in cost, speed, chance to be there, and number of GPUs.

    As `fallbacks_of`, but those of few GPUs are among them that only plans which are printed have.
    """
    every = _clusters(entries, limits, step_s, pools)
    gpus = every.count * np.array([pool.type.gpus for pool in pools])[every.place]
    rows = undominated(
        every.step_s, every.usd_per_hour, every.boot_s, every.law.at_once, gpus, steps_left
    )
    return _as_fallbacks(entries, pools, every.take(rows))


def _as_fallbacks(
    entries: OfferEntries, pools: Sequence[Pool], kept: _Clusters
) -> tuple[Fallbacks, tuple[Pool, ...]]:
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
        entries=entries.of(mine),
    )
    return found, mine


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
    places = np.array([len(pool.rows) for pool in pools], dtype=np.float64)
    law = OnDemandLaw(one[0][place], one[1][place]).of_gang(count, one[2][place])
    law = law.of_list(places[place])
    boot = np.array([entries.start_s(pool) for pool in pools])
    seconds, hourly = step_s[kind[place], column], count * usd[place]
    found = _Clusters(place, count, seconds, hourly, boot[place], law)
    # Of one speed the cheapest last and the surest first: what it beats is not tried.
    return found.take(np.lexsort((-law.at_once, -hourly, -seconds)))
