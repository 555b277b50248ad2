"""Selects on-demand clusters that can finish a job if spot machines stay away."""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import max_machines_by_quota
from recommender.optimize.fallback_choices import undominated
from recommender.optimize.space import Fallbacks
from recommender.risk.on_demand_wait import OnDemandLaw


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
    place, every = _clusters(entries, step_s, pools)
    gpus = every.count * np.array([pool.type.gpus for pool in pools])[place]
    usd = every.usd_per_hour * (every.boot_s + steps_left * every.step_s)
    rows = undominated(usd, every.step_s, -every.at_once, gpus)
    return every.take(rows), tuple(pools[each] for each in place[rows].tolist())


def _clusters(
    entries: OfferEntries, step_s: Floats, pools: Sequence[Pool]
) -> tuple[Ints, Fallbacks]:
    """Every number of machines of every pool that quotas allow, and the place of its pool."""
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
    found = Fallbacks(
        kind=kind[place],
        count=count,
        offer=np.array([pool.rows[0] for pool in pools], dtype=np.int64)[place],
        step_s=step_s[kind[place], column],
        usd_per_hour=count * usd[place],
        boot_s=np.array([entries.start_s(pool) for pool in pools])[place],
        at_once=law.at_once,
        wait_s=law.wait_s,
    )
    # Of one speed the cheapest last and the surest first: what it beats is not tried.
    order = np.lexsort((-found.at_once, -found.usd_per_hour, -found.step_s))
    return place[order], found.take(order)
