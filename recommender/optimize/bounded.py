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
from recommender.optimize.space import Site, Space
from recommender.optimize.stretch import DEARER, RUN_GRID, least_ratio
from recommender.performance.shortest import Shortest, shortest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WORK_POINTS = 4  # works at which the least charged share of an entry is sought
STEPWISE = 4  # up to this many machines every number is bounded by itself
WIDER = 1.35  # then ranges of them get wider by this factor


@dataclass(frozen=True, slots=True)
class Bounded:
    """A site made ready for bounds; arrays have shape (entries,)."""

    space: Space
    site: Site
    fits: Ints  # most machines that quotas allow
    speed: Floats  # samples/s per machine
    bill: Floats  # least USD per hour of work
    counted: Floats  # least USD per hour that a budget counts
    price: Curves  # of the bill
    hourly: Curves | None  # of listed prices, under an hourly limit
    budget: Curves | None  # of what a budget counts, where only that can keep it
    machines: Curves  # fewest machines
    lines: Shortest
    ranges: tuple[tuple[int, int], ...]  # numbers of machines bounded together
    seconds: float  # true over predicted seconds of a step, at least, times the steps
    late_s: float  # longest step without a fallback
    spent: float  # most USD per hour times seconds of a step, by the budget
    away_s: float  # least changeover
    net_usd: float  # least bill of the whole work on a fallback; inf: none
    net_s: float  # least time of that
    rest_usd: float  # no spot cluster whose fallback is not dear costs less
    alone_usd: float  # least cost of on-demand machines of an elastic cluster alone; inf: none

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
    e, c, limits = site.entries, space.columns, space.limits
    speed = np.maximum(c.compute_per_s[e.kind], 1e-30)
    linked = c.network_bytes_per_s[e.kind] > 0
    fits = np.where(linked, usable(site, limits.max_machines), 0)
    rows = np.flatnonzero(fits)
    share = np.ones(len(e))
    factor, late, away, net_usd, net_s = 1.0, np.inf, 0.0, np.inf, np.inf
    if len(rows):
        sub = site.only(rows)
        share[rows] = _least_shares(space, sub, speed[rows])
        sigmas = np.unique(c.speed_sigma[e.kind[rows]])
        factor = float(least_speed_factor(space, sigmas).min())
        away = float(e.boot_s[rows].min()) + RENDEZVOUS_S
        late = _longest(space, sigmas, away)
    bill = np.where(e.spot, e.usd_per_hour * share, e.usd_per_hour)
    counted = _counted(space, site)
    seconds, fall = factor * space.steps_left, site.fallbacks
    if len(fall) and limits.deadline_s is not None and e.spot[rows].any():
        net_usd = float((fall.usd_per_hour * fall.step_s).min()) * seconds / 3600.0
        net_s = float(fall.step_s.min()) * seconds
    return Bounded(
        space=space,
        site=site,
        fits=fits,
        speed=speed,
        bill=bill,
        counted=counted,
        price=_curves(site, fits, speed, bill),
        hourly=None if limits.hourly_usd is None else _curves(site, fits, speed, e.usd_per_hour),
        budget=_budget(space, site, fits, speed, counted) if np.isinf(net_usd) else None,
        machines=_curves(site, fits, speed, np.ones(len(e)), np.zeros(1)),
        lines=shortest(space.job, c, e.kind, limits.max_machines),
        ranges=machine_ranges(limits.max_machines),
        seconds=seconds,
        late_s=late,
        spent=_most_spent(space, e.price_sigma[rows], c.speed_sigma[e.kind[rows]]),
        away_s=away,
        net_usd=net_usd,
        net_s=net_s,
        rest_usd=net_usd * float(share[rows].min(initial=1.0)) / DEARER,
        alone_usd=_alone_usd(space, site, rows, speed, seconds),
    )


def machine_ranges(most: int) -> tuple[tuple[int, int], ...]:
    """Ranges of the number of machines, finer where there are few."""
    ranges, least = [], 2
    while least <= most:
        top = least if least <= STEPWISE else min(int(least * WIDER), most)
        ranges.append((least, top))
        least = top + 1
    return tuple(ranges)


