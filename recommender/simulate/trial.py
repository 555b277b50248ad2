"""Many histories of one plan, by the engine that the search uses (`recommender/risk`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from recommender.risk.capacity import LOGNORMAL, Capacity
from recommender.risk.draws import draws, forget, longer
from recommender.risk.journey import Histories, cycles_needed, follow_sample
from recommender.risk.plans import Journeys

Floats = NDArray[np.float64]
Tick = Callable[[int, int], None]  # runs done, runs in all

BLOCK = 2048  # histories at a time: those behind the printed figures are the first block
_SEEDS = 1_000_003  # between the seeds of two blocks
_TOGETHER = 16  # blocks at a time: 20 MB of draws


@dataclass(frozen=True, slots=True)
class Sample:
    """What happened in each history; every field has shape (runs,)."""

    time_s: Floats
    cost_usd: Floats  # at the price of the day
    expected_usd: Floats  # at the expected price
    interruptions: Floats
    waiting_s: Floats
    starting_s: Floats
    training_s: Floats
    saving_s: Floats
    restarting_s: Floats
    lost_s: Floats
    fallback_s: Floats


def simulate(
    journey: Journeys,
    deadline_s: float | None,
    runs: int,
    seed: int,
    capacity: Capacity = LOGNORMAL,
    tick: Tick | None = None,
) -> Sample:
    """Follow one plan through `runs` histories; the same seed gives the same histories.

    They are those of `follow`, block by block. Few histories need all the runs that are drawn
    for them: all are first followed through two thirds, and the rest of some blocks together.
    """
    journey = replace(journey, best_net_usd=np.full(1, np.inf))  # a bound that nobody reads here
    blocks = blocks_of(runs, seed)
    parts, done = [], 0
    for begin in range(0, len(blocks), _TOGETHER):
        parts.append(_blocks(journey, deadline_s, blocks[begin : begin + _TOGETHER], capacity))
        for paths, _ in blocks[begin : begin + _TOGETHER]:
            done += paths
            if tick is not None:
                tick(done, runs)
        forget()
    return _joined(parts)


def blocks_of(runs: int, seed: int) -> list[tuple[int, int]]:
    """The blocks of a simulation: histories and seed of each."""
    return [
        (min(BLOCK, runs - begin), seed + _SEEDS * number)
        for number, begin in enumerate(range(0, runs, BLOCK))
    ]


def _blocks(
    journey: Journeys,
    deadline_s: float | None,
    blocks: Sequence[tuple[int, int]],
    capacity: Capacity,
) -> Sample:
    """Some blocks (histories, seed): most of each in few cycles, the rest in all of them."""
    cycles = int(cycles_needed(journey, deadline_s)[0])
    few = min(cycles, -(-cycles // 12) * 8)
    parts, rest = [], []
    for paths, seed in blocks:
        sample = draws(paths, few, seed)
        histories, settled = follow_sample(journey, deadline_s, sample, capacity)
        parts.append(_sample(journey, histories))
        rest.append((sample, np.flatnonzero(~settled[0])))
    found = _joined(parts)
    begins = np.cumsum([0, *(paths for paths, _ in blocks)])
    rows = np.concatenate([begin + late for begin, (_, late) in zip(begins, rest, strict=False)])
    if few < cycles and len(rows):
        histories, _ = follow_sample(journey, deadline_s, longer(rest, cycles), capacity)
        again = _sample(journey, histories)
        for field in fields(Sample):
            getattr(found, field.name)[rows] = getattr(again, field.name)
    return found


def _joined(parts: Sequence[Sample]) -> Sample:
    return Sample(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Sample)))


def _sample(j: Journeys, h: Histories) -> Sample:
    """Split each history's time into states; lost work is what the other states leave.

    Work on the fallback counts as fallback, starts of it included. An elastic cluster trains
    while it waits for its spot part; that time stays with waiting.
    """
    fallback = h.fallback_s[0]
    rescued = np.where(fallback > 0.0, np.maximum(fallback - j.fallback_start_s[0], 0.0), 0.0)
    up = np.maximum(h.running_s[0] - fallback, 0.0)
    starting = np.minimum(j.changeover_s[0], up)
    left = up - starting
    training = np.minimum(np.maximum(h.trained_s[0] - rescued, 0.0), left)
    left = left - training
    saving = np.minimum(training * (j.stall_s[0] / np.maximum(j.interval_s[0], 1.0)), left)
    left = left - saving
    restarting = np.minimum(h.restarts_s[0], left)
    return Sample(
        time_s=h.time_s[0],
        cost_usd=h.cost_usd[0],
        expected_usd=h.expected_usd[0],
        interruptions=h.interruptions[0],
        waiting_s=h.waiting_s[0],
        starting_s=starting,
        training_s=training,
        saving_s=saving,
        restarting_s=restarting,
        lost_s=left - restarting,
        fallback_s=fallback,
    )
