"""Walks plans with two thresholds through their paths, event by event, all paths at once.

Such a plan may go on demand and back to spot several times (`policy.py`). A lane is one plan on one
path. In cycle k (an outage and the run behind it) every lane that still runs takes three steps:

    away     the job waits for spot, or goes on demand
    rented   a job on demand ends, goes back to the spot that is there, or goes on
    run      changeover, intervals and saves until the job ends, switches or is interrupted

Capacity comes and goes whatever the job does; paths that outlast the drawn cycles repeat them.
"""

from collections.abc import Iterator
from dataclasses import dataclass as mutable
from dataclasses import fields

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.policy import SwitchPolicy, policies_of
from recommender.risk.random_numbers import RandomNumbers, price_factors, time_factors

ROUNDED_S = 1e-3  # work left that counts as none


@dataclass(frozen=True, slots=True)
class Market:
    """When spot is there on each path of each cluster; (cycles, clusters, paths), seconds."""

    lengths: Floats
    waits: Floats
    moved: Floats  # whether the checkpoint moves before the run
    notified: Floats  # whether a last save beats the interruption
    cluster: Ints  # of each plan

    def cycle(self, number: int, plan: Ints, path: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """The wait, the run, whether it moves and is notified, on some lanes."""
        at = (number % len(self.lengths), self.cluster[plan], path)
        return self.waits[at], self.lengths[at], self.moved[at], self.notified[at]


@dataclass(frozen=True, slots=True)
class Queues:
    """Waits for on-demand machines on each path; (plans, paths)."""

    own_s: Floats  # for those of the cluster, before its start
    fallback_s: Floats  # at each start of the fallback


@mutable(slots=True)
class _Lanes:
    """What some lanes have done; each of shape (lanes,)."""

    edge_s: Floats  # end of the market's last run
    entry_s: Floats  # since when the job is on spot, or waits for it
    done: Floats  # durable work
    rented_s: Floats  # when the on-demand machines were asked for; nan: on spot or waiting
    known: Bools  # whether a step was timed
    began: Bools  # whether anything was ever up
    time_s: Floats  # nan while the job runs
    billed_s: Floats
    up_s: Floats  # on spot
    spot_work: Floats
    fallback_s: Floats
    fallback_queued_s: Floats
    waited_s: Floats
    restarts_s: Floats
    lost: Floats
    interruptions: Floats
    moves: Floats

    @staticmethod
    def at_request(count: int) -> "_Lanes":
        made = {each.name: np.zeros(count) for each in fields(_Lanes)}
        made |= {"rented_s": np.full(count, np.nan), "time_s": np.full(count, np.nan)}
        made |= {name: np.zeros(count, dtype=bool) for name in ("known", "began")}
        return _Lanes(**made)  # type: ignore[arg-type]

    def take(self, rows: Ints) -> "_Lanes":
        return _Lanes(*(getattr(self, each.name)[rows] for each in fields(_Lanes)))

    def put(self, rows: Ints, some: "_Lanes") -> None:
        for each in fields(_Lanes):
            getattr(self, each.name)[rows] = getattr(some, each.name)


@dataclass(frozen=True, slots=True)
class _Terms:
    """Figures of each lane's plan that a step needs; (lanes,)."""

    work: Floats  # of the job, on this path
    predicted: Floats
    cautious: Floats
    delay_s: Floats  # until on-demand machines are there
    changeover_s: Floats
    interval_s: Floats
    stall_s: Floats
    start_s: Floats
    minimum_s: Floats
    free_s: Floats
    policy: SwitchPolicy

    def take(self, rows: Ints) -> "_Terms":
        named = {name: getattr(self, name)[rows] for name in self.__slots__ if name != "policy"}
        return _Terms(policy=self.policy.take(rows), **named)


def walk(
    p: PathInputs, deadline_s: float, sample: RandomNumbers, market: Market, waits: Queues
) -> Paths:
    """Time and bill of gangs with two thresholds on every path."""
    terms = _terms(p, deadline_s, sample, waits)
    lanes = _Lanes.at_request(len(p) * sample.key[0])
    for _ in _steps(lanes, terms, market, sample.key[0]):
        pass
    return _paths(p, lanes, terms.work, waits, sample)


@dataclass(frozen=True, slots=True)
class Step:
    """What lanes that still ran did in one cycle; moments are nan where nothing was decided."""

    lane: Ints  # plan × paths + path
    start_s: Floats  # of the market's run
    end_s: Floats
    left_s: Floats  # when it went on demand while spot was away,
    back_s: Floats  # went back to spot,
    switched_s: Floats  # and went on demand from a run
    done: Floats  # durable work at the end of the cycle


def steps(
    p: PathInputs, deadline_s: float, sample: RandomNumbers, market: Market, waits: Queues
) -> Iterator[Step]:
    """The decisions of plans with two thresholds, cycle by cycle."""
    terms = _terms(p, deadline_s, sample, waits)
    return _steps(_Lanes.at_request(len(p) * sample.key[0]), terms, market, sample.key[0])


def _steps(lanes: _Lanes, terms: _Terms, market: Market, paths: int) -> Iterator[Step]:
    """Take all lanes through cycle after cycle until none runs any more."""
    live, cycle = np.arange(len(lanes.time_s)), 0
    while len(live):
        some, own = lanes.take(live), terms.take(live)
        wait, length, moved, notified = market.cycle(cycle, live // paths, live % paths)
        start = some.edge_s + wait
        end = start + length
        left = _away(some, own, start, moved * (cycle > 0))
        back = _rented(some, own, start, end)
        switched = _run(some, own, end, notified > 0.0)
        yield Step(live, start, end, left, back, switched, some.done.copy())
        left_run = np.flatnonzero(~np.isnan(switched))
        while len(left_run):
            again = _second_look(some, own, left_run, live, (start, end, notified))
            left_run = left_run[~np.isnan(again.switched_s)]
            yield again
        some.edge_s = end
        lanes.put(live, some)
        live = live[np.isnan(some.time_s)]
        cycle += 1


def _second_look(
    lanes: _Lanes, terms: _Terms, rows: Ints, lane: Ints, run: tuple[Floats, Floats, Floats]
) -> Step:
    """Lanes that left a run may go back to it: the stop saved work, the true speed is known."""
    some, own = lanes.take(rows), terms.take(rows)
    start, end, notified = (each[rows] for each in run)
    back = _rented(some, own, start, end)
    there, found = np.flatnonzero(~np.isnan(back)), np.full(len(rows), np.nan)
    if len(there):
        again, terms = some.take(there), own.take(there)
        found[there] = _run(again, terms, end[there], notified[there] > 0.0)
        some.put(there, again)
    lanes.put(rows, some)
    return Step(lane[rows], start, end, np.full(len(rows), np.nan), back, found, some.done)


def _terms(p: PathInputs, deadline_s: float, sample: RandomNumbers, waits: Queues) -> _Terms:
    paths = sample.key[0]
    work = p.work_s[:, None] * time_factors(p.speed_sigma[:, None], sample.speed)
    rules = policies_of(p, deadline_s - waits.own_s)
    named = {
        name: np.broadcast_to(getattr(rules, name), work.shape).ravel() for name in rules.__slots__
    }

    def each(values: Floats) -> Floats:
        return np.repeat(values, paths)

    plan = (p.changeover_s, p.interval_s, p.stall_s, p.fallback_start_s)
    changeover, interval, stall, start = map(each, plan)
    return _Terms(
        work.ravel(), each(p.work_s), each(p.cautious_work_s), waits.fallback_s.ravel(),
        changeover, interval, stall, start, each(p.minimum_s), each(p.free_s),
        SwitchPolicy(**named),
    )  # fmt: skip


def _left(lanes: _Lanes, own: _Terms, predicted: Floats) -> Floats:
    """The work left as the policy knows it: predicted until a step was timed."""
    return np.where(lanes.known, own.work, predicted) - lanes.done


def _away(lanes: _Lanes, own: _Terms, start: Floats, moved: Floats) -> Floats:
    """Lanes without on-demand machines wait for the run, unless their patience ends first."""
    ends = np.maximum(own.policy.patience_ends_s(_left(lanes, own, own.cautious)), lanes.edge_s)
    waits = np.isnan(lanes.rented_s)
    leaves = waits & (ends < start)
    lanes.waited_s += np.where(waits, np.minimum(ends, start) - lanes.edge_s, 0.0)
    lanes.moves += waits & (moved > 0.0)
    lanes.rented_s = np.where(leaves, ends, lanes.rented_s)
    lanes.entry_s = start.copy()
    return np.where(leaves, ends, np.nan)


def _rented(lanes: _Lanes, own: _Terms, start: Floats, end: Floats) -> Floats:
    """Lanes on demand end, or go back to the run that is there."""
    rented = ~np.isnan(lanes.rented_s)
    if not rented.any():
        return np.full(len(start), np.nan)
    trains = lanes.rented_s + own.delay_s + own.start_s
    left = own.work - lanes.done
    done_s = trains + own.policy.need_s(left)
    wanted = own.policy.back_from_s(trains, left)
    back = np.maximum(wanted, start)
    returns = rented & (back < np.minimum(end, done_s))
    ends = rented & ~returns & ((done_s <= end) | np.isinf(wanted))
    stop = np.where(returns, back, done_s)
    closed = returns | ends
    lanes.fallback_s += np.where(closed, stop - lanes.rented_s - own.delay_s, 0.0)
    lanes.fallback_queued_s += np.where(closed, own.delay_s, 0.0)
    lanes.lost += np.where(closed & lanes.began, own.start_s * own.policy.speed, 0.0)
    lanes.began |= closed
    lanes.known |= closed
    lanes.done = np.where(returns, lanes.done + (back - trains) * own.policy.speed, lanes.done)
    lanes.moves += returns
    lanes.entry_s = np.where(returns, back, lanes.entry_s)
    lanes.time_s = np.where(ends, done_s, lanes.time_s)
    lanes.rented_s = np.where(returns, np.nan, lanes.rented_s)
    return np.where(returns, back, np.nan)


def _run(lanes: _Lanes, own: _Terms, end: Floats, notified: Bools) -> Floats:
    """Lanes on spot: the job ends, goes on demand, or is interrupted."""
    on_spot = np.isnan(lanes.rented_s) & np.isnan(lanes.time_s)
    entry, cycle = lanes.entry_s, own.interval_s + own.stall_s
    pace = own.interval_s / cycle
    ready = np.minimum(entry + own.changeover_s, end)
    early = np.maximum(own.policy.last_moment_s(_left(lanes, own, own.predicted)), entry)
    stops_early = early < ready
    trains = ~stops_early & (end > ready)
    left = own.work - lanes.done
    intervals = np.floor(np.maximum(left - ROUNDED_S, 0.0) / own.interval_s)
    finish = np.where(trains, ready + left + own.stall_s * intervals, np.inf)
    late = np.where(trains, ready + _until_switch(own, ready, left), np.inf)
    switch = np.where(stops_early, early, late)
    switches = on_spot & (switch < np.minimum(end, finish))
    ends = on_spot & ~switches & (finish <= end)
    taken = on_spot & ~switches & ~ends
    stop = np.where(switches, switch, np.where(ends, finish, end))
    trained = np.maximum(stop - ready, 0.0)
    whole = np.floor(trained / cycle) * own.interval_s
    kept = np.where(taken & ~notified, whole, trained * pace)
    kept = np.where(ends, left, np.minimum(kept, left))
    _book(lanes, own, on_spot, taken, stop - entry, kept)
    lanes.known |= on_spot & trains
    lanes.time_s = np.where(ends, finish, lanes.time_s)
    lanes.rented_s = np.where(switches, switch, lanes.rented_s)
    lanes.interruptions += taken
    return np.where(switches, switch, np.nan)


def _until_switch(own: _Terms, ready: Floats, left: Floats) -> Floats:
    """Seconds of a run's training until slack is used up; what trains since a save is not safe."""
    speed, cycle = own.policy.speed, own.interval_s + own.stall_s
    pace = own.interval_s / cycle
    slack = own.policy.last_moment_s(left) - ready
    later = cycle + (slack - cycle) * speed / np.maximum(speed - pace, 1e-12)
    found = np.where(slack <= cycle, np.maximum(slack, 0.0), later)
    return np.where((slack > cycle) & (speed <= pace), np.inf, found)


def _book(
    lanes: _Lanes, own: _Terms, on_spot: Bools, taken: Bools, up_s: Floats, kept: Floats
) -> None:
    """A run's bill, its work, and what was lost in it."""
    up_s = np.where(on_spot, up_s, 0.0)
    paid = np.maximum(up_s, own.minimum_s) * (up_s > 0.0)
    lanes.billed_s += np.where(taken & (up_s < own.free_s), 0.0, paid)
    # The first changeover is no restart, by the time that machines are up.
    free = np.where(lanes.fallback_s > 0.0, 0.0, own.changeover_s)
    first = np.minimum(free, lanes.up_s + up_s) - np.minimum(free, lanes.up_s)
    lanes.lost += np.where(on_spot, up_s - kept - first, 0.0)
    lanes.restarts_s += np.minimum(own.changeover_s, up_s) - first
    lanes.began |= up_s > 0.0
    lanes.up_s += up_s
    lanes.spot_work += np.where(on_spot, kept, 0.0)
    lanes.done += np.where(on_spot, kept, 0.0)


def _paths(
    p: PathInputs, lanes: _Lanes, work: Floats, waits: Queues, sample: RandomNumbers
) -> Paths:
    """The figures of each plan on each path."""
    shape = (len(p), sample.key[0])
    got = {each.name: getattr(lanes, each.name).reshape(shape) for each in fields(_Lanes)}
    work, price = work.reshape(shape), price_factors(p.spot_price_sigma[:, None], sample.price)
    other = (
        p.fixed_usd[:, None]
        + p.base_usd_per_hour[:, None] * p.rented_s(got["time_s"]) / 3600.0
        + p.fallback_usd_per_hour[:, None] * got["fallback_s"] / 3600.0
        + p.usd_per_move[:, None] * got["moves"]
    )
    spot = p.spot_usd_per_hour[:, None] * got["billed_s"] / 3600.0
    speed = p.fallback_speed[:, None]
    return Paths(
        time_s=got["time_s"] + waits.own_s,
        cost_usd=other + spot * price,
        expected_usd=other + spot,
        spot_s=got["billed_s"],
        running_s=got["up_s"] + got["fallback_s"],
        fallback_s=got["fallback_s"],
        waiting_s=got["waited_s"] + got["fallback_queued_s"] + waits.own_s,
        queued_s=waits.own_s,
        fallback_queued_s=got["fallback_queued_s"],
        interruptions=got["interruptions"],
        moves=got["moves"],
        restarts_s=got["restarts_s"],
        trained_s=got["spot_work"] + (work - got["spot_work"]) / speed,
        alone_s=np.zeros(shape),
        work_s=work,
        lost_work_s=np.maximum(got["lost"], 0.0),
    )
