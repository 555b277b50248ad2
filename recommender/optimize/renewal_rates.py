"""Closed-form estimates of plans: what a renewal argument says of cost, time and overhead.

A job on spot alternates between runs X (mean M = 1/Λ) and waits B. A run trains after the
changeover d, at the pace τ/(τ + C), and loses what was not saved. Over many cycles

    a = τ/(τ + C)·E[(X - d)+] - (1 - notice)·P(X > d)·τ/2      useful seconds of a run
    N = W/(a + s·E[B])                                       interruptions of work W
    T = d + W·(τ + C)/τ + N·(M - a·(τ + C)/τ + E[B])           seconds
    K = base·T + spot·(share charged)·(T without waits)      USD
    o = (W·C/τ + N·(M - a·(τ + C)/τ))/W                        checkpoint overhead

with s the speed of the on-demand part alone (0 for a gang), which trains while spot is away.
Short jobs meet no interruption with the chance that what is left of the run at hand is long enough.
What makes chances is not the law of one wait but how good the zone is, whether it is up at the
request and how fast the job really is: each plan is worked out for the same few *scenarios* of
these, each with its weight.

These rank: a sum over few scenarios is neither a bound nor what is printed. Plans are simulated
(`risk/monte_carlo.py`).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from recommender.arrays import Floats, Table
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, logistic
from recommender.risk.move_after import patient_wait_s, share_moved
from recommender.risk.normal_law import normal_quantile
from recommender.risk.on_demand_wait import wait_s
from recommender.risk.path_inputs import PathInputs

ZONES = 6  # levels of how good the listed zones are
OUTAGES = 4  # lengths of what is left of an outage at the request
SPEEDS = 3  # true over predicted speed
SPEED_LEVEL = 0.967  # sd from one of these to the next: the normal quantile of 5/6
MIN_CHANCE = 0.05  # of an interruption, where their number is shared out over the runs with some
# Interruptions of a run over their mean, where there are some: thirds of an exponential law.
COUNTS = (0.19, 0.72, 2.09)
# Moments at which a fallback may take over: shares of the time from a usual end of the job to the
# deadline, then of the time until that end.
BEYOND_USUAL, OF_USUAL = (1.0, 0.7, 0.45, 0.25, 0.1), (0.9, 0.6, 0.35, 0.15)
MIDDLE = 0.05  # on either side is left out of the trimmed mean, as in `risk/run_statistics.py`


@lru_cache(maxsize=1)
def _scenarios() -> tuple[Floats, Floats, Floats, Floats]:
    """Every combination of the levels: states of capacity, and speeds in each.

    The zone, a standard normal; what is left of an outage at the request, a share of uniform draws,
    0 where capacity is there; the weight among the states up or not; the speeds, standard normal.
    """
    speed = _levels(SPEEDS)
    residue = np.concatenate([[0.0], (np.arange(OUTAGES) + 0.5) / OUTAGES])
    grid = np.meshgrid(_levels(ZONES), residue, indexing="ij")
    zone, left = (axis.ravel() for axis in grid)
    share = np.where(left > 0.0, 1.0 / OUTAGES, 1.0) / (ZONES * SPEEDS)
    return zone, left, share, speed


def _levels(count: int) -> Floats:
    # the middles of equally likely parts
    return normal_quantile((np.arange(count) + 0.5) / count)


@dataclass(frozen=True, slots=True)
class Rates(Table):
    """Plans in every scenario; shape (plans, scenarios), those with interruptions first."""

    weight: Floats
    time_s: Floats
    usd: Floats
    work_s: Floats  # at its true speed
    lost: Floats  # to checkpoints, lost work and restarts, per useful work
    fallback_share: Floats  # of the work that a fallback does

    def mean(self, values: Floats) -> Floats:
        """Weighted mean over the scenarios; (plans,)."""
        return np.asarray((values * self.weight).sum(axis=1))

    def median(self, values: Floats) -> Floats:
        """The value that half of the scenarios do not exceed; (plans,)."""
        value, _, reached = self._ordered(values)
        at = np.minimum((reached < 0.5).sum(axis=1), value.shape[1] - 1)
        return np.asarray(value[np.arange(len(at)), at])

    def trimmed(self, values: Floats) -> Floats:
        """Mean of the middle nine tenths; (plans,)."""
        value, weight, reached = self._ordered(values)
        weight = weight * ((reached >= MIDDLE) & (reached - weight <= 1.0 - MIDDLE))
        return np.asarray((value * weight).sum(axis=1) / weight.sum(axis=1))

    def _ordered(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """The values of each plan in ascending order, their weights and cumulative weights."""
        order = np.argsort(values, axis=1)
        weight = np.take_along_axis(self.weight, order, axis=1)
        return np.take_along_axis(values, order, axis=1), weight, np.cumsum(weight, axis=1)


@dataclass(frozen=True, slots=True)
class _Capacity:
    """Waits for capacity; shape (plans, states)."""

    weight: Floats  # of the zone and of being up at the request
    wait_s: Floats  # before a later run
    first_s: Floats  # before the first
    moved: Floats  # share of the interruptions after which the checkpoint moves

    def at_each_speed(self, speeds: int) -> "_Capacity":
        """These figures at every speed; shape (plans, states × speeds)."""
        return _Capacity(*(getattr(self, n).repeat(speeds, axis=1) for n in self.__slots__))


def rates(p: PathInputs) -> Rates:
    """Evaluate plans in every scenario, each without its fallback."""
    zone, residue, share, speed = _scenarios()
    cycle, capacity = _cycle(p), _capacity(p, zone, residue, share).at_each_speed(len(speed))
    slower = np.exp(p.speed_sigma[:, None] * speed[None])
    work = np.tile(p.work_s[:, None] * slower, len(zone))
    left = np.maximum(work - p.elastic_share[:, None] * capacity.first_s, 0.0)
    count, lasts = _interruptions(p, cycle, capacity, left)
    cases = (_worked_out(p, cycle, capacity, work, left, n) for n in (count, 0.0 * count))
    time, usd, lost = (np.concatenate(both, axis=1) for both in zip(*cases, strict=True))
    weight = np.tile(capacity.weight, 2) * np.concatenate([1.0 - lasts, lasts], axis=1)
    whole = np.tile(work, 2)
    return Rates(weight, time, usd, whole, lost, np.zeros_like(whole))


def _worked_out(
    p: PathInputs, cycle: "_Cycle", capacity: _Capacity, work: Floats, left: Floats, count: Floats
) -> tuple[Floats, Floats, Floats]:
    """Time, bill and lost work of plans that are interrupted so often; (plans, scenarios)."""
    core, pace = p.elastic_share[:, None], cycle.pace[:, None]
    by_core = core * count * _core_s(p, capacity)
    trained_s = np.maximum(left - by_core, 0.0) / pace
    up_s = p.changeover_s[:, None] + trained_s + count * cycle.lost_s[:, None]
    first_s = np.where(left > 0.0, capacity.first_s, work / np.maximum(core, 1e-9))
    time = up_s + first_s + count * capacity.wait_s
    free = count / (count + 1.0) * (1.0 - cycle.billed)[:, None]
    billed = np.where(left > 0.0, up_s * (1.0 - free), 0.0)
    # Waiting for on-demand machines costs nothing.
    paid_s = np.where(p.spot_usd_per_hour[:, None] > 0.0, time, up_s)
    usd = p.usd_per_move[:, None] * count * capacity.moved + p.fixed_usd[:, None]
    usd += p.base_usd_per_hour[:, None] * p.rented_s(paid_s) / 3600.0
    usd += p.spot_usd_per_hour[:, None] * billed / 3600.0
    stalls = left / pace - left
    lost = (stalls + count * cycle.lost_s[:, None]) / np.maximum(work, 1e-9)
    return time, usd, lost


@dataclass(frozen=True, slots=True)
class _Cycle:
    """One run of each plan; shape (plans,)."""

    pace: Floats  # τ/(τ + C)
    useful_s: Floats  # that it trains, when it is interrupted
    lost_s: Floats  # by its interruption: the changeover after it, and what is done again
    billed: Floats  # share of it that is charged


def _cycle(p: PathInputs) -> _Cycle:
    pace = p.interval_s / (p.interval_s + p.stall_s)
    trains = RUN_FAMILY.survival(p.changeover_s, p.run_mean_s, p.run_sigma)
    usable = RUN_FAMILY.excess(p.changeover_s, p.run_mean_s, p.run_sigma)
    redone = (1.0 - p.notice_saves) * trains * np.minimum(0.5 * p.interval_s, 0.5 * usable)
    useful = np.maximum(pace * usable - redone, 1e-6 * p.run_mean_s)
    long = RUN_FAMILY.min_long_share(np.maximum(p.free_s, 1.0), p.run_mean_s, p.run_sigma)
    billed = np.where(p.free_s > 60.0, long, 1.0)
    return _Cycle(pace, useful, p.run_mean_s - useful / pace, billed)


def _core_s(p: PathInputs, capacity: _Capacity) -> Floats:
    """Seconds that the on-demand part trains alone after an interruption, until spot is back."""
    return np.asarray(np.maximum(capacity.wait_s + (p.boot_s - p.resize_s)[:, None], 0.0))


def _interruptions(
    p: PathInputs, cycle: _Cycle, capacity: _Capacity, left: Floats
) -> tuple[Floats, Floats]:
    """How many where there are some, and the chance of none; (plans, scenarios).

    None if what is left of the run at hand lasts, else as many as there are on average.

    A stationary process meets left/useful of them on average, all of them in the runs that
    are interrupted at all.
    """
    needed = left / cycle.pace[:, None] + p.changeover_s[:, None]
    lasts = np.clip(_chance_to_last(p, needed), 0.0, 1.0)
    each = cycle.useful_s[:, None] + p.elastic_share[:, None] * _core_s(p, capacity)
    count = np.maximum(left / each / np.maximum(1.0 - lasts, MIN_CHANCE), 1.0)
    return np.where(left <= 0.0, 0.0, count), lasts


def _chance_to_last(p: PathInputs, needed_s: Floats) -> Floats:
    """The chance that a run lasts so long, from its start or else from now on."""
    found = np.empty_like(needed_s)
    mean, sigma = p.run_mean_s[:, None], p.run_sigma[:, None]
    new, met = np.flatnonzero(p.runs_from_start), np.flatnonzero(~p.runs_from_start)
    found[new] = RUN_FAMILY.survival(needed_s[new], mean[new], sigma[new])
    found[met] = RUN_FAMILY.excess(needed_s[met], mean[met], sigma[met]) / mean[met]
    return found


def _capacity(p: PathInputs, zone: Floats, residue: Floats, share: Floats) -> _Capacity:
    up = logistic(p.availability_logit[:, None] + p.zone_sd[:, None] * zone[None])
    outage = p.run_mean_s[:, None] * (1.0 - up) / up / p.zone_count[:, None]
    typical = logistic(p.availability_logit) * (1.0 - p.correlation)
    nowhere = ((1.0 - typical) ** (p.zone_count - 1.0))[:, None]
    wait = outage * nowhere
    moved = np.ones_like(outage)
    if np.any(p.move_after_s > 0.0):
        one_s = outage * p.zone_count[:, None]
        wait, moved = patient_wait_s(p, one_s, nowhere), share_moved(p, one_s)
    down = (1.0 - up) * nowhere
    late = residue > 0.0
    alone = p.spot_usd_per_hour <= 0.0
    # What is left of an outage met at random: length-biased, and part of it is over.
    uniform = np.where(late, residue, 0.5)[None]
    drawn = OUTAGE_FAMILY.lengths(normal_quantile(uniform), p.outage_sigma[:, None])
    biased = OUTAGE_FAMILY.residual_factors(drawn, p.outage_sigma[:, None], np.full((1, 1), 0.5))
    queue = wait_s(np.zeros((len(p), 1)), p.wait_s[:, None], 1.0 - uniform)
    first = np.where(alone[:, None], queue, outage * drawn * biased)
    down = np.where(alone[:, None], 1.0 - p.at_once[:, None], down)
    first = np.where(late[None], first, 0.0)
    weight = np.where(late[None], down, 1.0 - down) * share[None]
    return _Capacity(weight, wait, first, moved)


@dataclass(frozen=True, slots=True)
class FallbackRates(Table):
    """A fallback for each plan; shape (plans,)."""

    start_s: Floats
    step_ratio: Floats  # its step over that of the plan's cluster
    usd_per_hour: Floats
    latest_s: Floats  # until when it must be done: the deadline less what the rule reserves
    wait_s: Floats  # expected, for its machines


def within_overhead(found: Rates, fall: FallbackRates, max_overhead: float) -> Rates:
    """Plans with a fallback that takes over as late as an overhead limit allows, of some moments.

    Where none meets the limit, at the one with the least overhead: from some moment on, earlier
    ones restart more runs than they save.
    """
    spread, least = _spread_out(found), np.full(len(fall.latest_s), np.inf)
    usual_s = spread.median(spread.time_s)
    usual_s, late_s = np.minimum(usual_s, fall.latest_s), np.maximum(fall.latest_s - usual_s, 0.0)
    moments = [usual_s + share * late_s for share in BEYOND_USUAL]
    latest_s, rows, some, own = moments[0].copy(), np.arange(len(least)), spread, fall
    for tried_s in (*moments, *(share * usual_s for share in OF_USUAL)):
        over = least[rows] > max_overhead
        if not over.all():
            rows = rows[over]
            some, own = spread.take(rows), fall.take(rows)
        if not len(rows):
            break
        lost = some.mean(_handed_over(some, replace(own, latest_s=tried_s[rows]))[2])
        better = lost < least[rows]
        latest_s[rows[better]], least[rows[better]] = tried_s[rows[better]], lost[better]
    return with_fallback(spread, replace(fall, latest_s=latest_s))


def _spread_out(found: Rates) -> Rates:
    """Scenarios with interruptions in three: with few, with some and with many of them.

    A fallback that takes over early does the work of the runs with many.
    """
    half, parts = found.weight.shape[1] // 2, len(COUNTS)

    def spread(values: Floats) -> Floats:
        some, none = values[:, :half], values[:, half:]
        each = (np.maximum(none + times * (some - none), 0.0) for times in COUNTS)
        return np.concatenate([*each, none], axis=1)

    def repeated(values: Floats, share: float) -> Floats:
        some = np.tile(share * values[:, :half], parts)
        return np.concatenate([some, values[:, half:]], axis=1)

    return Rates(
        weight=repeated(found.weight, 1.0 / parts),
        time_s=spread(found.time_s),
        usd=spread(found.usd),
        work_s=repeated(found.work_s, 1.0),
        lost=spread(found.lost),
        fallback_share=repeated(found.fallback_share, 1.0),
    )


def with_fallback(found: Rates, fall: FallbackRates) -> Rates:
    """Plans with a fallback that takes over just in time.

    If a scenario is late on its own, the share φ = (T - D)/(T - T_f) of the work is done on the
    fallback, which alone takes T_f = start + W/speed.
    """
    whole_s, share, lost = _handed_over(found, fall)
    alone, due_s = fall.start_s[:, None] + whole_s, fall.latest_s[:, None]
    used = share > 0.0
    hours = (share * whole_s + used * fall.start_s[:, None]) / 3600.0
    usd = (1.0 - share) * found.usd + hours * fall.usd_per_hour[:, None]
    ends = np.where(alone < due_s, due_s + fall.wait_s[:, None], alone + fall.wait_s[:, None])
    time = np.where(used, ends, found.time_s)
    return Rates(found.weight, time, usd, found.work_s, lost, share)


def _handed_over(found: Rates, fall: FallbackRates) -> tuple[Floats, Floats, Floats]:
    """The whole work on a fallback, the share that it does, and what the plan loses."""
    whole_s = found.work_s * fall.step_ratio[:, None]
    alone, due_s = fall.start_s[:, None] + whole_s, fall.latest_s[:, None]
    over = (found.time_s - due_s) / np.maximum(found.time_s - alone, 1e-9)
    share = np.where(alone < due_s, np.clip(over, 0.0, 1.0), 1.0)
    share = np.where(found.time_s > due_s, share, 0.0)
    again = (share > 0.0) * fall.start_s[:, None] / np.maximum(whole_s, 1e-9)
    return whole_s, share, (1.0 - share) * found.lost + again
