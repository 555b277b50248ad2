"""A site made ready for bounds on its clusters of several entries: prices, speeds, limits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.optimize.curves import Curves, curves, groups_of, usable, weights_of
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.floors import (
    MOSTLY_PAID,
    ROUNDING,
    joint_quantile,
    least_speed_factor,
    paid_share,
    speed_quantile,
)
from recommender.optimize.space import Entries, Site, Space
from recommender.optimize.stretch import DEARER, RUN_GRID, least_ratio
from recommender.performance.shortest import Shortest, shortest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

STEPWISE = 4  # up to this many machines every number is bounded by itself
WIDER = 1.35  # then ranges of them get wider by this factor
TYPES = (2, 3, 5, 8)  # most spot types of a case, where that decides how much of spot is charged


@dataclass(frozen=True, slots=True)
class Cases:
    """Clusters bounded together: so many machines, of so many spot types; (cases,)."""

    least: Ints  # machines
    most: Ints
    fewest: Ints  # spot types
    types: Ints  # and at most
    share: Floats  # of spot time that is charged, at least

    def take(self, rows: Bools) -> "Cases":
        """Some of the cases."""
        return Cases(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Bounded:
    """A site made ready for bounds; arrays have shape (entries,)."""

    space: Space
    site: Site
    cases: Cases
    fits: Ints  # most machines that quotas allow
    speed: Floats  # samples/s per machine
    counted: Floats  # least USD per hour that a budget counts
    price: Curves  # of what an hour of work costs at least
    hourly: Curves | None  # of listed prices, under an hourly limit
    budget: Curves | None  # of what a budget counts, where only that can keep it
    machines: Curves  # fewest machines
    lines: Shortest
    seconds: float  # true over predicted seconds of a step, at least, times the steps
    late_s: float  # longest step without a fallback
    spent: float  # most USD per hour times seconds of a step, by the budget
    away_s: float  # least changeover
    net_usd: float  # least bill of the whole work on a fallback; inf: none
    net_s: float  # least time of that
    alone_usd: float  # least cost of on-demand machines of an elastic cluster alone; inf: none

    @property
    def rest_usd(self) -> Floats:
        """No spot cluster whose fallback is not dear costs less; (cases,)."""
        return np.minimum(self.net_usd * self.cases.share / DEARER, self.alone_usd)

    def bill(self, entries: Ints | int) -> Floats:
        """Least USD per hour of work of some entries; (cases, entries)."""
        e = self.site.entries
        return _bills(self.cases, e.usd_per_hour[entries], e.spot[entries])

    def longest_s(self, bar: float) -> float:
        """The longest step of a cluster that may be below the bar.

        A fallback of bill F does a share 1 - D/W at least: W <= D/(1 - bar/F), D less changeover.
        """
        limit = self.space.limits.deadline_s
        if limit is None or np.isinf(self.net_usd):
            return self.late_s
        if not bar < self.net_usd:
            return np.inf
        most = max(limit - self.away_s, 0.0) / (1.0 - bar / self.net_usd)
        return max(self.late_s, most / self.seconds * (1.0 + ROUNDING))


def bounded(space: Space, site: Site) -> Bounded:
    """A site's prices and speeds, and what limits ask of its clusters of several entries."""
    fits = usable(site, space.limits.max_machines)
    linked = space.columns.network_bytes_per_s[site.entries.kind] > 0
    return _bounded(space, site, np.where(linked, fits, 0), None)


def narrowed(b: Bounded, alive: Bools, cases: Bools) -> Bounded:
    """The same for clusters of some entries and cases only."""
    return _bounded(b.space, b.site, np.where(alive, b.fits, 0), b.cases.take(cases))


def _bounded(space: Space, site: Site, fits: Ints, cases: Cases | None) -> Bounded:
    e, c, limits = site.entries, space.columns, space.limits
    speed = np.maximum(c.compute_per_s[e.kind], 1e-30)
    rows = np.flatnonzero(fits)
    some, sigmas = site.only(rows), np.unique(c.speed_sigma[e.kind[rows]])
    if cases is None:
        cases = cases_of(space, some, speed[rows])
    factor = float(least_speed_factor(space, sigmas).min(initial=1.0))
    away = float(e.boot_s[rows].min(initial=np.inf)) + RENDEZVOUS_S
    seconds, net = factor * space.steps_left, site.fallbacks
    netted = len(net) > 0 and limits.deadline_s is not None and bool(e.spot[rows].any())
    net_usd = float((net.usd_per_hour * net.step_s).min(initial=np.inf)) * seconds / 3600.0
    net_s = float(net.step_s.min(initial=np.inf)) * seconds
    counted = _counted(space, site)
    groups = groups_of(some, speed[rows])

    def curve(price: Floats, weights: Floats | None = None) -> Curves:
        mine = np.atleast_2d(price)
        if weights is None:
            weights = weights_of(mine.min(axis=0), speed[rows])  # no slope is negative
        return curves(mine, speed[rows], groups, weights, some.entries.spot)

    kept = limits.budget_usd is not None and not netted and not _mixed(space, some)
    return Bounded(
        space=space,
        site=site,
        cases=cases,
        fits=fits,
        speed=speed,
        counted=counted,
        price=curve(_bills(cases, some.entries.usd_per_hour, some.entries.spot)),
        hourly=None if limits.hourly_usd is None else curve(some.entries.usd_per_hour),
        budget=curve(counted[rows]) if kept else None,
        machines=curve(np.ones(len(rows)), np.zeros(1)),
        lines=shortest(space.job, c, e.kind, limits.max_machines),
        seconds=seconds,
        late_s=_longest(space, sigmas, away),
        spent=_most_spent(space, e.price_sigma[rows], c.speed_sigma[e.kind[rows]]),
        away_s=away,
        net_usd=net_usd if netted else np.inf,
        net_s=net_s if netted else np.inf,
        alone_usd=_alone_usd(space, some, speed[rows], seconds),
    )


