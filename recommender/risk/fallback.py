"""The fallback rule: when on-demand machines take over."""

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.elastic import (
    OnDemandPart,
    hand_over_from_on_demand,
    height_before_training,
)
from recommender.risk.on_demand_wait import wait_s
from recommender.risk.path_inputs import PathInputs
from recommender.risk.planes import at, first, row
from recommender.risk.random_numbers import RandomNumbers
from recommender.risk.spot_capacity import Runs, drawn_runs

# A round over the listed places until none has given machines: about a minute for each request
# that fails, and one for the plan to be made again (assumed).
ROUND_S_PER_PLACE = 60.0


def failover_round_s(places: int) -> float:
    """Seconds until a scheduler has found that none of its locations has spot."""
    return ROUND_S_PER_PLACE * (places + 1)


def ready_s(p: PathInputs, runs: Runs, place: Ints) -> Floats:
    """Seconds from the start of a run until it trains (or ends before that)."""
    return np.minimum(p.changeover_s[:, None], at(runs.lengths, place))


def queue_s(at_once: Floats, median_s: Floats, sample: RandomNumbers) -> Floats:
    """The wait of each path for on-demand machines at their start; (plans, paths)."""
    if np.all(at_once >= 1.0):
        return np.zeros((len(at_once), sample.key[0]))
    return wait_s(at_once[:, None], median_s[:, None], sample.supply[None])


@dataclass(frozen=True, slots=True)
class FirstClusterEnd:
    """Where each path stopped on the first cluster; shape (plans, paths)."""

    run: Ints
    used_s: Floats  # of the last run; 0 if stopped while waiting
    waiting_s: Floats  # wait of the last run that did not happen
    stop_s: Floats
    rest_s: Floats  # on the fallback: training, restart and restore
    delay_s: Floats  # until the fallback was there
    done_s: Floats  # work done there
    repeats: Floats  # how often the sampled runs were repeated; 0 where they were enough


@dataclass(frozen=True, slots=True)
class EndsAlone:
    """Where each path would end on its first cluster without a fallback; shape (plans, paths)."""

    work: Floats  # of the job, at the path's speed
    last: Ints  # run in which it would be done
    finished: Bools  # whether so many runs were drawn
    time: Floats  # moment at which it would be done, from when its machines are there
    used_s: Floats  # of the last run; negative if done while waiting for it
    repeats: Floats  # how often the drawn runs are repeated; 0 where they are enough
    queued: Floats  # before the cluster's on-demand machines were there

    def take(self, rows: Ints) -> "EndsAlone":
        """Those of some plans."""
        return EndsAlone(*(getattr(self, name)[rows] for name in self.__slots__))


def apply_fallback_rule(
    p: PathInputs,
    deadline_s: float | None,
    runs: Runs,
    alone: EndsAlone,
    sample: RandomNumbers,
    max_outage_s: float | None = None,
    heights: Singles | None = None,
) -> FirstClusterEnd:
    """Find where each path leaves its first cluster: at its end, or when the fallback takes over.

    With `max_outage_s` the remaining time does not matter: the fallback takes over as soon as spot
    has been away that long. `heights` are those of `crossing_heights`, if they are known.
    """
    work, time, nothing = alone.work, alone.time, np.zeros_like(alone.time)
    waiting_s = np.maximum(-alone.used_s, 0.0)
    plain = FirstClusterEnd(
        run=alone.last,
        used_s=alone.used_s,
        waiting_s=waiting_s,
        stop_s=time,
        rest_s=nothing,
        delay_s=nothing,
        done_s=work,
        repeats=alone.repeats,
    )
    if deadline_s is None or not np.any(p.fallback_speed > 0.0):
        return plain
    if max_outage_s is None:
        heights = crossing_heights(p, runs) if heights is None else heights
        crossed = _crossing(p, deadline_s, runs, alone, heights)
    else:
        crossed = _first_outage(max_outage_s, time, runs)
    run, start, stop, durable, repeated = crossed
    handed_over = (p.fallback_speed[:, None] > 0.0) & (stop < time)
    speed = np.maximum(p.fallback_speed[:, None], 1e-9)
    rest = (work - durable) / speed + p.fallback_start_s[:, None]
    delay = queue_s(p.fallback_at_once, p.fallback_wait_s, sample)
    return FirstClusterEnd(
        run=np.where(handed_over, run, alone.last),
        used_s=np.where(
            handed_over, np.maximum(stop - start, 0.0) * (repeated == 0.0), alone.used_s
        ),
        waiting_s=np.where(handed_over, np.maximum(start - stop, 0.0), waiting_s),
        stop_s=np.where(handed_over, stop, time),
        rest_s=np.where(handed_over, rest, 0.0),
        delay_s=np.where(handed_over, delay, 0.0),
        done_s=np.where(handed_over, durable, work),
        repeats=np.where(handed_over, repeated, alone.repeats),
    )


def crossing_heights(p: PathInputs, runs: Runs) -> Singles:
    """The highest f·t - durable(t) that the rule sees in each run; (cycles, plans, paths).

    Just before its last save if the fallback is faster than the cluster trains, and just before its
    first one if it is slower: the height then falls from save to save. What comes later in a run
    is no reason to switch earlier, so the rule knows nothing that it has not seen. It does not
    depend on what the rule reserves.
    """
    cycle, pace = _cycle_and_pace(runs.inputs)
    saved = np.maximum(runs.usable - row(cycle), np.float32(0.0))
    speed, ends = row(p.fallback_speed), runs.of_plans(runs.starts + runs.lengths)
    # From the first save to the last one the height moves by so much.
    later = row(p.fallback_speed - pace[runs.cluster]) * runs.of_plans(saved)
    height = speed * (ends - runs.of_plans(saved))
    height += np.maximum(later, np.float32(0.0))
    height -= runs.of_plans(runs.durable)
    part = runs.on_demand_part
    if part is not None:
        plans = OnDemandPart(*(runs.of_plans(getattr(part, name)) for name in part.__slots__))
        own = height_before_training(p, plans, runs.of_plans(runs.durable))
        np.maximum(height, own, out=height)
    return height


