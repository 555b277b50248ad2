"""Plans with two thresholds: the walk against the other engine, and what it may know."""

import numpy as np
import pytest

from recommender.risk.monte_carlo import cycles_needed, market_of, queues_of, simulate_sample
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import random_numbers
from recommender.risk.spot_capacity import CLASS_CAPACITY, simulate_runs
from recommender.risk.walk import walk
from tests.recommender.risk.cases import path_inputs, random_plan

PATHS = 64
FIGURES = (
    "time_s", "cost_usd", "expected_usd", "spot_s", "running_s", "fallback_s", "waiting_s",
    "interruptions", "moves", "trained_s", "work_s", "lost_work_s",
)  # fmt: skip


def gang_with_fallback(seed: int) -> tuple[PathInputs, float] | None:
    """A random plan that may go on demand, or None where the seed makes none."""
    row, deadline_s = random_plan(np.random.default_rng(seed))
    if deadline_s is None or "fallback_speed" not in row:
        return None
    return path_inputs(row | {"elastic_share": 0.0}), deadline_s


def walked(p: PathInputs, deadline_s: float) -> tuple[Paths, Paths, np.ndarray]:
    """A plan by the walk, by the other engine, and which paths have cycles enough."""
    sample = random_numbers(PATHS, int(cycles_needed(p, deadline_s)[0]))
    runs = simulate_runs(p, sample)
    queues = queues_of(p, sample)
    ours = walk(p, deadline_s, sample, market_of(runs, sample), queues)
    other, enough = simulate_sample(p, deadline_s, sample, CLASS_CAPACITY)
    ended = (other.interruptions < sample.key[1] - 1) & (enough | (other.fallback_s > 0))
    return ours, other, ended[0]


@pytest.mark.parametrize("chunk", range(4))
def test_without_thresholds_every_path_is_that_of_the_other_engine(chunk: int) -> None:
    compared = 0
    for seed in range(chunk * 100, chunk * 100 + 100):
        case = gang_with_fallback(seed)
        if case is None:
            continue
        ours, other, ended = walked(*case)
        for name in FIGURES:
            mine, theirs = getattr(ours, name)[0, ended], getattr(other, name)[0, ended]
            off = np.abs(mine - theirs) > 2.0 + 2e-4 * np.abs(theirs)
            assert not off.any(), f"seed {seed}: {name} {mine[off][:3]} {theirs[off][:3]}"
        compared += int(ended.sum())
    assert compared > 1500