def _bills(cases: Cases, usd_per_hour: Floats, spot: Bools) -> Floats:
    """Prices, those of spot times the least share that is charged; (cases, entries)."""
    return np.where(spot, usd_per_hour * cases.share[:, None], usd_per_hour)


def cases_of(space: Space, site: Site, speed: Floats) -> Cases:
    """Every case of a site, finer where there are few machines."""
    e, most = site.entries, space.limits.max_machines
    free = space.limits.goal != "time" and bool((e.free_s[e.spot] > 60.0).any())
    tops = [top for top in TYPES if top < most] if free else []
    bands = list(zip([0, *(top + 1 for top in tops)], [*tops, most], strict=True))
    rows = [
        (*machines, fewest, min(types, machines[1]))
        for machines in machine_ranges(most)
        for fewest, types in bands
        if fewest <= machines[1]
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    share = np.array([_least_share(space, site, speed, row[1], row[3]) for row in rows])
    least, top, fewest, types = table.T
    return Cases(least, top, fewest, types, share)


def machine_ranges(most: int) -> tuple[tuple[int, int], ...]:
    """Ranges of the number of machines, finer where there are few."""
    ranges, least = [], 2
    while least <= most:
        top = least if least <= STEPWISE else min(int(least * WIDER), most)
        ranges.append((least, top))
        least = top + 1
    return tuple(ranges)


def _least_share(space: Space, site: Site, speed: Floats, machines: int, types: int) -> float:
    """Least share of spot time that is charged in clusters of so many machines and spot types.

    A cluster's runs are shorter than those of its machines and have the shape of any of them.
    Where early interruptions are free, shorter runs lose more but less of them is charged.
    """
    e = site.entries.take(site.entries.spot)
    if space.limits.goal == "time" or not len(e):
        return 1.0
    free, away = float(e.free_s.max()), float(e.boot_s.min()) + RENDEZVOUS_S
    longest = float(e.run_mean_s.max())
    shortest_s = longest if free <= 60.0 else _shortest_run(space, e, machines, types)
    flop = space.job.global_batch * space.steps_left
    fast, slow = flop / (float(speed.max()) * machines), flop / float(speed.min())
    powers = np.arange(
        np.log(shortest_s) / np.log(RUN_GRID), np.log(longest) / np.log(RUN_GRID) + 1
    )
    works = np.geomspace(fast, max(slow, 2 * fast), int(np.log2(max(slow / fast, 2.0))) + 2)
    least = np.inf
    for sigma in (e.run_sigma.min(), e.run_sigma.max()):
        run, work = (axis.ravel() for axis in np.meshgrid(RUN_GRID**powers, works))
        one = np.ones(len(run))
        law = (run, one * sigma, one * free, one * away)
        paid = paid_share(*law[:3])
        # On-demand machines of an elastic cluster take work over at their own price, not DEARER.
        ratio = 0.0 if _mixed(space, site) else least_ratio(space.histories, space.seed, *law, work)
        least = min(least, float(np.maximum(paid, ratio).min()))
    return least


def _shortest_run(space: Space, spot: Entries, machines: int, types: int) -> float:
    """Mean run of the cluster of so many machines and types that is interrupted most often."""
    hazard = 1.0 / spot.run_mean_s
    first = np.sort(hazard)[::-1][:types].sum()
    more = (machines - 1) * float((hazard * (1.0 - spot.co_interruption)).max())
    return float(1.0 / (first + more + machines * space.job.fault_rate_per_hour / 3600.0))


def _longest(space: Space, sigmas: Floats, away_s: float) -> float:
    """The longest step of a cluster that meets the deadline without a fallback."""
    if space.limits.deadline_s is None or not len(sigmas):
        return np.inf
    key = (space.histories, space.seed, space.limits.confidence)
    factor = min(speed_quantile(*key, float(value)) for value in sigmas)
    longest = (space.limits.deadline_s - away_s) / max(factor * space.steps_left, 1e-30)
    return longest * (1.0 + ROUNDING)


def _counted(space: Space, site: Site) -> Floats:
    """What a budget counts of each entry at least, in USD per hour."""
    e, unpaid = site.entries, MOSTLY_PAID if space.limits.confidence >= 0.8 else 0.0
    return np.where(e.spot & (e.free_s > 60.0), unpaid, 1.0) * e.usd_per_hour


def _mixed(space: Space, site: Site) -> bool:
    """Whether on-demand machines may work alone while others are away."""
    spot = site.entries.spot
    return space.job.elastic and bool(spot.any()) and not bool(spot.all())


def _most_spent(space: Space, price_sigma: Floats, speed_sigma: Floats) -> float:
    """USD per hour times seconds of a step that no cluster within the budget exceeds."""
    limits = space.limits
    if limits.budget_usd is None or not len(price_sigma):
        return np.inf
    key = (space.histories, space.seed, limits.confidence)
    ends = ((s, p) for s in _ends(speed_sigma) for p in (0.0, *_ends(price_sigma)))
    factor = min(joint_quantile(*key, s, p) for s, p in ends)
    spent = limits.budget_usd * 3600.0 / max(factor * space.steps_left, 1e-30)
    return spent * (1.0 + ROUNDING)


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _alone_usd(space: Space, site: Site, speed: Floats, seconds: float) -> float:
    """Least cost if the on-demand machines of an elastic cluster do all the work alone."""
    if not _mixed(space, site):
        return np.inf
    e = site.entries
    least = float((e.usd_per_hour / speed)[~e.spot].min()) * space.job.global_batch * seconds
    return float(e.fixed_usd.min()) + least / 3600.0
