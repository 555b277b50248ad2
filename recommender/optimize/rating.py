"""Rates clusters in closed form: cost, time and overhead, alone and with each likely fallback.

Every cluster of one entry, thousands of them, gets a rough estimate of its cost and time in one
pass over columns. Those that are good at some price of time get rates in many scenarios
(`renewal_rates.py`), with every checkpoint path and with the fallbacks that are worth trying. Rates
choose what is simulated (`program.py`); nothing that is printed rests on them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Candidate, Cluster, counts_table
from recommender.optimize.evaluate import (
    RENDEZVOUS_S,
    RESERVE_S,
    Plans,
    Reduced,
    plans_without_fallback,
    reduced,
)
from recommender.optimize.fallback_choices import choices_of
from recommender.optimize.renewal_rates import (
    SPEED_LEVEL,
    FallbackRates,
    Rates,
    rates,
    with_fallback,
    within_overhead,
)
from recommender.optimize.space import Site, Space, numbers_allowed
from recommender.performance.clusters import spread_at
from recommender.plan.limits import Limits
from recommender.risk.laws import RUN_FAMILY, gang_doublings, gang_hazard, logistic
from recommender.risk.normal_law import normal_cdf

# Cost × time^θ, from cheapest to fastest; so many clusters of each market are kept by each.
EXPONENTS = (0.0, 0.15, 0.4, 1.0, 3.0, 10.0)
KEPT = 40
KEPT_BY_GOAL = 150
MARGINS = (1.0, 1.5, 2.2)  # times the usual cost and time: what the chance asks for
RESTORE_S = 60.0  # of a checkpoint, in the rough estimate
MIN_SD = 1e-3  # of a price that is known
PATIENT = 0.5  # share of the interruptions after which a patient cluster moves, roughly
LONG = 6.0  # deadlines: beyond it is late is all that counts of a time
BY_SCENARIO = 500  # plans with a fallback that are worked out scenario by scenario,
OF_EACH = 10  # and those of each table
EARLIER = 120  # plans over an overhead limit whose last moments are looked for
# Plans estimated over the overhead limit by up to this factor stay candidates; their goal is
# multiplied by it.
OVER = 3.0


_Figures = tuple[Floats, Floats, Floats]  # expected cost, mean and spread of the time; (plans,)


@dataclass(frozen=True, slots=True)
class Rough(Table):
    """Every cluster of one entry, roughly; shape (clusters,)."""

    site: Ints
    entry: Ints
    machines: Ints
    spot: Bools
    usd: Floats
    time_s: Floats
    max_usd_per_hour: Floats
    min_usd: Floats  # the work alone, nothing lost: no plan of the cluster costs less
    min_s: Floats
    speed_sigma: Floats  # of ln of the true time

    def allowed(self, limits: Limits) -> Bools:
        """Which clusters meet the limits that hold at every moment."""
        return limits.at_every_moment(self.machines, self.max_usd_per_hour)

    def promising(self, limits: Limits) -> Ints:
        """The clusters that are good at some price of time, of each market."""
        kept, fits = np.zeros(len(self), dtype=bool), self.allowed(limits)
        log_usd, log_s = np.log(np.maximum(self.usd, 1e-9)), np.log(self.time_s)
        for market in (False, True):
            rows = np.flatnonzero(fits & (self.spot == market))
            for exponent in EXPONENTS:
                kept[rows[_least(log_usd[rows] + exponent * log_s[rows], KEPT)]] = True
            for margin in MARGINS:
                kept[rows[_least(self.goal(limits, margin)[rows], KEPT_BY_GOAL)]] = True
        return np.flatnonzero(kept)

    def goal(self, limits: Limits, margin: float = 1.0) -> Floats:
        """What is minimised; what misses a limit, with a margin for bad luck, is worse."""
        late = self.time_s * margin / (limits.deadline_s or np.inf)
        over = self.usd * margin / (limits.budget_usd or np.inf)
        missed = np.maximum(late, 1.0) * np.maximum(over, 1.0)
        return np.asarray((self.time_s if limits.goal == "time" else self.usd) * missed)


def _least(values: Floats, count: int) -> Ints:
    """The places of so many smallest values, of equal ones the first; without sorting all."""
    if len(values) <= count:
        return np.arange(len(values))
    places = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return places[np.argsort(values[places], kind="stable")[:count]]


def rough_estimates(space: Space, step_s: Floats) -> Rough:
    """Cost and time of every cluster of one entry within the quotas.

    `step_s` has shape (kinds, machines).
    """
    parts = [
        _rough_at(space, index, site, step_s)
        for index, site in enumerate(space.sites)
        if site.singles
    ]
    columns: list[Any] = [
        np.concatenate([np.zeros(0, dtype=kind), *(getattr(part, name) for part in parts)])
        for name, kind in zip(Rough.__slots__, (int, int, int, bool, *[float] * 6), strict=True)
    ]
    return Rough(*columns)


def _rough_at(space: Space, index: int, site: Site, step_s: Floats) -> Rough:
    e = site.entries
    row, column = np.nonzero(numbers_allowed(site, step_s))
    n, spot = column + 1, e.spot[row]
    step, e = step_s[e.kind[row], column], e.take(row)
    run, sigma, free = e.run_mean_s / gang_hazard(n, e.co_interruption), e.run_sigma, e.free_s
    away, work = e.boot_s + RENDEZVOUS_S + RESTORE_S, step * space.steps_left
    useful = np.maximum(RUN_FAMILY.excess(away, run, sigma) / run, 1e-3)
    up = logistic(e.availability_logit - e.availability_slope * gang_doublings(n))
    idle = (1.0 - up) ** e.zone_count / up
    trains = np.where(spot, work / useful, work)
    long = RUN_FAMILY.min_long_share(np.maximum(free, 1.0), run, sigma)
    charged = np.where(spot & (free > 60.0), long, 1.0)
    waits = np.where(spot, trains * idle, 0.0)  # on demand most often none
    moves = np.where(spot, trains / run, 0.0) * np.where(e.move_after_s > 0.0, PATIENT, 1.0)
    hourly = e.usd_per_hour * n
    usd = hourly * (trains * charged + away) / 3600.0 + e.fixed_usd + e.usd_per_move * moves
    return Rough(
        site=np.full(len(row), index),
        entry=row,
        machines=n,
        spot=spot,
        usd=usd,
        time_s=trains + away + waits,
        max_usd_per_hour=e.max_usd_per_hour * n,
        min_usd=hourly * charged * work / 3600.0,
        min_s=work,
        speed_sigma=spread_at(space.columns, e.kind, n),
    )


@dataclass(frozen=True, slots=True)
class Rated:
    """Clusters of one site with their checkpoint paths, alone, in closed form; shape (plans,)."""

    index: int  # of the site
    rows: Ints  # the entries of the site that are used
    site: Site  # with these only
    plans: Plans
    found: Reduced
    alone: Rates

    def __len__(self) -> int:
        return len(self.plans)

    def take(self, rows: Ints) -> "Rated":
        """Some of the plans."""
        some = (self.plans.take(rows), self.found.take(rows), self.alone.take(rows))
        return Rated(self.index, self.rows, self.site, *some)

    @property
    def price_sd(self) -> Floats:
        """Sd of ln of the price of the spot machines; 0 without any."""
        inputs = self.found.inputs
        return np.where(inputs.spot_usd_per_hour > 0.0, inputs.spot_price_sigma, 0.0)

    @property
    def level(self) -> Floats:
        """By how much ln of the time differs from one level of speed to the next."""
        return self.found.inputs.speed_sigma * SPEED_LEVEL

    @property
    def clusters(self) -> list[Cluster]:
        """The cluster of each plan."""
        return [self.candidate(row, -1).cluster for row in range(len(self))]

    def candidate(self, plan: int, fallback: int) -> Candidate:
        """A plan with one of the site's fallbacks, or none."""
        counts = self.plans.counts[plan]
        used = np.flatnonzero(counts)
        return Candidate(
            self.index,
            tuple(self.rows[used].tolist()),
            tuple(counts[used].tolist()),
            int(self.plans.checkpoint_path[plan]),
            fallback,
        )

    def fallback_rates(self, space: Space, plan: Ints, fallback: Ints) -> FallbackRates:
        """What some plans need to know of their fallbacks; (pairs,)."""
        fall, saves = self.site.fallbacks, self.found.saves
        reserved_s = fall.law.reserve_s(space.limits.confidence)[fallback]
        reserve = RESERVE_S + saves.stall_s[plan] + reserved_s
        return FallbackRates(
            start_s=fall.boot_s[fallback] + RENDEZVOUS_S + saves.restore_s[plan],
            step_ratio=fall.step_s[fallback] / self.found.step_s[plan],
            usd_per_hour=fall.usd_per_hour[fallback],
            latest_s=(space.limits.deadline_s or 0.0) - reserve,
            wait_s=np.where(reserved_s > 0.0, reserve, 0.0),
        )


