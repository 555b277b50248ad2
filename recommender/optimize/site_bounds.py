"""What bounds the clusters of a site: prices, billed share of spot time, speeds and limits.

A cluster's runs are shorter than those of its machines and have the shape of any of them. Where
early interruptions are free, shorter runs lose more but less of them is charged: the share falls
with the interruptions Λ, which so many machines of so many types can have at most,

    Λ <= Σ_U λ + the largest λ of further types + (machines - types)·max λ·(1 - ρ) + faults
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.deadline_bounds import least_fallback_start
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.lower_bounds import (
    MOSTLY_PAID,
    MOSTLY_PAID_RUN_S,
    ROUNDING,
    joint_quantile,
    least_speed_factor,
    paid_share,
    speed_quantile,
)
from recommender.optimize.price_curves import Curves, Groups, curves, groups_of, usable, weights_of
from recommender.optimize.space import Site, Space
from recommender.optimize.spot_time_bounds import RUN_GRID, least_spot_time_ratio
from recommender.performance.clusters import several_spreads_of
from recommender.performance.step_bounds import Shortest, shortest
from recommender.risk.laws import further_hazard


@dataclass(frozen=True, slots=True)
class BilledShare:
    """Interruptions per second of each entry, and the least share that is charged by their sum."""

    first_hazard: Floats  # (entries,): of the first machine; 0 on demand
    next_hazard: Floats  # of each further one
    further_types_hazard: (
        Floats  # (entries + 1, types + 1): of so many types from an entry on, at most
    )
    fault_hazard: float  # of each machine
    least_power: int
    share: Floats  # where the mean run is at most RUN_GRID ** (least_power + place)
    plain: Floats  # the same if changeovers cost nothing: whatever a fallback takes over

    def max_hazard(self, own: Floats, begin: Ints, types: Ints, machines: Ints) -> Floats:
        """Most interruptions with further spot types from an entry on, and other machines."""
        further = self.further_types_hazard[
            begin, np.minimum(types, self.further_types_hazard.shape[1] - 1)
        ]
        extra = np.maximum(machines, 0) * self.next_hazard.max(initial=0.0)
        return np.asarray(own + further + extra)

    def place(self, hazard: Floats) -> Ints:
        """Where both shares stand for so many interruptions or fewer."""
        run = 1.0 / np.maximum(hazard, 1e-12)
        power = np.ceil(np.log(run) / np.log(RUN_GRID) - 1e-9).astype(np.int64)
        return np.asarray(np.clip(power - self.least_power, 0, len(self.share) - 1))

    def for_site(self, space: Space, site: Site) -> "BilledShare":
        """This table for some entries of the site that it was made for."""
        return BilledShare(*_hazards(space, site), self.least_power, self.share, self.plain)


def may_train_in_part(space: Space, site: Site) -> bool:
    """Whether on-demand machines may work alone while others are away."""
    spot = site.entries.spot
    return space.job.resizes and bool(spot.any()) and not bool(spot.all())


def billed_share_of(space: Space, site: Site, speed: Floats) -> BilledShare:
    """The table of a site; one place where nothing is free or the time is the goal."""
    e, most = site.entries, space.limits.max_machines
    first, more, further, fault = _hazards(space, site)
    free = float(e.free_s[e.spot].max(initial=0.0))
    power, share, plain = 0, np.ones(1), np.ones(1)
    if space.limits.goal != "time" and e.spot.any():
        hazard = further[0, -1] + most * (more.max() + fault)
        runs = 1.0 / hazard, float(e.run_mean_s[e.spot].max())
        low, high = (int(np.ceil(np.log(run) / np.log(RUN_GRID) - 1e-9)) for run in runs)
        power = high if free <= 60.0 else low
        each = [_shares(space, site, speed, float(p), free) for p in range(power, high + 1)]
        share, plain = np.minimum.accumulate(np.array(each)[::-1])[::-1].T
    return BilledShare(first, more, further, fault, power, share, plain)


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
    space: Space, site: Site, speed: Floats, power: float, free: float
) -> tuple[float, float]:
    """Least shares at a mean run of about RUN_GRID ** power, for any work and shape of runs."""
    e = site.entries.take(site.entries.spot)
    flop = space.job.global_batch * space.steps_left
    fast = flop / (float(speed.max()) * space.limits.max_machines)
    slow = max(flop / float(speed.min()), 2.0 * fast)
    works = np.geomspace(fast, slow, int(np.log2(slow / fast)) + 2)
    one, least, least_paid = np.ones(len(works)), np.inf, np.inf
    away = float(e.boot_s.min()) + RENDEZVOUS_S
    for sigma in (float(e.run_sigma.min()), float(e.run_sigma.max())):
        law = (one * RUN_GRID**power, one * sigma, one * free)
        paid = paid_share(one * RUN_GRID ** (power - 1.0), *law[1:])
        ratio = least_spot_time_ratio(space.path_count, space.seed, *law, one * away, works)
        least = min(least, float(np.maximum(paid, ratio).min()))
        least_paid = min(least_paid, float(paid.min()))
    return least, least_paid


STEPWISE = 4  # up to this many machines every number is bounded by itself
WIDER = 1.35  # then ranges of them get wider by this factor
TYPES = (2, 3, 5, 8)  # most spot types of a case, where that decides how much of spot is charged
CLASSES = 5  # of networks told apart


@dataclass(frozen=True, slots=True)
class Cases:
    """Clusters bounded together: so many machines, of so many spot types; (cases,)."""

    min_machines: Ints  # machines
    max_machines: Ints
    min_types: Ints  # spot types
    max_types: Ints  # and at most

    def take(self, rows: Bools) -> "Cases":
        """Some of the cases."""
        return Cases(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class SiteBounds:
    """Some entries of a site with all that bounds need, in the order of their networks; (entries,).

    Of these clusters the slowest machine is one of the first `slowest` that fit.
    """

    space: Space
    site: Site
    order: Ints  # place of each entry in the site that was asked about
    slowest: int
    cases: Cases
    machines_allowed: Ints  # most machines that quotas allow
    speed: Floats  # samples/s per machine
    budget_usd_per_hour: Floats  # least USD per hour that a budget counts
    price: Curves  # of listed prices
    budget: Curves | None  # of what a budget counts, where only that can keep it
    machines: Curves  # fewest machines
    groups: Groups
    lines: Shortest
    billed: BilledShare
    seconds: float  # true over predicted seconds of a step, at least, times the steps
    max_step_s: float  # longest step where no fallback helps
    max_spend: float  # most USD per hour times seconds of a step, by the budget
    away_s: float  # least changeover
    fallback_in_time: bool  # whether the fastest could do all of the work by the deadline
    fallback_usd: float  # least bill of the whole work on a fallback; inf: none
    fallback_s: float  # least time of that
    alone_usd: Floats  # least cost of so many of an entry alone, if elastic; inf: it cannot

    def longest_step_s(self, cutoff: float) -> float:
        """The longest step of a cluster that may be below the cutoff.

        A fallback of bill F does a share 1 - D/W at least, so W <= D/(1 - cutoff/F), D being the
        deadline less the changeover. One that would be late alone helps none that is late.
        """
        limit = self.space.limits.deadline_s
        if limit is None or not self.fallback_in_time:
            return self.max_step_s
        if not cutoff < self.fallback_usd:
            return np.inf
        most = max(limit - self.away_s, 0.0) / (1.0 - cutoff / self.fallback_usd)
        return max(self.max_step_s, most / self.seconds * (1.0 + ROUNDING))


def site_bounds_of(space: Space, site: Site, every: Shortest | None = None) -> list[SiteBounds]:
    """A site's prices and speeds, and what limits ask of its clusters of several entries.

    One for each class of networks that the slowest machine of a cluster may have. `every` are
    the lines of all machine columns, if they were made before.
    """
    if every is None:
        every = lines_of(space)
    lines = every.take(site.entries.kind)
    speed = np.maximum(space.columns.compute_per_s[site.entries.kind], 1e-30)
    network = space.columns.network_bytes_per_s[site.entries.kind]
    fits = np.where(network > 0, usable(site, space.limits.max_machines), 0)
    order = np.argsort(network, kind="stable")
    order = order[fits[order] > 0]
    if len(order) < 2:
        return []
    table = billed_share_of(space, site.only(order), speed[order])
    values = np.unique(network[order])
    starts = [float(part[0]) for part in np.array_split(values, min(CLASSES, len(values)))]
    ends = [*starts[1:], np.inf]
    found = []
    for start, end in zip(starts, ends, strict=True):
        mine = order[network[order] >= start]
        slowest = int((network[mine] < end).sum())
        if len(mine) > 1:
            found.append(_bounds_of_rows(space, site, lines, table, mine, slowest, fits))
    return found


def lines_of(space: Space) -> Shortest:
    """The lines of every kind of machine."""
    kinds = np.arange(len(space.columns.names))
    return shortest(space.job, space.columns, kinds, space.limits.max_machines)


def narrowed(b: SiteBounds, alive: Bools, cases: Bools) -> SiteBounds:
    """Bounds for clusters of some entries and cases only."""
    slowest = int(alive[: b.slowest].sum())
    rows = np.flatnonzero(alive)
    some = b.cases.take(cases)
    return _bounds_of_rows(
        b.space, b.site, b.lines, b.billed, rows, slowest, b.machines_allowed, some, b.order
    )


def _bounds_of_rows(
    space: Space,
    whole: Site,
    lines: Shortest,
    table: BilledShare,
    rows: Ints,
    slowest: int,
    fits: Ints,
    cases: Cases | None = None,
    order: Ints | None = None,
) -> SiteBounds:
    """Bounds of clusters of some rows of a site, whose places are `order` if not the rows."""
    site, fits = whole.only(rows), fits[rows]
    e, c, limits = site.entries, space.columns, space.limits
    speed = np.maximum(c.compute_per_s[e.kind], 1e-30)
    spreads = several_spreads_of(c, e.kind)  # clusters of several types, so machines
    sigmas = np.unique(spreads)
    away = float(e.boot_s.min()) + RENDEZVOUS_S
    seconds = float(least_speed_factor(space, sigmas).min()) * space.steps_left
    max_step_s = _longest(space, sigmas, min(away, least_fallback_start(space.sites).seconds))
    # A plan's fallback is no slower than its cluster: with one that is too late both are.
    fall = site.fallbacks.take(np.flatnonzero(site.fallbacks.step_s <= max_step_s))
    has_fallback = len(fall) > 0 and limits.deadline_s is not None and bool(e.spot.any())
    if not has_fallback:
        max_step_s = _longest(space, sigmas, away)
    fallback_usd = float((fall.usd_per_hour * fall.step_s).min(initial=np.inf)) * seconds / 3600.0
    counted, groups = _counted(space, site), groups_of(site, speed)
    cases = cases_of(space, site) if cases is None else cases

    def curve(price: Floats, weights: Floats | None = None, types: int = 0) -> Curves:
        if weights is None:
            weights = weights_of(price, speed)
        return curves(price, speed, groups, weights, e.spot, types)

    kept = limits.budget_usd is not None and not has_fallback and not may_train_in_part(space, site)
    return SiteBounds(
        space=space,
        site=site,
        order=rows if order is None else order[rows],
        slowest=slowest,
        cases=cases,
        machines_allowed=fits,
        speed=speed,
        budget_usd_per_hour=counted,
        price=curve(e.usd_per_hour, types=int(cases.min_types.max(initial=0))),
        budget=curve(counted) if kept else None,
        machines=curve(np.ones(len(e)), np.zeros(1)),
        groups=groups,
        lines=lines.take(rows),
        billed=table.for_site(space, site),
        seconds=seconds,
        max_step_s=max_step_s,
        max_spend=_most_spent(space, e.price_sigma, spreads),
        away_s=away,
        fallback_in_time=has_fallback,
        fallback_usd=fallback_usd if has_fallback else np.inf,
        fallback_s=float(fall.step_s.min()) * seconds if has_fallback else np.inf,
        alone_usd=_alone_usd(space, site, speed, seconds),
    )


def cases_of(space: Space, site: Site) -> Cases:
    """Every case of a site within its quotas, finer where there are few machines."""
    e, most = site.entries, space.limits.max_machines
    types = most_types(site)
    free = space.limits.goal != "time" and bool((e.free_s[e.spot] > 60.0).any())
    tops = [top for top in TYPES if top < min(most, types)] if free else []
    bands = list(zip([0, *(top + 1 for top in tops)], [*tops, min(most, types)], strict=True))
    rows = [
        (*machines, fewest, min(top, machines[1]))
        for machines in machine_ranges(most)
        for fewest, top in bands
        if fewest <= machines[1]
    ]
    return Cases(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def most_types(site: Site) -> int:
    """Most spot types with a machine each that the quotas allow."""
    spot, groups = site.entries.spot, groups_of(site, np.ones(len(site.entries)))
    found = 0
    for group in range(len(groups.room)):
        mine = spot & (groups.of == group)
        rows = [row for row in range(len(site.quota)) if (site.quota_use[row][mine] > 0).all()]
        if not mine.any() or not rows or not np.isfinite(groups.room[group]):
            found += int(mine.sum())
            continue
        use = np.cumsum(np.sort(site.quota_use[rows[0]][mine]))
        found += int((use <= site.quota[rows[0]] + 1e-9).sum())
    return found


def machine_ranges(most: int) -> tuple[tuple[int, int], ...]:
    """Ranges of the number of machines, finer where there are few."""
    ranges, least = [], 2
    while least <= most:
        top = least if least <= STEPWISE else min(int(least * WIDER), most)
        ranges.append((least, top))
        least = top + 1
    return tuple(ranges)


def _longest(space: Space, sigmas: Floats, away_s: float) -> float:
    """The longest step of a cluster that meets the deadline where no fallback helps."""
    if space.limits.deadline_s is None or not len(sigmas):
        return np.inf
    key = (space.path_count, space.seed, space.limits.confidence)
    factor = min(speed_quantile(*key, float(value)) for value in sigmas)
    longest = (space.limits.deadline_s - away_s) / max(factor * space.steps_left, 1e-30)
    return longest * (1.0 + ROUNDING)


def _counted(space: Space, site: Site) -> Floats:
    """What a budget counts of each entry at least, in USD per hour."""
    e, unpaid = site.entries, MOSTLY_PAID if space.limits.confidence >= 0.8 else 0.0
    if (e.run_mean_s[e.spot] < MOSTLY_PAID_RUN_S * space.limits.max_machines).any():
        unpaid = 0.0  # a gang of so many machines may run for less
    return np.where(e.spot & (e.free_s > 60.0), unpaid, 1.0) * e.usd_per_hour


def _most_spent(space: Space, price_sigma: Floats, speed_sigma: Floats) -> float:
    """USD per hour times seconds of a step that no cluster within the budget exceeds."""
    limits = space.limits
    if limits.budget_usd is None or not len(price_sigma):
        return np.inf
    factor = least_quantile(space, speed_sigma, float(price_sigma.max()))
    spent = limits.budget_usd * 3600.0 / max(factor * space.steps_left, 1e-30)
    return spent * (1.0 + ROUNDING)


def least_quantile(space: Space, speed_sigma: Floats, price_sigma: float) -> float:
    """Least speed × price of the path that must keep a limit, of any of some spreads of speed.

    Every spread is tried: paths faster than predicted and slower ones change places, so the
    least may lie between the ends. Of price it is at the largest spread: min(price, 1) falls with
    it in every path.
    """
    key = (space.path_count, space.seed, space.limits.confidence)
    return min(joint_quantile(*key, float(s), price_sigma) for s in np.unique(speed_sigma))


def _alone_usd(space: Space, site: Site, speed: Floats, seconds: float) -> Floats:
    """Least cost if on-demand machines of an entry do all the work of an elastic cluster alone."""
    e = site.entries
    if not may_train_in_part(space, site):
        return np.full(len(e), np.inf)
    usd = e.usd_per_hour / speed * space.job.global_batch * seconds / 3600.0
    return np.where(e.spot, np.inf, float(e.fixed_usd.min()) + usd)
