"""The smallest share of spot time that is charged, by how often a cluster can be interrupted.

A cluster's runs are shorter than those of its machines and have the shape of any of them. If early
interruptions are free, shorter runs lose more but less of them is charged: the share falls with the
interruption rate Λ, which is bounded by the numbers of machines and types:

    Λ <= Σ_U λ + the largest λ of further types + (machines - types)·max λ·(1 - ρ) + faults
"""

import numpy as np

from recommender.arrays import Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.cluster import joint_quantile, paid_share
from recommender.optimize.bounds.spot_time import (
    RUN_GRID,
    counted_share,
    min_spot_time_ratio,
    points_of,
)
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.space import Entries, Site, Space
from recommender.performance.clusters import multi_machine_spreads
from recommender.risk.laws import further_hazard

BUDGET_CHANCE = 0.8  # the least chance at which a budget counts spot time that may be free


@dataclass(frozen=True, slots=True)
class BilledShare:
    """Interruptions per second of each entry, and the smallest charged share by their sum."""

    first_hazard: Floats  # (entries,): of the first machine; 0 on demand
    next_hazard: Floats  # of each further one
    further_types_hazard: (
        Floats  # (entries + 1, types + 1): of so many types from an entry on, at most
    )
    fault_hazard: float  # of each machine
    min_power: int
    share: Floats  # where the mean run is at most RUN_GRID ** (min_power + place)
    plain: Floats  # the same if changeovers cost nothing: whatever a fallback takes over
    counted: Floats  # the same that the path pays which must meet the budget

    def max_hazard(self, own: Floats, begin: Ints, types: Ints, machines: Ints) -> Floats:
        """Largest hazard with further spot types from an entry on, and other machines."""
        further = self.further_types_hazard[
            begin, np.minimum(types, self.further_types_hazard.shape[1] - 1)
        ]
        extra = np.maximum(machines, 0) * self.next_hazard.max(initial=0.0)
        return np.asarray(own + further + extra)

    def place(self, hazard: Floats) -> Ints:
        """The table place of both shares for at most so many interruptions."""
        run = 1.0 / np.maximum(hazard, 1e-12)
        power = np.ceil(np.log(run) / np.log(RUN_GRID) - 1e-9).astype(np.int64)
        return np.asarray(np.clip(power - self.min_power, 0, len(self.share) - 1))

    def for_site(self, space: Space, site: Site) -> "BilledShare":
        """This table for some entries of its site."""
        shares = self.share, self.plain, self.counted
        return BilledShare(*_hazards(space, site), self.min_power, *shares)


def billed_share_of(
    space: Space, site: Site, speed: Floats, laws: Entries | None = None, quick: bool = False
) -> BilledShare:
    """The table of a site; a single place if nothing is free or time is the goal.

    `laws` are the entries whose runs its spot machines may have, if they are not its own. A `quick`
    table ignores free spot time under a budget and needs no simulated runs.
    """
    e, most = site.entries if laws is None else laws, space.limits.max_machines
    first, more, further, fault = _hazards(space, site)
    free = float(e.free_s[e.spot].max(initial=0.0))
    by_time = space.limits.goal == "time"
    one = np.ones(1)
    if not e.spot.any() or (by_time and not frees_budget(space, e)):
        return BilledShare(first, more, further, fault, 0, one, one, one)
    if by_time and quick:
        return BilledShare(first, more, further, fault, 0, one, one, 0.0 * one)
    hazard = further[0, -1] + most * (more.max() + fault)
    runs = 1.0 / hazard, float(e.run_mean_s[e.spot].max())
    low, high = (int(np.ceil(np.log(run) / np.log(RUN_GRID) - 1e-9)) for run in runs)
    power = high if free <= 60.0 else min(low, high)
    powers, works = range(power, high + 1), _works(space, speed)
    if by_time:
        counted = np.array([_counted_share(space, e, works, float(p), free) for p in powers])
        share = plain = np.ones(len(counted))
    else:
        each = np.array([_shares(space, e, works, float(p), free) for p in powers])
        (share, plain), counted = _min_of_longer(each.T), np.ones(len(each))
    return BilledShare(first, more, further, fault, power, share, plain, _min_of_longer(counted))


