"""Single simulated runs of a plan, from the request for machines to the last step.

The lucky, the typical and the unlucky run are those that 5, 50 and 95 % of the simulated runs are
no slower than. Their segments come from the same arrays as the printed figures
(`risk/monte_carlo.py`), so they end when that path ends.
"""

import math
from collections.abc import Generator, Iterator
from functools import cached_property

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.plan.report_data import Doing, Segment, Timeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import PRINTED
from recommender.risk.monte_carlo import (
    PathEnds,
    queues_of,
    simulate_paths,
    simulate_to_the_end,
    switching_steps,
)
from recommender.risk.path_inputs import PathInputs
from recommender.risk.policy import has_thresholds
from recommender.risk.random_numbers import random_numbers
from recommender.risk.spot_capacity import Runs
from recommender.risk.walk import Step

LUCK = (("lucky", 0.05), ("typical", 0.5), ("unlucky", 0.95))
MAX_SEGMENTS = 400  # of one run; the rest is one segment
_SHORTEST_S = 1e-3

Interval = tuple[Doing, float, float]  # what, from and to; seconds from the start of the cluster


def timelines(
    evaluated: Evaluated, number: int, deadline_s: float | None, seed: int, cost_usd: Floats
) -> tuple[Timeline, ...]:
    """Three runs of a plan; `cost_usd` is the bill of each path, shape (paths,)."""
    inputs = evaluated.inputs
    runs, ended = simulate_to_the_end(inputs, deadline_s, PRINTED, seed)
    switches = deadline_s is not None and bool(has_thresholds(inputs)[0])
    steps = switching_steps(inputs, deadline_s or 0.0, PRINTED, seed) if switches else ()
    walked = tuple(steps)
    delay_s = queues_of(inputs, random_numbers(PRINTED, seed=seed)).fallback_s[0]
    time_s = simulate_paths(inputs, deadline_s, PRINTED, seed).time_s[0]
    order = np.argsort(time_s, kind="stable")
    made = []
    for luck, share in LUCK:
        path = int(order[max(math.ceil(share * len(order) - 1e-9), 1) - 1])
        own = _Path(inputs, runs, ended, path)
        if switches:
            moments = float(time_s[path]), float(delay_s[path])
            own = _SwitchingPath(inputs, runs, ended, path, walked, *moments)
        made.append(own.timeline(number, luck, share, float(cost_usd[path])))
    return tuple(made)


@dataclass(frozen=True)
class _Path:
    """One path of one plan."""

    inputs: PathInputs  # one row
    runs: Runs
    ended: PathEnds
    path: int

    def timeline(self, number: int, luck: str, share: float, cost_usd: float) -> Timeline:
        """The path in segments, its interruptions and its checkpoints."""
        segments = tuple(self._shifted())
        interval = float(self.inputs.interval_s[0])
        saves = interval < float(self.inputs.work_s[0])
        done_s = sum(s.end_s - s.start_s for s in segments if s.doing == "work")
        cycle_s = interval + float(self.inputs.stall_s[0])
        return Timeline(
            number=number,
            luck=luck,
            share=share,
            segments=_shortened(segments),
            interruptions_s=tuple(self._interruptions()),
            saves=int(done_s / cycle_s) if saves else 0,
            cycle_s=cycle_s if saves else math.nan,
            cost_usd=cost_usd,
        )

    def _of(self, values: Floats) -> float:
        return float(values[0, self.path])

    @property
    def _last(self) -> int:
        return int(self.ended.end.run[0, self.path])

    def _shifted(self) -> Iterator[Segment]:
        """All segments, after the wait for the first on-demand machines."""
        queued = self._of(self.ended.alone.queued)
        if queued > _SHORTEST_S:
            yield Segment("waiting", 0.0, queued)
        for doing, start_s, end_s in self._intervals():
            if end_s - start_s > _SHORTEST_S:
                yield Segment(doing, start_s + queued, end_s + queued)

    def _intervals(self) -> Iterator[Interval]:
        end = self.ended.end
        stop, repeats = self._of(end.stop_s), self._of(end.repeats)
        for cycle in range(self._last + 1):
            yield from self._cycle(cycle, stop, repeats > 0.0 and cycle == self._last)
        rest, delay = self._of(end.rest_s), self._of(end.delay_s)
        if rest > 0.0:
            ready = stop + delay + min(float(self.inputs.fallback_start_s[0]), rest)
            yield "waiting", stop, stop + delay
            yield "restart", stop + delay, ready
            yield "fallback", ready, stop + delay + rest

    def _cycle(
        self, cycle: int, stop: float, repeated: bool
    ) -> Iterator[tuple[Doing, float, float]]:
        """A wait and the run behind it, up to the moment at which the first cluster stops."""
        start = float(self.runs.starts[cycle, 0, self.path])
        before = start - float(self.runs.waits[cycle, 0, self.path])
        away: Doing = "on-demand part" if self.inputs.elastic_share[0] > 0.0 else "waiting"
        yield away, min(before, stop), min(start, stop)
        if repeated:
            yield "further cycles", start, stop
            return
        interrupted = cycle < self._last
        over = start + float(self.runs.lengths[cycle, 0, self.path]) if interrupted else stop
        ready = min(start + float(self.inputs.changeover_s[0]), over)
        kept = self._kept_s(cycle) if interrupted else max(over - ready, 0.0)
        yield ("restart" if cycle else "start-up"), start, ready
        yield "work", ready, min(ready + kept, over)
        yield "lost work", min(ready + kept, over), over

    def _kept_s(self, cycle: int) -> float:
        """Seconds of an interrupted run whose work is kept, saves included."""
        gained = self.runs.durable[cycle + 1, 0, self.path] - self.runs.durable[cycle, 0, self.path]
        if self.runs.on_demand_part is not None:
            gained = gained - self.runs.on_demand_part.work[cycle + 1, 0, self.path]
        interval = float(self.inputs.interval_s[0])
        return max(float(gained), 0.0) * (interval + float(self.inputs.stall_s[0])) / interval

    def _interruptions(self) -> Iterator[float]:
        queued = self._of(self.ended.alone.queued)
        for cycle in range(self._last):
            over = self.runs.starts[cycle, 0, self.path] + self.runs.lengths[cycle, 0, self.path]
            yield float(over) + queued


