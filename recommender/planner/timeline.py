"""Single simulated runs of a plan, from the request for machines to the last step.

The lucky, the typical and the unlucky run are those that 5, 50 and 95 % of the simulated runs are
no slower than. Their segments come from the same arrays as the printed figures
(`risk/monte_carlo.py`), so they end when that path ends.
"""

import math
from collections.abc import Iterator

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.plan.report_data import Doing, Segment, Timeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import PRINTED
from recommender.risk.lanes import Lanes
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import random_numbers, some_paths
from recommender.risk.walk import Stretch, Walk

LUCK = (("lucky", 0.05), ("typical", 0.5), ("unlucky", 0.95))
MAX_SEGMENTS = 400  # of one run; the rest is one segment
_SHORTEST_S = 1e-3

Interval = tuple[Doing, float, float]  # what, from and to; seconds from the start of the cluster


def timelines(
    evaluated: Evaluated, number: int, deadline_s: float | None, seed: int, cost_usd: Floats
) -> tuple[Timeline, ...]:
    """Three runs of a plan; `cost_usd` is the bill of each path, shape (paths,)."""
    inputs = evaluated.inputs
    time_s = simulate_paths(inputs, deadline_s, PRINTED, seed).time_s[0]
    order = np.argsort(time_s, kind="stable")
    ranks = [max(math.ceil(share * len(order) - 1e-9), 1) - 1 for _, share in LUCK]
    paths = order[ranks]
    story = _Story(inputs, cost_usd[paths])
    walk = Walk(inputs, deadline_s, some_paths(random_numbers(PRINTED, seed), paths))
    walk.seen, walk.paid = story.on_spot, story.on_demand
    ended, queued_s = walk.run(), walk.queued_s[0]
    return tuple(
        story.timeline(place, number, luck, float(ended.time_s[place]), float(queued_s[place]))
        for place, luck in enumerate(LUCK)
    )


class _Story:
    """What happened on some paths of one plan, in order."""

    def __init__(self, inputs: PathInputs, cost_usd: Floats) -> None:
        self._inputs, self._cost_usd = inputs, cost_usd
        self._doing: list[list[Interval]] = [[] for _ in cost_usd]
        self._interrupted: list[list[float]] = [[] for _ in cost_usd]

    def timeline(
        self, path: int, number: int, luck: tuple[str, float], time_s: float, queued_s: float
    ) -> Timeline:
        """A path in segments, after the wait for the first on-demand machines."""
        doing = self._doing[path]
        last = doing[-1][2] if doing else 0.0
        told: list[Interval] = [
            ("waiting", -queued_s, 0.0), *doing, ("further cycles", last, time_s)
        ]  # fmt: skip
        segments = tuple(
            Segment(each, begin + queued_s, end + queued_s)
            for each, begin, end in told
            if end - begin > _SHORTEST_S
        )
        interval, stall = float(self._inputs.interval_s[0]), float(self._inputs.stall_s[0])
        saves = interval < float(self._inputs.work_s[0])
        done_s = sum(s.end_s - s.start_s for s in segments if s.doing == "work")
        return Timeline(
            number=number,
            luck=luck[0],
            share=luck[1],
            segments=_shortened(segments),
            interruptions_s=tuple(end + queued_s for end in self._interrupted[path]),
            saves=int(done_s / (interval + stall)) if saves else 0,
            cycle_s=interval + stall if saves else math.nan,
            cost_usd=float(self._cost_usd[path]),
        )

    def on_spot(self, s: Stretch, cycle: Ints, lane: Ints, stop: Floats, taken: bool) -> None:
        """Lanes on spot until they stop in a cycle, interrupted or not."""
        for last, at, until in zip(cycle.tolist(), lane.tolist(), stop.tolist(), strict=True):
            path = int(s.lanes.path[at])
            for number in range(int(s.cut[at]), last + 1):
                over = number < last or taken
                end = float(s.clock.ends[number, at]) if over else until
                self._doing[path] += self._cycle(s, number, at, end, over)
                if over:
                    self._interrupted[path].append(end)

    def _cycle(
        self, s: Stretch, cycle: int, lane: int, end: float, taken: bool
    ) -> Iterator[Interval]:
        """A wait and the run behind it."""
        start, ready = float(s.starts[cycle, lane]), min(float(s.ready[cycle, lane]), end)
        since = max(float(s.clock.edges[cycle, lane]), float(s.lanes.entry_s[lane]))
        elastic = self._inputs.elastic_share[0] > 0.0
        yield "on-demand part" if elastic else "waiting", since, min(start, end)
        kept_until = end
        if taken:
            after = s.durable[cycle + 1, lane]
            if cycle + 1 < len(s.part):
                after = after - s.part[cycle + 1, lane]
            interval, stall = float(self._inputs.interval_s[0]), float(self._inputs.stall_s[0])
            gained = max(float(after - s.durable[cycle, lane]), 0.0)
            kept_until = min(ready + gained * (interval + stall) / interval, end)
        if end > start:
            yield "restart" if start > 0.0 and cycle + s.clock.first else "start-up", start, ready
            yield "work", ready, kept_until
            yield "lost work", kept_until, end

    def on_demand(self, lanes: Lanes, delay_s: Floats, until: Floats) -> None:
        """Lanes on demand until a moment."""
        start_s = float(self._inputs.fallback_start_s[0])
        for place, path in enumerate(lanes.path.tolist()):
            rented, end = float(lanes.rented_s[place]), float(until[place])
            asked = rented + float(delay_s[place])
            trains = min(asked + start_s, end)
            doing: tuple[Interval, ...] = (
                ("waiting", rented, asked), ("restart", asked, trains), ("fallback", trains, end)
            )  # fmt: skip
            self._doing[path] += doing


def _shortened(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The first segments; what follows is one, since no screen shows more."""
    if len(segments) <= MAX_SEGMENTS:
        return segments
    kept = segments[: MAX_SEGMENTS - 1]
    return (*kept, Segment("further cycles", kept[-1].end_s, segments[-1].end_s))