def rated(space: Space, clusters: Sequence[Cluster]) -> list[Rated]:
    """Rates of clusters with every checkpoint path, site by site."""
    groups: dict[tuple[int, bool], list[Cluster]] = {}
    for cluster in clusters:
        groups.setdefault((cluster.site, len(cluster.entries) > 1), []).append(cluster)
    found = (_rated_at(space, index, *counts_table(mine)) for (index, _), mine in groups.items())
    return [each for each in found if len(each)]


def _rated_at(space: Space, index: int, rows: Ints, counts: Ints) -> Rated:
    site = space.sites[index].only(rows)
    plans = plans_without_fallback(space, site, counts)
    found = reduced(space, site, plans)
    allowed = np.flatnonzero(found.allowed)
    found = found.take(allowed)
    return Rated(index, rows, site, plans.take(allowed), found, rates(found.inputs))


@dataclass(frozen=True, slots=True)
class RatedPlans(Table):
    """Plans of one question, each a row of a table with one fallback or none; shape (plans,)."""

    table: Ints  # which of the tables
    row: Ints  # of the plan there
    fallback: Ints
    usd: Floats  # expected
    time_s: Floats  # mean, nothing later than `LONG` deadlines
    goal_value: Floats  # what is minimised
    chance: Floats  # that all limits are met
    planned_usd: Floats  # by the program of phases (`program.py`); inf: it is no solution
    places: Floats  # of the list of its spot machines; 0 on demand


