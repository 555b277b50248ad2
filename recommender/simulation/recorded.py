"""Replays recorded availability: each path follows a recording from a random moment.

A *series* is a step function of the machines that were up. The gang is up while at least as many
are up as it needs. Every path begins at a moment drawn uniformly over all series and wraps around
when its series ends, so all parts of a recording have equal weight.
"""

import numpy as np

from recommender.arrays import Floats, Singles
from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import RandomNumbers

FOREVER_S = 1e9  # a run or a wait without end


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """One recorded series: `nodes[i]` machines are up from `t_s[i]` to the next, or to `end_s`."""

    t_s: tuple[float, ...]
    nodes: tuple[int, ...]
    end_s: float


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
class RecordedCapacity:
    """The capacity of recorded series, for plans of one size."""

    intervals: tuple[UpIntervals, ...]

    def runs(self, p: PathInputs, sample: RandomNumbers) -> tuple[Singles, Singles]:
        """Lengths of the runs and the wait before each, seconds; the same for every plan."""
        paths, cycles, _ = sample.key
        lengths, waits = np.empty((2, cycles, 1, paths), dtype=np.float32)
        ends = np.cumsum([s.length_s for s in self.intervals])
        moment = sample.start * ends[-1]
        which = np.minimum(np.searchsorted(ends, moment, side="right"), len(ends) - 1)
        for number in np.unique(which):
            mine = which == number
            inside = moment[mine] - (ends[number] - self.intervals[number].length_s)
            found = _runs_from(self.intervals[number], inside, cycles)
            lengths[:, 0, mine], waits[:, 0, mine] = found
        shape = (cycles, len(p), paths)
        return np.broadcast_to(lengths, shape).copy(), np.broadcast_to(waits, shape).copy()

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


def recorded_capacity(series: tuple[RecordedSeries, ...], machines: int) -> RecordedCapacity:
    """The recording as the capacity of a gang of so many machines."""
    return RecordedCapacity(tuple(_up_intervals(each, machines) for each in series))


def _up_intervals(series: RecordedSeries, machines: int) -> UpIntervals:
    """Maximal intervals with enough machines; one across the ends is joined, as time goes round."""
    at = np.array([*series.t_s, series.end_s]) - series.t_s[0]
    up = np.array(series.nodes) >= machines
    change = np.diff(np.concatenate([[False], up, [False]]).astype(np.int8))
    begin, end = at[:-1][change[:-1] == 1], at[np.flatnonzero(change == -1)]
    length = float(at[-1])
    if len(begin) > 1 and begin[0] == 0.0 and end[-1] == length:
        begin, end = begin[1:], np.concatenate([end[1:-1], [length + end[0]]])
    return UpIntervals(begin, end, length)


def _runs_from(intervals: UpIntervals, moment: Floats, cycles: int) -> tuple[Floats, Floats]:
    """Runs and waits met from some moments on; (cycles, moments)."""
    count = len(intervals.begin_s)
    if not count:
        return np.full((cycles, len(moment)), 1.0), np.full((cycles, len(moment)), FOREVER_S)
    if intervals.endless:
        return np.full((cycles, len(moment)), FOREVER_S), np.zeros((cycles, len(moment)))
    # A moment before the end of the joined last interval lies in it, one round earlier.
    early = moment + intervals.length_s < intervals.end_s[-1]
    moment = np.where(early, moment + intervals.length_s, moment)
    first = np.searchsorted(intervals.end_s, moment, side="right")
    turn = first[None] + np.arange(cycles)[:, None]
    begin = intervals.begin_s[turn % count] + (turn // count) * intervals.length_s
    end = intervals.end_s[turn % count] + (turn // count) * intervals.length_s
    begin[0] = np.maximum(begin[0], moment)
    before = np.concatenate([moment[None], end[:-1]])
    return end - begin, begin - before
