"""The pool finds the best plan where the global batch grows with the GPUs."""

from dataclasses import replace

import pytest

from recommender.optimize.space import Space
from tests.recommender.optimize.palette import (
    space,
)
from tests.recommender.optimize.pooled import on_product_paths, problem
from tests.recommender.optimize.samples import thinned

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
        max_global_batch=4 * batch if seed % 5 == 0 else None,
        elastic=seed % 2 == 0,
    )
    steps_left = found.steps_left * found.job.global_batch / batch
    return replace(found, job=job, limits=limits, steps_left=steps_left)


@pytest.mark.parametrize("seed", thinned(SEEDS, 4))
def test_the_pool_equals_looking_at_every_plan(seed: int) -> None:
    assert not problem(on_product_paths(growing(seed)))