def rated_plans(space: Space, tables: Sequence[Rated]) -> RatedPlans:
    """The plans of some tables under limits, alone and with the fallbacks worth trying."""
    alone, pairs = list[RatedPlans](), list[RatedPlans]()
    for number, table in enumerate(tables):
        rows = np.flatnonzero(structural(space.limits, table.found))
        figures = _figures(space.limits, table.alone)
        alone.append(_alone(space.limits, number, table, figures).take(rows))
        if space.limits.deadline_s is not None and len(table.site.fallbacks):
            pairs.append(_pairs(space, table, alone[-1], figures))
    if not alone:
        none: Any = np.zeros(0, dtype=np.int64)
        return RatedPlans(none, none, none, *np.zeros((6, 0)))
    return RatedPlans.joined([*alone, *_by_scenario(space, tables, pairs)])


def structural(limits: Limits, found: Reduced) -> Bools:
    """Which plans meet the limits that hold at every moment, fallbacks left out."""
    return limits.at_every_moment(found.fleet.machines, found.max_usd_per_hour)


def _alone(limits: Limits, number: int, table: Rated, figures: _Figures) -> RatedPlans:
    usd, time_s, spread_s = figures
    due = np.inf if limits.deadline_s is None else limits.deadline_s
    return RatedPlans(
        np.full(len(table), number),
        np.arange(len(table)),
        np.full(len(table), -1),
        usd,
        time_s,
        *goal_and_chance(limits, table.alone, table.price_sd, table.level),
        np.where(time_s + spread_s <= due, usd, np.inf),
        table.found.gang.has_spot * table.found.gang.zone_count,
    )


def _figures(limits: Limits, found: Rates) -> _Figures:
    """Expected cost, mean and standard deviation of the time; (plans,)."""
    most = np.inf if limits.deadline_s is None else LONG * limits.deadline_s
    times = np.minimum(found.time_s, most)
    mean = found.mean(times)
    variance = found.mean(times * times) - mean**2
    return found.mean(found.usd), mean, np.sqrt(np.maximum(variance, 0.0))


def _pairs(space: Space, table: Rated, alone: RatedPlans, figures: _Figures) -> RatedPlans:
    """Some plans with each of their fallbacks, as the program of means divides the work."""
    choices = choices_of(space, table.site.fallbacks, table.found.step_s[alone.row])
    at, column = np.nonzero((choices >= 0) & table.found.gang.has_spot[alone.row, None])
    pairs = replace(alone.take(at), fallback=choices[at, column])
    usd, mean, spread = (each[pairs.row] for each in figures)
    work_s = table.alone.mean(table.alone.work_s)[pairs.row]
    terms = table.fallback_rates(space, pairs.row, pairs.fallback)
    planned = _planned_usd((usd, mean, spread), work_s, terms)
    return replace(pairs, planned_usd=planned).take(np.isfinite(planned))


