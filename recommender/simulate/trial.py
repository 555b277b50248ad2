"""Many histories of one plan, by the engine that the search uses (`recommender/risk`)."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from recommender.risk.capacity import LOGNORMAL, Capacity
from recommender.risk.draws import forget
from recommender.risk.journey import Histories, follow
from recommender.risk.plans import Journeys

Floats = NDArray[np.float64]
Tick = Callable[[int, int], None]  # runs done, runs in all

BLOCK = 2048  # histories at a time: those behind the printed figures are the first block
_SEEDS = 1_000_003  # between the seeds of two blocks


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
    """Follow one plan through `runs` histories; the same seed gives the same histories."""
    parts = []
    for number, begin in enumerate(range(0, runs, BLOCK)):
        paths = min(BLOCK, runs - begin)
        h = follow(journey, deadline_s, paths, seed + _SEEDS * number, capacity)
        parts.append(_sample(journey, h))
        if number:
            forget()
        if tick is not None:
            tick(begin + paths, runs)
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
