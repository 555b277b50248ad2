"""How much of spot time the clusters of a site are charged at least, by their interruptions.

A cluster's runs are shorter than those of its machines and have the shape of any of them. Where
early interruptions are free, shorter runs lose more but less of them is charged: the share falls
with the interruptions Λ, which so many machines of so many types can have at most,

    Λ <= Σ_U λ + the largest λ of further types + (machines - types)·max λ·(1 - ρ) + faults
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.floors import paid_share
from recommender.optimize.space import Site, Space
from recommender.optimize.stretch import RUN_GRID, least_ratio

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Charged:
    """Interruptions per second of each entry, and the least share that is charged by their sum."""

    first: Floats  # (entries,): of the first machine; 0 on demand
    more: Floats  # of each further one
    further: Floats  # (entries + 1, types + 1): of so many types from an entry on, at most
    fault: float  # of each machine
    least_power: int
    share: Floats  # where the mean run is at most RUN_GRID ** (least_power + place)

    def most(self, own: Floats, begin: Ints, types: Ints, machines: Ints) -> Floats:
        """Most interruptions with further spot types from an entry on, and machines beside them."""
        further = self.further[begin, np.minimum(types, self.further.shape[1] - 1)]
        extra = np.maximum(machines, 0) * self.more.max(initial=0.0)
        return np.asarray(own + further + extra)

    def at(self, hazard: Floats) -> Floats:
        """The least share at so many interruptions or fewer."""
        run = 1.0 / np.maximum(hazard, 1e-12)
        power = np.ceil(np.log(run) / np.log(RUN_GRID) - 1e-9).astype(np.int64)
        place = np.clip(power - self.least_power, 0, len(self.share) - 1)
        return np.asarray(self.share[place])

    def of(self, space: Space, site: Site) -> "Charged":
        """The same table for some entries of the site that it was made for."""
        return Charged(*_hazards(space, site), self.least_power, self.share)


def mixed(space: Space, site: Site) -> bool:
    """Whether on-demand machines may work alone while others are away."""
    spot = site.entries.spot
    return space.job.elastic and bool(spot.any()) and not bool(spot.all())


def charged(space: Space, site: Site, speed: Floats) -> Charged:
    """The table of a site; one place where nothing is free or the time is the goal."""
    e, most = site.entries, space.limits.max_machines
    first, more, further, fault = _hazards(space, site)
    free = float(e.free_s[e.spot].max(initial=0.0))
    power, share = 0, np.ones(1)
    if space.limits.goal != "time" and e.spot.any():
        hazard = further[0, -1] + most * (more.max() + fault)
        runs = 1.0 / hazard, float(e.run_mean_s[e.spot].max())
        low, high = (int(np.ceil(np.log(run) / np.log(RUN_GRID) - 1e-9)) for run in runs)
        power = high if free <= 60.0 else low
        each = [_share(space, site, speed, float(p), free) for p in range(power, high + 1)]
        share = np.minimum.accumulate(np.array(each)[::-1])[::-1]
    return Charged(first, more, further, fault, power, share)


def _hazards(space: Space, site: Site) -> tuple[Floats, Floats, Floats, float]:
    """Interruptions per second: of first machines, further ones, further types, and faults."""
    e = site.entries
    first = np.where(e.spot, 1.0 / e.run_mean_s, 0.0)
    further = _largest_from(first, space.limits.max_machines)
    more = first * (1.0 - e.co_interruption)
    return first, more, further, space.job.fault_rate_per_hour / 3600.0


def _largest_from(values: Floats, most: int) -> Floats:
    """Sums of the largest values among those from each place on; (places + 1, most + 1)."""
    found = np.zeros((len(values) + 1, most + 1))
    for place in range(len(values)):
        some = np.cumsum(np.sort(values[place:])[::-1][:most])
        found[place, 1 : len(some) + 1] = some
        found[place, len(some) + 1 :] = some[-1]
    return found


def _share(space: Space, site: Site, speed: Floats, power: float, free: float) -> float:
    """Least share at a mean run of about RUN_GRID ** power, for any work and shape of runs."""
    e = site.entries.take(site.entries.spot)
    flop = space.job.global_batch * space.steps_left
    fast = flop / (float(speed.max()) * space.limits.max_machines)
    slow = max(flop / float(speed.min()), 2.0 * fast)
    works = np.geomspace(fast, slow, int(np.log2(slow / fast)) + 2)
    one, least = np.ones(len(works)), np.inf
    away = float(e.boot_s.min()) + RENDEZVOUS_S
    for sigma in (float(e.run_sigma.min()), float(e.run_sigma.max())):
        law = (one * RUN_GRID**power, one * sigma, one * free)
        paid = paid_share(one * RUN_GRID ** (power - 1.0), *law[1:])
        # On-demand machines of an elastic cluster take work over at their own price, not DEARER.
        ratio = paid
        if not mixed(space, site):
            ratio = least_ratio(space.histories, space.seed, *law, one * away, works)
        least = min(least, float(np.maximum(paid, ratio).min()))
    return least
