"""The bounds of a site's clusters: prices, shares of spot time, waits, speeds and limits."""

from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.billed_share import BilledShare, billed_share_of, min_quantile
from recommender.optimize.bounds.cluster import (
    ROUNDING,
    min_speed_factor,
    speed_quantile,
)
from recommender.optimize.bounds.deadline import min_fallback_start
from recommender.optimize.bounds.waiting import UNBOUNDED, Waiting, waiting_of
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.price_curves import (
    Curves,
    Groups,
    curves,
    groups_of,
    sums_from,
    weights_of,
)
from recommender.optimize.space import Entries, Site, Space, most_machines
from recommender.performance.clusters import multi_machine_spreads
from recommender.performance.step_bounds import Shortest, shortest

STEPWISE = 4  # up to this many machines every number is bounded by itself
RANGE_GROWTH = 1.35  # then ranges of them get wider by this factor
# Most spot types of a case, if that decides how much of spot is charged.
CASE_TYPES = (2, 3, 5, 8)


def may_train_in_part(space: Space, site: Site) -> bool:
    """Whether on-demand machines may train alone while spot machines are away."""
    spot = site.entries.spot
    return space.job.resizes and bool(spot.any()) and not bool(spot.all())


@dataclass(frozen=True, slots=True)
class Cases:
    """Groups of clusters bounded together, by numbers of machines and of spot types; (cases,)."""

    min_machines: Ints  # machines
    max_machines: Ints
    min_types: Ints  # spot types
    max_types: Ints  # and at most

    def take(self, rows: Bools) -> "Cases":
        """Some of the cases."""
        return Cases(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Waits:
    """Bounds of a site's clusters on waits for spot and on what a budget allows."""

    waiting: Waiting  # how much of the time spot machines are there
    down: Floats  # (entries,): -log of the availability of one machine; 0 on demand
    down_from: Floats  # (entries + 1, types + 1): of so many spot types from an entry on, at least
    kept: bool  # whether the budget bounds price times time, whatever a fallback does
    bound_time: bool  # whether the time of any cluster that may be good is bounded by that of spot


@dataclass(frozen=True, slots=True)
class SiteBounds:
    """The entries of a site with everything that bounds need, sorted by network; (entries,).

    Separate bounds for each class of networks would prune no more and cost as much again.
    """

    space: Space
    site: Site
    laws: Entries  # of spot machines
    order: Ints  # place of each entry in the site that was asked about
    cases: Cases
    machines_allowed: Ints  # most machines that quotas allow
    speed: Floats  # samples/s per machine
    price: Curves  # of listed prices
    machines: Curves  # fewest machines
    groups: Groups
    lines: Shortest
    billed: BilledShare
    seconds: float  # true over predicted seconds of a step, at least, times the steps
    max_step_s: float  # longest step where no fallback helps
    max_spend: float  # most USD per hour times seconds of a step, by the budget
    min_changeover_s: float  # least changeover
    fallback_in_time: bool  # whether the fastest could do all of the work by the deadline
    fallback_usd: float  # least bill of the whole work on a fallback; inf: none
    fallback_s: float  # least time of that
    on_demand_only_usd: Floats  # least cost of an entry alone, if elastic; inf: it cannot
    spot_usd: float  # least bill of the whole work on spot machines, all of their time charged
    waits: Waits

    def longest_step_s(self, cutoff: float) -> float:
        """The longest step of a cluster that may be below the cutoff.

        A fallback of bill F does at least the share 1 - D/W, so W <= D/(1 - cutoff/F), where D is
        the deadline minus the changeover. A fallback that is late on its own does not help a late
        cluster.
        """
        limit = self.space.limits.deadline_s
        if limit is None or not self.fallback_in_time:
            return self.max_step_s
        if not cutoff < self.fallback_usd:
            return np.inf
        most = max(limit - self.min_changeover_s, 0.0) / (1.0 - cutoff / self.fallback_usd)
        return max(self.max_step_s, most / self.seconds * (1.0 + ROUNDING))


def site_bounds_of(
    space: Space,
    site: Site,
    every: Shortest | None = None,
    laws: Entries | None = None,
    quick: bool = False,
) -> SiteBounds | None:
    """A site's prices and speeds, and what limits require of its clusters of several entries.

    None if fewer than two entries can be used. `every` are the lines of all machine columns, if
    already computed; `laws` and `quick` as in `billed_share_of`.
    """
    if every is None:
        every = lines_of(space)
    lines = every.take(site.entries.kind)
    speed = np.maximum(space.columns.compute_per_s[site.entries.kind], 1e-30)
    network = space.columns.network_bytes_per_s[site.entries.kind]
    fits = np.where(network > 0, most_machines(site, space.limits.max_machines), 0)
    order = np.argsort(network, kind="stable")
    order = order[fits[order] > 0]
    if len(order) < 2:
        return None
    billed = billed_share_of(space, site.only(order), speed[order], laws, quick)
    laws = site.entries if laws is None else laws
    basis = _Basis(space, site.only(order), laws, order, lines.take(order), billed, fits[order])
    return _bounds_of(basis, cases_of(space, basis.site))


def lines_of(space: Space) -> Shortest:
    """The lower lines of the step of every kind of machine."""
    kinds = np.arange(len(space.columns.names))
    return shortest(space.job, space.columns, kinds, space.limits.max_machines)


def narrowed(b: SiteBounds, alive: Bools, cases: Bools) -> SiteBounds:
    """Bounds for clusters of some entries and cases only."""
    basis = _Basis(b.space, b.site, b.laws, b.order, b.lines, b.billed, b.machines_allowed)
    return _bounds_of(basis.only(np.flatnonzero(alive)), b.cases.take(cases))


@dataclass(frozen=True, slots=True)
class _Basis:
    """What the bounds of a site's clusters are made of; arrays have shape (entries,)."""

    space: Space
    site: Site
    laws: Entries
    order: Ints
    lines: Shortest
    billed: BilledShare
    machines_allowed: Ints

    def only(self, rows: Ints) -> "_Basis":
        """The basis of clusters of some entries."""
        return replace(
            self,
            site=self.site.only(rows),
            order=self.order[rows],
            lines=self.lines.take(rows),
            machines_allowed=self.machines_allowed[rows],
        )


@dataclass(frozen=True, slots=True)
class _FallbackBounds:
    """What the fallbacks of a site can do, and the longest step where none helps."""

    max_step_s: float
    in_time: bool = False
    spend: float = np.inf  # USD per hour times seconds of a step
    usd: float = np.inf  # for the whole work
    s: float = np.inf


def _fallback_bounds(
    space: Space, site: Site, sigmas: Floats, changeover_s: float, seconds: float
) -> _FallbackBounds:
    """Bounds on fallbacks; `seconds` as in `SiteBounds`."""
    earliest = min(changeover_s, min_fallback_start(space.sites).seconds)
    max_step_s = _longest(space, sigmas, earliest)
    # A plan's fallback is no slower than its cluster: with one that is too late both are.
    fall = site.fallbacks.take(np.flatnonzero(site.fallbacks.step_s <= max_step_s))
    spot = bool(site.entries.spot.any())
    if not len(fall) or space.limits.deadline_s is None or not spot:
        return _FallbackBounds(_longest(space, sigmas, changeover_s))
    spend = float((fall.usd_per_hour * fall.step_s).min())
    usd, min_s = spend * seconds / 3600.0, float(fall.step_s.min()) * seconds
    return _FallbackBounds(max_step_s, True, spend, usd, min_s)


def _bounds_of(b: _Basis, cases: Cases) -> SiteBounds:
    """Bounds of clusters of the entries of a basis."""
    space, site, e = b.space, b.site, b.site.entries
    c, most = space.columns, space.limits.max_machines
    speed = np.maximum(c.compute_per_s[e.kind], 1e-30)
    spreads = multi_machine_spreads(c, e.kind)  # clusters of several types, so machines
    sigmas = distinct(spreads)
    changeover_s = float(e.boot_s.min()) + RENDEZVOUS_S
    seconds = float(min_speed_factor(space, sigmas).min()) * space.steps_left
    fallback = _fallback_bounds(space, site, sigmas, changeover_s, seconds)
    groups, weights = groups_of(site, speed), weights_of(e.usd_per_hour, speed)
    spot_usd = np.where(e.spot, _whole_job_usd(space, e, speed, seconds), np.inf)
    max_spend = _most_spent(space, e.price_sigma, spreads)
    types = int(cases.min_types.max(initial=0))
    return SiteBounds(
        space=space,
        site=site,
        laws=b.laws,
        order=b.order,
        cases=cases,
        machines_allowed=b.machines_allowed,
        speed=speed,
        price=curves(e.usd_per_hour, speed, groups, weights, e.spot, most, types),
        machines=curves(np.ones(len(e)), speed, groups, np.zeros(1), e.spot, most),
        groups=groups,
        lines=b.lines,
        billed=b.billed.for_site(space, site),
        seconds=seconds,
        max_step_s=fallback.max_step_s,
        max_spend=max_spend,
        min_changeover_s=changeover_s,
        fallback_in_time=fallback.in_time,
        fallback_usd=fallback.usd,
        fallback_s=fallback.s,
        on_demand_only_usd=_on_demand_only_usd(space, site, speed, seconds),
        spot_usd=float(spot_usd.min()),
        waits=_waits(space, site, b.laws, speed, max_spend, types, fallback.spend),
    )


def _waits(
    space: Space,
    site: Site,
    laws: Entries,
    speed: Floats,
    max_spend: float,
    types: int,
    fallback_spend: float,
) -> Waits:
    """Waits of the clusters of a site.

    On-demand machines of an elastic cluster that cannot do all of its work within the budget do a
    part: spot does the rest. Those that can, and fallbacks, need not wait for it. Where none of
    both can, what the cluster itself spends on all of the work is within the budget too: whoever
    does parts of the work pays a mean of what each would for all of it.
    """
    e, budget = site.entries, space.limits.budget_usd is not None
    alone = _min_spend(space, site, speed)
    kept = budget and max_spend <= min(alone, fallback_spend)
    spot_needed = not np.isfinite(fallback_spend) and max_spend <= alone
    down = np.where(e.spot, np.log1p(np.exp(-e.availability_logit)), 0.0)
    bound_time = spot_needed and (budget or not may_train_in_part(space, site))
    on_demand_share = _on_demand_share(space, alone) if spot_needed else 0.0
    # A deadline asks what spot does by then; else only how long it takes is asked.
    asked = bound_time or space.limits.deadline_s is not None
    return Waits(
        waiting=waiting_of(space, laws, on_demand_share) if asked else UNBOUNDED,
        down=down,
        down_from=sums_from(np.where(e.spot, down, np.inf), types),
        kept=kept,
        bound_time=bound_time,
    )


def cases_of(space: Space, site: Site) -> Cases:
    """Every case of a site within its quotas, finer for few machines."""
    e, most = site.entries, space.limits.max_machines
    types = most_types(site)
    decides = space.limits.goal != "time" or space.limits.budget_usd is not None
    free = decides and bool((e.free_s[e.spot] > 60.0).any())
    tops = [top for top in CASE_TYPES if top < min(most, types)] if free else []
    bands = list(zip([0, *(top + 1 for top in tops)], [*tops, min(most, types)], strict=True))
    rows = [
        (*machines, fewest, min(top, machines[1]))
        for machines in machine_ranges(most)
        for fewest, top in bands
        if fewest <= machines[1]
    ]
    return Cases(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def most_types(site: Site) -> int:
    """The most spot types that the quotas allow with one machine each."""
    spot, groups = site.entries.spot, groups_of(site, np.ones(len(site.entries)))
    found = 0
    for group in range(len(groups.room)):
        mine = np.flatnonzero(spot & (groups.of == group))
        rows = np.flatnonzero((site.quota_use[:, mine] > 0).all(axis=1))
        if not len(mine) or not len(rows) or not np.isfinite(groups.room[group]):
            found += len(mine)
            continue
        use = np.cumsum(np.sort(site.quota_use[rows[0]][mine]))
        found += int((use <= site.quota[rows[0]] + 1e-9).sum())
    return found


def machine_ranges(most: int) -> tuple[tuple[int, int], ...]:
    """Ranges of the number of machines, finer for small numbers."""
    ranges, least = [], 2
    while least <= most:
        top = least if least <= STEPWISE else min(int(least * RANGE_GROWTH), most)
        ranges.append((least, top))
        least = top + 1
    return tuple(ranges)


def _longest(space: Space, sigmas: Floats, min_changeover_s: float) -> float:
    """The longest step of a cluster that meets the deadline where no fallback helps."""
    if space.limits.deadline_s is None or not len(sigmas):
        return np.inf
    key = (space.path_count, space.seed, space.limits.confidence)
    factor = min(speed_quantile(*key, float(value)) for value in sigmas)
    longest = (space.limits.deadline_s - min_changeover_s) / max(factor * space.steps_left, 1e-30)
    return longest * (1.0 + ROUNDING)


def _most_spent(space: Space, price_sigma: Floats, speed_sigma: Floats) -> float:
    """USD per hour times seconds of a step that no cluster within the budget exceeds."""
    limits = space.limits
    if limits.budget_usd is None or not len(price_sigma):
        return np.inf
    factor = min_quantile(space, speed_sigma, float(price_sigma.max()))
    spent = limits.budget_usd * 3600.0 / max(factor * space.steps_left, 1e-30)
    return spent * (1.0 + ROUNDING)


def _on_demand_only_usd(space: Space, site: Site, speed: Floats, seconds: float) -> Floats:
    """Least cost if on-demand machines of an entry do all the work of an elastic cluster alone."""
    e = site.entries
    if not may_train_in_part(space, site):
        return np.full(len(e), np.inf)
    return np.where(
        e.spot, np.inf, float(e.fixed_usd.min()) + _whole_job_usd(space, e, speed, seconds)
    )


def _whole_job_usd(space: Space, e: Entries, speed: Floats, seconds: float) -> Floats:
    """Least bill of the whole work on machines of each entry."""
    return e.usd_per_hour / speed * space.job.global_batch * seconds / 3600.0


def _on_demand_share(space: Space, on_demand_only_spend: float) -> float:
    """Most of the work, at the predicted speed, that on-demand machines do within the budget."""
    if space.limits.budget_usd is None:
        return 0.0
    return space.limits.budget_usd * 3600.0 / (space.steps_left * on_demand_only_spend)


def _min_spend(space: Space, site: Site, speed: Floats) -> float:
    """USD per hour times seconds of a step on the cheapest on-demand machines alone; inf: gangs."""
    e = site.entries
    if not may_train_in_part(space, site):
        return np.inf
    return float((e.usd_per_hour / speed)[~e.spot].min()) * space.job.global_batch
