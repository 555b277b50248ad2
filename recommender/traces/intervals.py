"""Cuts traces into runs and outages, and into hours and days to resample."""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.random_numbers import uniforms
from recommender.traces.law_fit import ObservedIntervals
from recommender.traces.trace import ADDED, HOUR, TAKEN, Trace

BLOCK_H = 24.0  # hours that are drawn whole
FEW_BLOCKS = 6  # into which less than six days are cut
REPLICATES = 1000
SEED = 7


@dataclass(frozen=True, slots=True)
class GangIntervals:
    """Runs and outages of a gang of some size in one series.

    The first interval is left out of both: its beginning was not seen, and an interval met at a
    random moment is longer than most. The last one counts as not over.
    """

    runs: ObservedIntervals
    outages: ObservedIntervals


@dataclass(frozen=True, slots=True)
class HourlySums:
    """Hours of a series (the last may be shorter): time watched, time up, interruptions."""

    hours: Floats  # (hours,)
    up_h: Floats  # (hours, sizes)
    ends: Floats  # (hours, sizes) runs that ended
    clock: Ints  # (hours,) hour of the day, UTC; -1 if not known
    block: Ints  # (hours,) number of the day, or of a shorter block, from 0


def sizes_of(capacity: int) -> tuple[int, ...]:
    """Gang sizes worth a look: powers of two, and everything."""
    powers = [2**i for i in range(capacity.bit_length()) if 2**i < capacity]
    return (*powers, capacity)


def states(trace: Trace, machines: int) -> tuple[Floats, Bools]:
    """Edges (seconds, ends included) of the intervals of a gang, and whether each is up."""
    up = trace.machines >= machines
    new = np.ones(len(up), dtype=np.bool_)
    new[1:] = up[1:] != up[:-1]
    return np.append(trace.t_s[new], trace.end_s), up[new]


def gang_intervals(trace: Trace, machines: int) -> GangIntervals:
    """Runs and outages of a gang of `machines`, in hours."""
    edges, up = states(trace, machines)
    hours = np.diff(edges) / HOUR
    over = np.ones(len(hours), dtype=np.bool_)
    over[-1] = False
    kept = hours > 0
    kept[0] = False
    return GangIntervals(
        ObservedIntervals(hours[kept & up], over[kept & up]),
        ObservedIntervals(hours[kept & ~up], over[kept & ~up]),
    )


def lives(trace: Trace) -> ObservedIntervals:
    """How long named machines lived; given back or still up counts as not over.

    Machines that were up when watching began are left out.
    """
    born: dict[int, float] = {}
    hours, over = [], []
    e = trace.events
    for t, change, node in zip(e.t_s.tolist(), e.change.tolist(), e.node.tolist(), strict=True):
        if change == ADDED:
            born[node] = t
            continue
        begun = born.pop(node)
        if begun > 0 and t > begun:
            hours.append((t - begun) / HOUR)
            over.append(change == TAKEN)
    for begun in born.values():
        if 0 < begun < trace.end_s:
            hours.append((trace.end_s - begun) / HOUR)
            over.append(False)
    return ObservedIntervals(np.array(hours, dtype=np.float64), np.array(over, dtype=np.bool_))


def edges_of(trace: Trace) -> Floats:
    """Seconds at which the clock strikes the hour, and both ends."""
    first = 0.0
    if trace.start is not None:
        past = trace.start.minute * 60 + trace.start.second + trace.start.microsecond * 1e-6
        first = (HOUR - past) % HOUR
    inner = np.arange(first, trace.end_s, HOUR)
    return np.unique(np.concatenate([[0.0], inner, [trace.end_s]]))


def clock_of(trace: Trace, edges: Floats) -> Ints:
    """Hour of the day (UTC) of each cell; -1 where the start is not known."""
    if trace.start is None:
        return np.full(len(edges) - 1, -1, dtype=np.int64)
    begun = trace.start.timestamp()  # of an aware moment: seconds UTC
    return np.floor(((begun + edges[:-1] + 1e-3) % 86_400.0) / HOUR).astype(np.int64)


def hourly_sums(trace: Trace, sizes: tuple[int, ...]) -> HourlySums:
    """Cut a series into hours; `sizes` are the gangs that are looked at."""
    edges = edges_of(trace)
    up_h, ends = [], []
    for size in sizes:
        at, up = states(trace, size)
        total = np.concatenate([[0.0], np.cumsum(np.diff(at) * up)])
        up_h.append(np.diff(np.interp(edges, at, total)) / HOUR)
        stops = at[1:-1][up[:-1]]
        ends.append(np.histogram(stops, edges)[0].astype(np.float64))
    return HourlySums(
        hours=np.diff(edges) / HOUR,
        up_h=np.stack(up_h, axis=1),
        ends=np.stack(ends, axis=1),
        clock=clock_of(trace, edges),
        block=blocks_of(edges),
    )


def blocks_of(edges: Floats) -> Ints:
    """Number of the block of each cell: days, or sixths of what was watched if that is shorter.

    A last block shorter than half a block joins the one before.
    """
    watched = float(edges[-1] - edges[0])
    size = min(BLOCK_H * HOUR, watched / FEW_BLOCKS)
    block = np.floor((edges[:-1] - edges[0]) / size + 1e-9).astype(np.int64)
    last = int(block[-1])
    if last > 0 and watched - last * size < 0.5 * size:
        block = np.minimum(block, np.int64(last - 1))
    return np.unique(block, return_inverse=True)[1].astype(np.int64)


def by_block(values: Floats, block: Ints) -> Floats:
    """Sums of hours over their blocks; (hours, ...) to (blocks, ...)."""
    found = np.zeros((int(block.max()) + 1, *values.shape[1:]))
    np.add.at(found, block, values)
    return found


def weights(blocks_of_series: list[int]) -> Floats:
    """How often each block is drawn in each replicate; (replicates, blocks of all series).

    Days are drawn with replacement within their series: hours of a day depend on each other,
    days much less (block bootstrap; Künsch, Annals of Statistics 17, 1989).
    """
    parts = []
    for stream, count in enumerate(blocks_of_series):
        drawn = uniforms(SEED, 7000 + stream, REPLICATES * count).reshape(REPLICATES, count)
        picked = np.floor(drawn * count).astype(np.int64)
        part = np.zeros((REPLICATES, count))
        np.add.at(part, (np.arange(REPLICATES)[:, None], picked), 1.0)
        parts.append(part)
    return np.concatenate(parts, axis=1)
