"""Bounds and searches stay exact where the global batch grows with the GPUs."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.branch_and_bound import search_boxes
from recommender.optimize.search import search
from recommender.optimize.search_state import EPSILON, SearchState
from recommender.optimize.space import Space
from tests.recommender.optimize.palette import oracle, space

EVERY = 10**6
SEEDS = range(500, 508)


def growing(seed: int) -> Space:
    """A random space of one region whose GPUs keep their batch, some with a most of all."""
    found = space(seed, entries=3 + seed % 2, most=5)
    limits = found.limits
    if limits.goal == "frontier":
        limits = replace(limits, objective="cost" if seed % 2 else "time")
    batch = (4, 64, 512)[seed % 3]
    job = replace(
        found.job,
        sync="parameter_server" if seed % 4 == 3 else "allreduce",
        global_batch=batch,
        batch_per_gpu=True,
        max_global_batch=4.0 * batch if seed % 5 == 0 else np.inf,
        elastic=seed % 2 == 0,
    )
    steps_left = found.steps_left * found.job.global_batch / batch
    return replace(found, job=job, limits=limits, steps_left=steps_left)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_search_equals_looking_at_every_plan(seed: int) -> None:
    asked = growing(seed)
    best = oracle(asked)[1].goal_value.min()
    state = search(asked, most=EVERY)
    assert np.isfinite(best) == np.isfinite(state.best_goal)
    if np.isfinite(best):
        assert best * (1 - 1e-9) <= state.best_goal <= best * (1 + 1.01 * EPSILON)


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_find_the_best_plan(seed: int) -> None:
    asked = growing(seed)
    best = oracle(asked)[1].goal_value.min()
    state = SearchState(slack=0.0, max_plans=EVERY)
    search_boxes(asked, 0, state)
    assert state.gap() == 0.0
    if np.isfinite(best):
        assert best * (1 - 1e-9) <= state.best_goal <= best * (1 + 1.01 * EPSILON)