def frees_budget(space: Space, e: Entries) -> bool:
    """Whether a budget decides and spot time may be free."""
    return space.limits.budget_usd is not None and bool((e.free_s[e.spot] > 60.0).any())


def _min_of_longer(values: Floats) -> Floats:
    """Of each power of the grid of runs the least at that or a larger one; along the last axis."""
    return np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]


def _works(space: Space, speed: Floats) -> Floats:
    """Work of any cluster, each twice the last: from all of the fastest to one of the slowest."""
    flop = space.job.global_batch * space.steps_left
    fast = flop / (float(speed.max()) * space.limits.max_machines)
    slow = max(flop / float(speed.min()), 2.0 * fast)
    return np.geomspace(fast, slow, int(np.log2(slow / fast)) + 2)


def _counted_share(space: Space, laws: Entries, works: Floats, power: float, free: float) -> float:
    """Least share of spot time that the path pays which must meet a budget, at such runs.

    Next to the least quantile of speed and price, which `_most_spent` allows for.
    """
    e, limits = laws.take(laws.spot), space.limits
    if limits.confidence < BUDGET_CHANCE:
        return 0.0
    # Above the median slower paths of a larger spread pay more: the least spread pays least.
    spreads = multi_machine_spreads(space.columns, e.kind)
    key = (space.path_count, space.seed, limits.confidence, RUN_GRID**power, free)
    away = float(np.floor(e.boot_s.min() / 60.0) * 60.0) + RENDEZVOUS_S
    price_sigma, points, one = float(e.price_sigma.max()), points_of(works), np.ones(1)
    least = np.inf
    for run_sigma in (float(e.run_sigma.min()), float(e.run_sigma.max())):
        some = counted_share(*key, away, run_sigma, float(spreads.min()), price_sigma, points)
        mean = paid_share(one * RUN_GRID ** (power - 1.0), one * run_sigma, one * free)[0]
        least = min(least, some, float(mean))
    return min(least / max(min_quantile(space, spreads, price_sigma), 1e-9), 1.0)


def _hazards(space: Space, site: Site) -> tuple[Floats, Floats, Floats, float]:
    """Interruptions per second: of first machines, further ones, further types, and faults."""
    e = site.entries
    first = np.where(e.spot, 1.0 / e.run_mean_s, 0.0)
    further = _largest_from(first, space.limits.max_machines)
    more = first * further_hazard(2, e.co_interruption)
    return first, more, further, space.job.fault_rate_per_hour / 3600.0


def _largest_from(values: Floats, most: int) -> Floats:
    """Sums of the largest values among those from each place on; (places + 1, most + 1)."""
    found = np.zeros((len(values) + 1, most + 1))
    for place in range(len(values)):
        some = np.cumsum(np.sort(values[place:])[::-1][:most])
        found[place, 1 : len(some) + 1] = some
        found[place, len(some) + 1 :] = some[-1]
    return found


def _shares(
    space: Space, laws: Entries, works: Floats, power: float, free: float
) -> tuple[float, float]:
    """Least shares at a mean run of about RUN_GRID ** power, for any work and shape of runs."""
    e = laws.take(laws.spot)
    one, least, min_paid = np.ones(len(works)), np.inf, np.inf
    away = float(e.boot_s.min()) + RENDEZVOUS_S
    for sigma in (float(e.run_sigma.min()), float(e.run_sigma.max())):
        law = (one * RUN_GRID**power, one * sigma, one * free)
        paid = paid_share(one * RUN_GRID ** (power - 1.0), *law[1:])
        ratio = min_spot_time_ratio(space.cache.path_count, space.seed, *law, one * away, works)
        least = min(least, float(np.maximum(paid, ratio).min()))
        min_paid = min(min_paid, float(paid.min()))
    return least, min_paid


def min_quantile(space: Space, speed_sigma: Floats, price_sigma: float) -> float:
    """The smallest speed × price of the path that must meet a limit, over some spreads of speed.

    Every spread is tried, because faster and slower paths change places and the minimum may lie
    between the ends. For price it is at the largest spread: min(price, 1) falls with it on every
    path.
    """
    key = (space.path_count, space.seed, space.limits.confidence)
    return min(joint_quantile(*key, float(s), price_sigma) for s in distinct(speed_sigma))
