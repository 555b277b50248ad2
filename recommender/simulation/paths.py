"""Many Monte Carlo paths of one plan, by the engine that the search uses (`recommender/risk`)."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import clear_caches
from recommender.risk.spot_capacity import CLASS_CAPACITY, Capacity

ProgressCallback = Callable[[int, int], None]  # runs done, runs in all

BLOCK = 2048  # paths at a time: those behind the printed figures are the first block
_SEEDS = 1_000_003  # between the seeds of two blocks


@dataclass(frozen=True, slots=True)
class SimulatedRuns:
    """The results of each path; every field has shape (runs,)."""

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
    inputs: PathInputs,
    deadline_s: float | None,
    runs: int,
    seed: int,
    capacity: Capacity = CLASS_CAPACITY,
    tick: ProgressCallback | None = None,
    most_away_s: float | None = None,
) -> SimulatedRuns:
    """Simulate one plan `runs` times; the same seed gives the same paths.

    The paths are those of `simulate_paths`, block by block. With `most_away_s` the fallback takes
    over once spot has been away that long.
    """
    parts, done = [], 0
    for paths, block_seed in blocks_of(runs, seed):
        found = simulate_paths(
            inputs, deadline_s, paths, block_seed, capacity, most_away_s=most_away_s
        )
        parts.append(_split_into_states(inputs, found))
        clear_caches()
        done += paths
        if tick is not None:
            tick(done, runs)
    return SimulatedRuns(
        *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(SimulatedRuns))
    )


def blocks_of(runs: int, seed: int) -> list[tuple[int, int]]:
    """The blocks of a simulation: paths and seed of each."""
    return [
        (min(BLOCK, runs - begin), seed + _SEEDS * number)
        for number, begin in enumerate(range(0, runs, BLOCK))
    ]


def _split_into_states(inputs: PathInputs, paths: Paths) -> SimulatedRuns:
    """Split each path's time into states; lost work is what the other states leave.

    Work on the fallback counts as fallback, starts of it included.
    """
    fallback = paths.fallback_s[0]
    rescued = np.where(fallback > 0.0, np.maximum(fallback - inputs.fallback_start_s[0], 0.0), 0.0)
    up = np.maximum(paths.time_s[0] - paths.waiting_s[0] - fallback, 0.0)
    starting = np.minimum(inputs.changeover_s[0], up)
    left = up - starting
    training = np.minimum(np.maximum(paths.trained_s[0] - rescued, 0.0), left)
    left = left - training
    saving = np.minimum(
        training * (inputs.stall_s[0] / np.maximum(inputs.interval_s[0], 1.0)), left
    )
    left = left - saving
    restarting = np.minimum(paths.restarts_s[0], left)
    return SimulatedRuns(
        time_s=paths.time_s[0],
        cost_usd=paths.cost_usd[0],
        expected_usd=paths.expected_usd[0],
        interruptions=paths.interruptions[0],
        waiting_s=paths.waiting_s[0],
        starting_s=starting,
        training_s=training,
        saving_s=saving,
        restarting_s=restarting,
        lost_s=left - restarting,
        fallback_s=fallback,
    )
