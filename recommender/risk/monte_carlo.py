"""Vectorised Monte Carlo of the time and bill of a job on capacity with outages.

Plans are given as `PathInputs`, everything their time and bill depend on: work, prices, the laws of
runs and outages, the changeover, checkpoints, billing rules and the fallback. Every path of the
common random numbers is simulated run by run:

    wait B  ->  run X: changeover d, then intervals of tau work + C stall  ->  interruption
    durable progress of a run   tau·floor((X - d)+ / (tau + C)),   or (X - d)+·tau/(tau + C)
                                if the last save is faster than the interruption notice
    fallback rule               rent the fallback at the first t with
                                t + (work - durable(t))/speed + reserve >= deadline

`elastic.py` computes what the on-demand part of an elastic cluster does meanwhile.

Times are seconds, prices USD per hour. On-demand machines are the same process with long runs
between faults, and waits for the replacement of a failed machine. Every start of on-demand machines
has a wait (`on_demand_wait.py`); before the first start nothing is paid.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Singles, distinct
from recommender.catalogs.frozen import dataclass
from recommender.risk.elastic import OnDemandPart, end_on_demand, share_until
from recommender.risk.fallback import (
    EndsAlone,
    FirstClusterEnd,
    apply_fallback_rule,
    crossing_heights,
    queue_s,
    ready_s,
)
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.planes import at, first, row
from recommender.risk.policy import has_thresholds
from recommender.risk.random_numbers import (
    SEED,
    RandomNumbers,
    first_paths,
    path_blocks,
    price_factors,
    random_numbers,
    time_factors,
)
from recommender.risk.spot_capacity import (
    CLASS_CAPACITY,
    Capacity,
    Runs,
    drawn_runs,
    simulate_runs,
    work_of_a_run,
)
from recommender.risk.walk import Market, Queues, Step, steps, walk

_CELLS = 1 << 17  # paths × cycles × plans per batch: stays in the second-level cache
_BLOCK_CELLS = 1 << 18  # paths × cycles of a single plan: all 2,048 × 512 at once take 60 MB
_MAX_CYCLES = 512
# Beyond twice those expected: with 10, a spot plan of 2 h of work outlasted them in 1 path of 50,
# and cost 0.7 % less than by 64; with these in 1 of 500, and 0.1 % less (2026-11-29).
MORE_RUNS = 18.0
BEGAN_S = 0.1  # up for less is what single precision leaves of nothing


def simulate_paths(
    plans: PathInputs,
    deadline_s: float | None,
    paths: int,
    seed: int = SEED,
    capacity: Capacity = CLASS_CAPACITY,
    first: int | None = None,
) -> Paths:
    """Simulate every plan on all paths of the common random numbers, or on the first of them."""
    wanted = paths if first is None else first
    result: Paths | None = None
    for batch, count in batches(plans, deadline_s, wanted):
        sample = random_numbers(paths, count, seed)
        sample = sample if first is None else first_paths(sample, first)
        if len(batch) == len(plans):  # most often
            return _simulate_blocks(plans, deadline_s, sample, capacity)
        result = result or Paths.blank(len(plans), wanted)
        result.put(batch, _simulate_blocks(plans.take(batch), deadline_s, sample, capacity))
    return result or Paths.blank(0, wanted)


def _simulate_blocks(
    plans: PathInputs, deadline_s: float | None, sample: RandomNumbers, capacity: Capacity
) -> Paths:
    """Plans on one sample, by blocks of paths where a single plan has very many cells."""
    blocks = path_blocks(sample, _BLOCK_CELLS)
    return Paths.beside([simulate_sample(plans, deadline_s, b, capacity)[0] for b in blocks])


def batches(plans: PathInputs, deadline_s: float | None, paths: int) -> Iterator[tuple[Ints, int]]:
    """Rows simulated at once, and the number of runs drawn for them."""
    cycles = cycles_needed(plans, deadline_s)
    for count in sorted(set(cycles.tolist())):
        rows = np.flatnonzero(cycles == count)
        size = max(1, _CELLS // (paths * count))
        for begin in range(0, len(rows), size):
            yield rows[begin : begin + size], count


@dataclass(frozen=True, slots=True)
class _DrawnBatch:
    """Some plans on their drawn runs: all that does not depend on when their fallbacks start."""

    sample: RandomNumbers
    runs: Runs
    alone: EndsAlone
    heights: Singles

    def take(self, rows: Ints) -> "_DrawnBatch":
        """Some of the plans."""
        runs, alone = self.runs.of(rows), self.alone.take(rows)
        return _DrawnBatch(self.sample, runs, alone, self.heights[:, rows])


@dataclass(frozen=True, slots=True)
class DrawnPlans:
    """Plans whose runs are drawn once, to be simulated with fallbacks that start at other times."""

    plans: PathInputs
    deadline_s: float
    batches: tuple[_DrawnBatch, ...]
    batch: Ints  # of each plan,
    place: Ints  # and its place there

    def earlier(self, rows: Ints, early_s: Floats) -> Paths:
        """Simulate some of the plans with fallbacks that start so many seconds earlier."""
        plans = self.plans.take(rows).earlier(early_s)
        if len(self.batches) == 1:
            return self._on(0, plans, rows)
        result = Paths.blank(len(rows), self.batches[0].sample.key[0])
        for batch in distinct(self.batch[rows]):
            some = np.flatnonzero(self.batch[rows] == batch)
            result.put(some, self._on(batch, plans.take(some), rows[some]))
        return result

    def _on(self, batch: int, plans: PathInputs, rows: Ints) -> Paths:
        drawn = self.batches[batch]
        place = self.place[rows]
        if not np.array_equal(place, np.arange(len(drawn.alone.last))):
            drawn = drawn.take(place)
        end = apply_fallback_rule(
            plans, self.deadline_s, drawn.runs, drawn.alone, drawn.sample, heights=drawn.heights
        )
        return account(plans, PathEnds(drawn.alone, end), drawn.runs, drawn.sample)


def draw_plans(plans: PathInputs, deadline_s: float, paths: int, seed: int = SEED) -> DrawnPlans:
    """Draw the runs of every plan on all paths, as `simulate_paths` does."""
    drawn: list[_DrawnBatch] = []
    batch, place = np.empty((2, len(plans)), dtype=np.int64)
    for rows, count in batches(plans, deadline_s, paths):
        batch[rows], place[rows] = len(drawn), np.arange(len(rows))
        p, sample = plans.take(rows), random_numbers(paths, count, seed)
        runs = simulate_runs(p, sample)
        drawn.append(
            _DrawnBatch(sample, runs, _ends_alone(p, sample, runs), crossing_heights(p, runs))
        )
    return DrawnPlans(plans, deadline_s, tuple(drawn), batch, place)


def cycles_needed(plans: PathInputs, deadline_s: float | None) -> Ints:
    """The number of runs to draw: enough for nearly every path, in steps of eight."""
    runs = plans.work_s / np.maximum(work_of_a_run(plans), 0.25 * plans.run_mean_s)
    if deadline_s is not None:
        with_fallback = plans.fallback_speed > 0
        runs = np.where(with_fallback, np.minimum(runs, deadline_s / plans.run_mean_s), runs)
    wanted = np.clip(2.0 * runs + MORE_RUNS, 8, _MAX_CYCLES)
    step = np.where(wanted <= 64, 8, 64)
    return (np.ceil(wanted / step) * step).astype(np.int64)


def simulate_sample(
    p: PathInputs,
    deadline_s: float | None,
    sample: RandomNumbers,
    capacity: Capacity,
    max_outage_s: float | None = None,
) -> tuple[Paths, Bools]:
    """Simulate plans on one sample of random numbers; also return which paths had enough cycles.

    Those paths would be the same with more cycles. Arrays have shape (plans, paths). With
    `max_outage_s` the fallback takes over when spot has been away that long, whatever the time.
    """
    return _simulate_drawn_runs(
        p, deadline_s, sample, simulate_runs(p, sample, capacity), max_outage_s
    )


def simulate_with_known_speed(
    plan: PathInputs, deadline_s: float | None, paths: int, seed: int = SEED
) -> tuple[Paths, Paths]:
    """Simulate one plan, and again with its predicted speed, on the same runs."""
    sample = random_numbers(paths, int(cycles_needed(plan, deadline_s)[0]), seed)
    sure = replace(plan, speed_sigma=np.zeros(1), cautious_work_s=plan.work_s)
    uncertain, known = [], []
    for block in path_blocks(sample, _BLOCK_CELLS):
        runs = simulate_runs(plan, block)
        uncertain.append(_simulate_drawn_runs(plan, deadline_s, block, runs)[0])
        known.append(_simulate_drawn_runs(sure, deadline_s, block, runs)[0])
    return Paths.beside(uncertain), Paths.beside(known)


def simulate_other_rules(
    plan: PathInputs,
    deadline_s: float | None,
    paths: int,
    max_outage_s: float,
    seed: int = SEED,
) -> tuple[Paths, Paths]:
    """Simulate one plan whose fallback takes over once spot has been away for `max_outage_s`.

    It is also simulated without any fallback, on the same runs.
    """
    sample = random_numbers(paths, int(cycles_needed(plan, deadline_s)[0]), seed)
    runs = simulate_runs(plan, sample)
    never = replace(plan, fallback_speed=np.zeros(1))
    return (
        _simulate_drawn_runs(plan, deadline_s, sample, runs, max_outage_s)[0],
        _simulate_drawn_runs(never, deadline_s, sample, runs)[0],
    )


@dataclass(frozen=True, slots=True)
class PathEnds:
    """Where each path of some plans ends, without and with its fallback; shape (plans, paths)."""

    alone: EndsAlone
    end: FirstClusterEnd


def simulate_to_the_end(
    plans: PathInputs, deadline_s: float | None, paths: int, seed: int = SEED
) -> tuple[Runs, PathEnds]:
    """Simulate the events, but not the bill, of plans with the same number of cycles."""
    sample = random_numbers(paths, int(cycles_needed(plans, deadline_s).max()), seed)
    runs = simulate_runs(plans, sample)
    return runs, path_ends(plans, deadline_s, sample, runs)


def _simulate_drawn_runs(
    p: PathInputs,
    deadline_s: float | None,
    sample: RandomNumbers,
    runs: Runs,
    max_outage_s: float | None = None,
) -> tuple[Paths, Bools]:
    """Plans on runs that are drawn, and which paths had cycles enough.

    With `max_outage_s` the fallback takes over when spot has been away for so long, whatever the
    time.
    """
    if deadline_s is not None and max_outage_s is None and has_thresholds(p).any():
        return _with_thresholds(p, deadline_s, sample, runs)
    ended = path_ends(p, deadline_s, sample, runs, max_outage_s)
    return account(p, ended, runs, sample), ended.alone.finished


def _with_thresholds(
    p: PathInputs, deadline_s: float, sample: RandomNumbers, runs: Runs
) -> tuple[Paths, Bools]:
    """Plans of which some may go back to spot: these are walked, the others as ever."""
    result, paths = Paths.blank(len(p), sample.key[0]), sample.key[0]
    finished = np.ones((len(p), paths), dtype=bool)
    walked = has_thresholds(p)
    rows = np.flatnonzero(walked)
    own = p.take(rows)
    queues = queues_of(own, sample)
    result.put(rows, walk(own, deadline_s, sample, market_of(runs.of(rows), sample), queues))
    others = np.flatnonzero(~walked)
    if len(others):
        plain, finished[others] = _simulate_drawn_runs(
            p.take(others), deadline_s, sample, runs.of(others)
        )
        result.put(others, plain)
    return result, finished


def queues_of(p: PathInputs, sample: RandomNumbers) -> Queues:
    """The waits for on-demand machines."""
    return Queues(
        queue_s(p.at_once, p.wait_s, sample),
        queue_s(p.fallback_at_once, p.fallback_wait_s, sample),
    )


def switching_steps(
    plan: PathInputs, deadline_s: float, paths: int, seed: int = SEED
) -> Iterator[Step]:
    """The decisions of one plan with two thresholds on the paths of `simulate_paths`."""
    sample = random_numbers(paths, int(cycles_needed(plan, deadline_s)[0]), seed)
    market = market_of(simulate_runs(plan, sample), sample)
    return steps(plan, deadline_s, sample, market, queues_of(plan, sample))


def market_of(runs: Runs, sample: RandomNumbers) -> Market:
    """When spot is there, and what the checkpoints of interrupted runs do."""
    p = runs.inputs
    notified = sample.by_cycle("notice")[:, None] < row(p.notice_saves)
    moved = (row(p.move_after_s) == 0.0) | (runs.waits >= row(p.move_after_s))
    return Market(
        runs.lengths.astype(np.float64),
        runs.waits.astype(np.float64),
        moved.astype(np.float64),
        np.broadcast_to(notified, runs.lengths.shape).astype(np.float64),
        runs.cluster,
    )


def path_ends(
    p: PathInputs,
    deadline_s: float | None,
    sample: RandomNumbers,
    runs: Runs,
    max_outage_s: float | None = None,
) -> PathEnds:
    """Where plans end on runs that are drawn."""
    alone = _ends_alone(p, sample, runs)
    end = apply_fallback_rule(p, deadline_s, runs, alone, sample, max_outage_s)
    return PathEnds(alone, end)


def _ends_alone(p: PathInputs, sample: RandomNumbers, runs: Runs) -> EndsAlone:
    """Where plans would end without their fallbacks."""
    work = p.work_s[:, None] * time_factors(p.speed_sigma[:, None], sample.speed)
    done = runs.durable + runs.most_work >= work[runs.plans].astype(np.float32)[None]
    last, finished = first(done)
    last, finished = last[runs.cluster], finished[runs.cluster]
    place = runs.places(last)
    start, durable = at(runs.starts, place), at(runs.durable, place)
    left = work - durable
    intervals = np.floor(np.maximum(left - 1e-3, 0.0) / p.interval_s[:, None])
    use = left + p.stall_s[:, None] * intervals
    use += ready_s(p, runs, place)
    if runs.on_demand_part is not None:
        # An elastic job can end while the spot part is away, even before the last run starts.
        end_s = end_on_demand(p, runs.on_demand_part, place, left) - start
        use = np.where((left <= 0.0) & (p.elastic_share[:, None] > 0.0), end_s, use)
    if finished.all():
        again = np.zeros_like(use)
    else:  # `left` of the work is to be done from the start of the last drawn run on
        drawn = drawn_runs(p, runs, place)
        again = np.where(finished, 0.0, np.maximum(left, 0.0) / drawn.done)
        use = np.where(finished, use, again * drawn.elapsed_s)
    queued = queue_s(p.at_once, p.wait_s, sample)
    return EndsAlone(work, last, finished, start + use, use, again, queued)


def account(p: PathInputs, ended: PathEnds, runs: Runs, sample: RandomNumbers) -> Paths:
    """Time, bill and where the time went."""
    work, end, queued = ended.alone.work, ended.end, ended.alone.queued
    place = runs.places(end.run)
    waited, billed = at(runs.waited, place), at(runs.billed_before, place)
    again = end.repeats
    used = np.maximum(end.used_s, np.where(end.used_s > 0.0, p.minimum_s[:, None], 0.0))
    waited = np.where(again > 0.0, waited * (1.0 + again), waited - end.waiting_s)
    waiting = np.clip(waited, 0.0, end.stop_s)
    time = end.stop_s + end.delay_s + end.rest_s
    up = end.stop_s - waiting
    on_spot = billed + np.where(again > 0.0, billed * again, used)
    if (again > 0.0).any():
        on_spot += billed * again * (drawn_runs(p, runs, place).longer - 1.0)
    interruptions = end.run * (1.0 + again)
    moves = interruptions
    if runs.moves is not None:
        moves = at(runs.moves, place) * (1.0 + again)
    spot_usd = p.spot_usd_per_hour[:, None] * on_spot / 3600.0
    cost = (
        p.fixed_usd[:, None]
        + p.base_usd_per_hour[:, None] * p.rented_s(time) / 3600.0
        + p.fallback_usd_per_hour[:, None] * end.rest_s / 3600.0
        + p.usd_per_move[:, None] * moves
    )
    paths = Paths(
        time_s=time + queued,
        cost_usd=cost + spot_usd * price_factors(p.spot_price_sigma[:, None], sample.price),
        expected_usd=cost + spot_usd,
        spot_s=on_spot,
        running_s=up + end.rest_s,
        fallback_s=end.rest_s,
        waiting_s=waiting + end.delay_s + queued,
        queued_s=queued,
        fallback_queued_s=end.delay_s,
        interruptions=interruptions,
        moves=moves,
        restarts_s=np.minimum(interruptions * p.changeover_s[:, None], up),
        trained_s=end.done_s + (work - end.done_s) / np.maximum(p.fallback_speed[:, None], 1e-9),
        alone_s=np.zeros_like(work),
        work_s=work,
        lost_work_s=_lost_work(p, end, up - np.minimum(p.changeover_s[:, None], up), up > BEGAN_S),
    )
    return (
        paths
        if runs.on_demand_part is None
        else _with_part(p, runs.on_demand_part, place, end, paths)
    )


def _lost_work(p: PathInputs, end: FirstClusterEnd, capacity: Floats, began: Bools) -> Floats:
    """Work that could have been done while saves, lost work and restarts took place.

    The first start-up is none of these, be it that of the fallback.
    """
    restarts = (end.rest_s > 0.0) & began
    again = np.where(restarts, (p.fallback_speed * p.fallback_start_s)[:, None], 0.0)
    return np.maximum(capacity - end.done_s, 0.0) + again


def _with_part(
    p: PathInputs, on_demand_part: OnDemandPart, place: Ints, end: FirstClusterEnd, paths: Paths
) -> Paths:
    """Paths with what elastic clusters did while their spot part was away."""
    part = share_until(p, on_demand_part, place, end.stop_s, end.repeats)
    alone_s = part.work / np.maximum(p.elastic_share[:, None], 1e-9)
    lost = _lost_work(p, end, part.capacity, end.stop_s > 0.0)

    def chosen(elastic: Floats, gang: Floats) -> Floats:
        return np.where(p.elastic_share[:, None] > 0.0, elastic, gang)

    return replace(
        paths,
        waiting_s=chosen(end.delay_s + paths.queued_s, paths.waiting_s),
        restarts_s=chosen(np.clip(end.stop_s - alone_s, 0.0, part.restarts_s), paths.restarts_s),
        trained_s=chosen(paths.trained_s - part.work + alone_s, paths.trained_s),
        alone_s=chosen(alone_s, paths.alone_s),
        lost_work_s=chosen(lost, paths.lost_work_s),
    )