def _curves(
    site: Site, fits: Ints, speed: Floats, price: Floats, weights: Floats | None = None
) -> Curves:
    """The curves of a price, over the entries that quotas leave any machine of."""
    rows = np.flatnonzero(fits)
    some = site.only(rows)
    if weights is None:
        weights = weights_of(price[rows], speed[rows]) if len(rows) else np.zeros(1)
    groups = groups_of(some, speed[rows], fits[rows])
    return curves(price[rows], speed[rows], groups, weights)


def _longest(space: Space, sigmas: Floats, away_s: float) -> float:
    """The longest step of a cluster that meets the deadline without a fallback."""
    if space.limits.deadline_s is None:
        return np.inf
    key = (space.histories, space.seed, space.limits.confidence)
    factor = min(speed_quantile(*key, float(value)) for value in sigmas)
    longest = (space.limits.deadline_s - away_s) / max(factor * space.steps_left, 1e-30)
    return longest * (1.0 + ROUNDING)


def _counted(space: Space, site: Site) -> Floats:
    """What a budget counts of each entry at least, in USD per hour."""
    e, unpaid = site.entries, MOSTLY_PAID if space.limits.confidence >= 0.8 else 0.0
    return np.where(e.spot & (e.free_s > 60.0), unpaid, 1.0) * e.usd_per_hour


def _budget(space: Space, site: Site, fits: Ints, speed: Floats, counted: Floats) -> Curves | None:
    """What a budget counts; None where on-demand machines alone may keep it."""
    steady = ~site.entries.spot[fits > 0]
    mixed = space.job.elastic and steady.any() and not steady.all()
    if space.limits.budget_usd is None or mixed:
        return None
    return _curves(site, fits, speed, counted)


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


def _alone_usd(space: Space, site: Site, rows: Ints, speed: Floats, seconds: float) -> float:
    """Least cost if the on-demand machines of an elastic cluster do all the work alone."""
    e = site.entries
    steady = rows[~e.spot[rows]]
    if not space.job.elastic or not 0 < len(steady) < len(rows):
        return np.inf
    least = float((e.usd_per_hour / speed)[steady].min()) * space.job.global_batch * seconds
    return float(e.fixed_usd.min()) + least / 3600.0


def _least_shares(space: Space, site: Site, speed: Floats) -> Floats:
    """Least share of each entry's spot time that is charged, in any cluster of the site.

    A cluster's runs are shorter than those of its machines and have the shape of any of them.
    Where early interruptions are free, shorter runs lose more but less of them is charged.
    """
    e = site.entries
    if space.limits.goal == "time" or not e.spot.any():
        return np.ones(len(e))
    flop = space.job.global_batch * space.steps_left
    slow, fast = flop / speed.min(), flop / (speed.max() * space.limits.max_machines)
    works = np.geomspace(fast, max(slow, 2 * fast), WORK_POINTS)
    share, tight = np.ones(len(e)), np.full(len(e), np.inf)
    shortest = np.minimum(_shortest_run(space, site), e.run_mean_s)
    spans = np.log(e.run_mean_s / shortest)[e.spot & (e.free_s > 60.0)]
    points = int(np.ceil(spans.max(initial=0.0) / (2.0 * np.log(RUN_GRID)))) + 1
    rows = np.flatnonzero(e.spot)
    for sigma in np.unique(e.run_sigma[e.spot]):
        shape = np.full(len(e), sigma)
        share = np.minimum(share, paid_share(shortest, shape, e.free_s))
        for down in np.linspace(0.0, 1.0, points):
            between = e.run_mean_s ** (1.0 - down) * shortest**down
            run = np.where(e.free_s > 60.0, between, e.run_mean_s)
            for work in works:
                law = (run, shape, e.free_s, e.boot_s + RENDEZVOUS_S, np.full(len(e), work))
                ratio = least_ratio(space.histories, space.seed, *(column[rows] for column in law))
                tight[rows] = np.minimum(tight[rows], ratio)
    return np.where(e.spot, np.maximum(share, tight), 1.0)


def _shortest_run(space: Space, site: Site) -> float:
    """Mean run of the cluster of the site that is interrupted most often, or less."""
    e, most = site.entries, space.limits.max_machines
    hazard = 1.0 / e.run_mean_s[e.spot]
    first = np.sort(hazard)[::-1][:most].sum()
    more = most * float((hazard * (1.0 - e.co_interruption[e.spot])).max())
    return float(1.0 / (first + more + most * space.job.fault_rate_per_hour / 3600.0))