@dataclass(frozen=True)
class _SwitchingPath(_Path):
    """One path of a plan with two thresholds, which may go on demand and back several times."""

    steps: tuple[Step, ...]
    time_s: float
    delay_s: float  # until on-demand machines are there

    @cached_property
    def _events(self) -> list[tuple[Interval, bool]]:
        """What happened when, and whether it ended in an interruption."""
        return list(self._walked())

    def _intervals(self) -> Iterator[Interval]:
        return (interval for interval, _ in self._events)

    def _interruptions(self) -> Iterator[float]:
        queued = self._of(self.ended.alone.queued)
        return (end_s + queued for (_, _, end_s), interrupted in self._events if interrupted)

    def _walked(self) -> Iterator[tuple[Interval, bool]]:
        edge = done = 0.0
        rented: float | None = None
        time_s = self.time_s - self._of(self.ended.alone.queued)
        for start, end, left, back, switched, durable in self._cycles():
            if rented is None:
                away = start if math.isnan(left) else left
                yield ("waiting", edge, away), False
                rented = None if math.isnan(left) else left
            entry = start
            if rented is not None and (end >= time_s or not math.isnan(back)):
                entry = time_s if math.isnan(back) else back
                trains = yield from self._on_demand(rented, entry)
                done += max(entry - trains, 0.0) * float(self.inputs.fallback_speed[0])
                rented = None
            if rented is None and entry < time_s:
                stop = min(end, time_s) if math.isnan(switched) else switched
                taken = math.isnan(switched) and end < time_s
                yield from self._run(entry, stop, durable - done if taken else math.inf, taken)
                rented = None if math.isnan(switched) else switched
            edge, done = end, durable
        if rented is not None:
            yield from self._on_demand(rented, time_s)

    def _cycles(self) -> Iterator[tuple[float, ...]]:
        """The cycles of the path until it ends."""
        for step in self.steps:
            row = np.flatnonzero(step.lane == self.path)
            if len(row):
                each = (step.start_s, step.end_s, step.left_s, step.back_s, step.switched_s)
                yield tuple(float(values[row[0]]) for values in (*each, step.done))

    def _on_demand(
        self, rented: float, stop: float
    ) -> Generator[tuple[Interval, bool], None, float]:
        """A time on demand; returns when its machines began to train."""
        asked = rented + self.delay_s
        trains = min(asked + float(self.inputs.fallback_start_s[0]), stop)
        yield ("waiting", rented, asked), False
        yield ("restart", asked, trains), False
        yield ("fallback", trains, stop), False
        return trains

    def _run(
        self, entry: float, stop: float, gained: float, taken: bool
    ) -> Iterator[tuple[Interval, bool]]:
        """A time on spot, of whose work so much was kept."""
        ready = min(entry + float(self.inputs.changeover_s[0]), stop)
        interval = float(self.inputs.interval_s[0])
        kept = max(gained, 0.0) * (interval + float(self.inputs.stall_s[0])) / interval
        kept_until = min(ready + kept, stop)
        yield ("restart" if entry else "start-up", entry, ready), False
        yield ("work", ready, kept_until), taken and kept_until >= stop
        if kept_until < stop:
            yield ("lost work", kept_until, stop), taken


def _shortened(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The first segments; what follows is one, since no screen shows more."""
    if len(segments) <= MAX_SEGMENTS:
        return segments
    kept = segments[: MAX_SEGMENTS - 1]
    return (*kept, Segment("further cycles", kept[-1].end_s, segments[-1].end_s))
