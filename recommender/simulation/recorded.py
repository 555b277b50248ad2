"""Replays recorded availability: each path follows a recording from a random moment.

A *series* is a step function of the machines that were up. The gang is up while at least as many
are up as it needs. Every path begins at a moment drawn uniformly over all series and wraps around
when its series ends, so all parts of a recording have equal weight.
"""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import STRETCH, RandomNumbers
from recommender.risk.spot_capacity import Market
from recommender.traces.trace import Trace

FOREVER_S = 1e9  # a run or a wait without end


@dataclass(frozen=True, slots=True)
class UpIntervals:
    """When the gang could run in one series; both of shape (intervals,), sorted, seconds."""

    begin_s: Floats
    end_s: Floats  # the last may reach beyond the series' end, into its beginning
    length_s: float  # of the series

    @property
    def endless(self) -> bool:
        """A single run if the gang was never interrupted, wrapping around in time."""
        return len(self.begin_s) == 1 and self.end_s[0] - self.begin_s[0] >= self.length_s


@dataclass(frozen=True, slots=True)
class RecordedMarket:
    """Paths through series, each from a moment on."""

    intervals: tuple[UpIntervals, ...]
    which: Ints  # (paths,) series
    moment_s: Floats  # (paths,) in it

    def cycles(self, first: int, cluster: Ints, path: Ints) -> tuple[Floats, Floats]:
        """Runs of the next cycles, and the wait before each."""
        lengths, waits = np.empty((2, STRETCH, len(path)))
        for number in distinct(self.which[path]):
            mine = self.which[path] == number
            moments = self.moment_s[path[mine]]
            lengths[:, mine], waits[:, mine] = _runs_from(self.intervals[number], moments, first)
        return lengths, waits


@dataclass(frozen=True, slots=True)
class RecordedCapacity:
    """The capacity of recorded series, for plans of one size."""

    intervals: tuple[UpIntervals, ...]

    def market(self, p: PathInputs, sample: RandomNumbers) -> Market:
        """What each path meets from a moment of the recording on; the same for every plan."""
        ends = np.cumsum([s.length_s for s in self.intervals])
        moment = sample.start * ends[-1]
        which = np.minimum(np.searchsorted(ends, moment, side="right"), len(ends) - 1)
        begins = ends - np.array([s.length_s for s in self.intervals])
        return RecordedMarket(self.intervals, which, moment - begins[which])

    @property
    def run_mean_s(self) -> float:
        """Mean length of a run: time up per interruption, `FOREVER_S` without interruptions.

        A run that is cut by the recording's ends is one run, because time wraps around.
        """
        up = sum(float((s.end_s - s.begin_s).sum()) for s in self.intervals)
        stops = sum(len(s.begin_s) for s in self.intervals if not s.endless)
        return up / stops if stops else FOREVER_S

    @property
    def availability(self) -> float:
        """Share of the time in which the gang could run."""
        up = sum(float((s.end_s - s.begin_s).sum()) for s in self.intervals)
        return up / sum(s.length_s for s in self.intervals)


def recorded_capacity(series: Sequence[Trace], machines: int) -> RecordedCapacity:
    """The recording as the capacity of a gang of so many machines."""
    return RecordedCapacity(tuple(_up_intervals(each, machines) for each in series))


def _up_intervals(series: Trace, machines: int) -> UpIntervals:
    """Maximal intervals with enough machines; one across the ends is joined, as time goes round."""
    at = np.append(series.t_s, series.end_s) - series.t_s[0]
    up = series.machines >= machines
    change = np.diff(np.concatenate([[False], up, [False]]).astype(np.int8))
    begin, end = at[:-1][change[:-1] == 1], at[np.flatnonzero(change == -1)]
    length = float(at[-1])
    if len(begin) > 1 and begin[0] == 0.0 and end[-1] == length:
        begin, end = begin[1:], np.concatenate([end[1:-1], [length + end[0]]])
    return UpIntervals(begin, end, length)


def _runs_from(intervals: UpIntervals, moment: Floats, first: int) -> tuple[Floats, Floats]:
    """Runs and waits met from some moments on, from a cycle on; (cycles, moments)."""
    count, shape = len(intervals.begin_s), (STRETCH, len(moment))
    if not count:
        return np.full(shape, 1.0), np.full(shape, FOREVER_S)
    if intervals.endless:
        return np.full(shape, FOREVER_S), np.zeros(shape)
    # A moment before the end of the joined last interval lies in it, one round earlier.
    early = moment + intervals.length_s < intervals.end_s[-1]
    moment = np.where(early, moment + intervals.length_s, moment)
    place = np.searchsorted(intervals.end_s, moment, side="right")
    turn = place[None] + first - 1 + np.arange(STRETCH + 1)[:, None]
    begin = intervals.begin_s[turn % count] + (turn // count) * intervals.length_s
    end = intervals.end_s[turn % count] + (turn // count) * intervals.length_s
    begin, before, end = begin[1:], end[:-1], end[1:]
    if not first:
        begin[0], before[0] = np.maximum(begin[0], moment), moment
    return end - begin, begin - before