def _by_scenario(
    space: Space, tables: Sequence[Rated], pairs: Sequence[RatedPlans]
) -> list[RatedPlans]:
    """The first pairs by the program of means, worked out scenario by scenario."""
    first = _first([p.planned_usd for p in pairs], BY_SCENARIO)
    some = [p.take(rows) for p, rows in zip(pairs, first, strict=True) if len(rows)]
    if not some:
        return []
    chosen = [(tables[int(p.table[0])], p) for p in some]
    found = Rates.joined([table.alone.take(p.row) for table, p in chosen])
    terms = FallbackRates.joined([t.fallback_rates(space, p.row, p.fallback) for t, p in chosen])
    sd = np.concatenate([table.price_sd[p.row] for table, p in chosen])
    limits, last = space.limits, with_fallback(found, terms)
    usd, time_s, goal, chance = *_figures(limits, last)[:2], *goal_and_chance(limits, last, sd)
    if limits.max_overhead is not None:
        over = _within_reach(limits, found, terms, last)
        early = within_overhead(found.take(over), terms.take(over), limits.max_overhead)
        usd[over], time_s[over], _ = _figures(limits, early)
        goal[over], chance[over] = goal_and_chance(limits, early, sd[over])
    joined = RatedPlans.joined(some)
    return [replace(joined, usd=usd, time_s=time_s, goal_value=goal, chance=chance)]


def _first(values: Sequence[Floats], count: int) -> list[Ints]:
    """Of several tables the places of so many least values, and of each table of some."""
    together = np.concatenate([np.zeros(0), *values])
    few = len(together) <= count
    most = np.inf if few else float(np.partition(together, count)[count])
    least = [_least(each, OF_EACH) for each in values]
    return [
        distinct(np.concatenate([np.flatnonzero(e < most), own]))
        for e, own in zip(values, least, strict=True)
    ]


def _within_reach(limits: Limits, alone: Rates, terms: FallbackRates, last: Rates) -> Ints:
    """Plans over the overhead limit that may cost least if their fallbacks take over earlier.

    With so much of the work on spot that no more of it is lost than the limit allows.
    """
    most = limits.max_overhead or 0.0
    over = np.flatnonzero(last.mean(last.lost) > most)
    some = alone.take(over)
    kept = np.minimum(most / np.maximum(some.mean(some.lost), 1e-9), 1.0)
    whole_s = some.mean(some.work_s) * terms.step_ratio[over]
    whole_usd = terms.usd_per_hour[over] * whole_s / 3600.0
    usd = kept * some.mean(some.usd) + (1.0 - kept) * whole_usd
    return over[_least(usd, EARLIER)]


def _planned_usd(alone: _Figures, work_s: Floats, terms: FallbackRates) -> Floats:
    """The cost of both phases, as the program of means divides the work; inf where it is late.

    φ = (T + σ - D)/(T + σ - T_f) of the work on the fallback: the share at which both phases end
    together at the deadline.
    """
    usd, mean, spread = alone
    late = mean + spread - terms.latest_s
    whole_s = terms.start_s + work_s * terms.step_ratio
    share = np.clip(late / np.maximum(mean + spread - whole_s, 1e-9), 0.0, 1.0)
    share = np.where(late <= 0.0, 0.0, share)
    both = (1.0 - share) * usd + share * terms.usd_per_hour * whole_s / 3600.0
    return np.where(whole_s < terms.latest_s, both, np.inf)


def goal_and_chance(
    limits: Limits, found: Rates, price_sd: Floats, level: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """What is minimised, and how often the limits are met; (plans,).

    A scenario stands for all times within half a `level` of ln of its own.

    `price_sd`: of ln of a plan's spot price, which scenarios leave out.
    """
    met = np.ones(found.usd.shape)
    if limits.deadline_s is not None:
        early = (limits.deadline_s - found.time_s) / np.maximum(found.time_s, 1e-9)
        met *= np.clip(0.5 + early / np.maximum(level, MIN_SD)[..., None], 0.0, 1.0)
    if limits.budget_usd is not None:
        room = np.log(limits.budget_usd / np.maximum(found.usd, 1e-9))
        met *= normal_cdf(room / np.maximum(price_sd, MIN_SD)[:, None])
    chance = found.mean(met)
    by_time = limits.goal == "time"
    goal = found.trimmed(found.time_s) if by_time else found.mean(found.usd)
    if limits.max_overhead is not None:
        over = np.maximum(found.mean(found.lost) / np.maximum(limits.max_overhead, 1e-9), 1.0)
        chance, goal = np.where(over <= OVER, chance, 0.0), goal * over
    return goal, chance