def _cycle_and_pace(p: PathInputs) -> tuple[Floats, Floats]:
    """Seconds from one save to the next, and the work per second meanwhile; (plans,)."""
    cycle = p.interval_s + p.stall_s
    return cycle, p.interval_s / cycle


def _crossing(
    p: PathInputs, deadline_s: float, runs: Runs, alone: EndsAlone, heights: Singles
) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """First moment at which the time left is the time to finish on the fallback.

    With speed f, h(t) = f·t - durable(t) crosses f·(D - reserve) - work. Within a run the
    durable progress just before a save is used; the switch itself saves first. Until the first step
    the rule counts with the predicted work, then with that of the path, which it has measured. A
    path that outlasts the draws repeats them (elapsed e, work w) up to the crossing
    h = (1 + a)·(f·e - w): its last drawn run ends as every other does.
    Returns run, its start, moment (before the start: while waiting), durable progress, a.
    """
    speed, work = p.fallback_speed[:, None], alone.work
    cycle, pace = (each[:, None] for each in _cycle_and_pace(p))
    due = deadline_s - alone.queued - p.handover_s[:, None]
    mark = speed * due - work
    run, rings = first(heights >= mark.astype(np.float32)[None])
    place = runs.places(run)
    start, durable = at(runs.starts, place), at(runs.durable, place)
    ready = ready_s(p, runs, place)
    gap = mark - (speed * (start + ready) - durable)
    flat = gap / np.maximum(speed, 1e-9)
    steep = cycle + (gap - speed * cycle) / np.maximum(speed - pace, 1e-9)
    trains = np.where(gap <= speed * cycle, flat, steep)
    kept = durable + np.maximum(trains, 0.0) * pace
    stop = np.maximum(start + ready + trains, 0.0)
    if runs.on_demand_part is not None:
        taken = hand_over_from_on_demand(p, runs.on_demand_part, place, mark, durable)
        early = (taken.stop_s < start + ready) & (p.elastic_share[:, None] > 0.0)
        stop, kept = np.where(early, taken.stop_s, stop), np.where(early, taken.durable, kept)
    beyond = ~rings & (alone.repeats > 0.0)
    repeated = np.zeros_like(stop)
    if beyond.any():
        drawn = drawn_runs(p, runs, place)
        left = mark - (speed * start - durable)
        most = left / np.maximum(speed * drawn.elapsed_s - drawn.done, 1e-9)
        repeated = np.where(beyond, np.maximum(most, 0.0), 0.0)
        stop = np.where(beyond, start + repeated * drawn.elapsed_s, stop)
        kept = np.where(beyond, durable + repeated * drawn.done, kept)
    seen = run, start, stop, np.clip(kept, 0.0, work), repeated
    told = (p.speed_sigma > 0.0) | (p.cautious_work_s > p.work_s)
    return _before_the_first_step(p, runs, due, seen) if told.any() else seen


def _before_the_first_step(
    p: PathInputs, runs: Runs, due: Floats, seen: tuple[Ints, Floats, Floats, Floats, Floats]
) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """The crossing where nothing was trained before it: with what was predicted instead.

    With the cautious prediction while no spot is there, with the usual one in a changeover. Where
    neither crosses before the first step, the rule looks again then.
    """
    run, start, stop, kept, repeated = seen
    part = runs.on_demand_part
    trained = runs.usable if part is None else np.maximum(runs.usable, part.work)
    trains, _ = first(runs.of_plans(trained) > 0.0)
    place = runs.places(trains)
    first_step = at(runs.starts, place) + ready_s(p, runs, place)
    if part is not None:
        first_step = np.where(at(part.work, place) > 0.0, at(part.begins, place), first_step)
    speed = np.maximum(p.fallback_speed, 1e-9)
    away, here = (
        np.maximum(due - (work / speed)[:, None], 0.0) for work in (p.cautious_work_s, p.work_s)
    )
    looks = int(trains.max()) + 1
    starts, waits = (runs.of_plans(each[:looks]) for each in (runs.starts, runs.waits))
    booted = starts + runs.of_plans(np.minimum(runs.lengths, row(runs.inputs.changeover_s))[:looks])
    waited = np.maximum(away, starts - waits)
    moment = np.where(waited < starts, waited, np.inf)
    moment = np.minimum(moment, np.where(here < booted, np.maximum(here, starts), np.inf))
    soonest, found = first(moment < first_step)
    told = np.take_along_axis(moment, soonest[None], axis=0)[0]
    again = ~found & (stop < first_step)
    nothing = found | again
    run = np.where(found, soonest, np.where(again, trains, run))
    start = np.where(nothing, at(runs.starts, runs.places(run)), start)
    stop = np.where(found, told, np.where(again, first_step, stop))
    return run, start, stop, np.where(nothing, 0.0, kept), np.where(nothing, 0.0, repeated)


def _first_outage(
    max_outage_s: float, time: Floats, runs: Runs
) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """The first wait for spot that outlasts the patience, and its end; as `_crossing` returns it.

    Paths that outlast the draws meet none beyond them.
    """
    run, outlasts = first(runs.of_plans(runs.waits) > np.float32(max_outage_s))
    place = runs.places(run)
    start, durable = at(runs.starts, place), at(runs.durable, place)
    stop = np.where(outlasts, start - at(runs.waits, place) + max_outage_s, np.inf)
    return run, start, np.where(stop < time, stop, time), durable, np.zeros_like(time)
