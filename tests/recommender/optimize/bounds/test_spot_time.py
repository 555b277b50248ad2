"""No plan on spot loses less than the bound from its run law says."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.bounds.cluster import (
    min_speed_factor,
    plan_lower_bounds,
    surely_over_overhead,
)
from recommender.optimize.bounds.spot_time import min_overhead
from recommender.optimize.evaluate import path_inputs_of
from recommender.optimize.search import search
from recommender.optimize.space import Space
from tests.recommender.optimize.palette import oracle, space
from tests.recommender.optimize.samples import one_in

CHUNKS, PER_CHUNK = 8, 12
LIMITS = (0.02, 0.06, 0.15, 0.4)


def question(seed: int) -> Space:
    q = space(seed, entries=2 + seed % 4)
    return replace(q, limits=replace(q.limits, max_overhead=LIMITS[seed % len(LIMITS)]))


@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_no_plan_without_a_fallback_loses_less_than_the_bound(chunk: int) -> None:
    compared = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        q = question(seed)
        plans, values = oracle(q)
        inputs, allowed = path_inputs_of(q, q.sites[0], plans)
        alone = allowed & (inputs.spot_usd_per_hour > 0) & (inputs.elastic_share <= 0)
        rows = np.flatnonzero(alone & (plans.fallback < 0))
        own = inputs.take(rows)
        work_s = own.work_s * min_speed_factor(q, own.speed_sigma)
        law = (own.run_mean_s, own.run_sigma, own.changeover_s, work_s)
        bound = min_overhead(q.path_count, q.seed, *law) if len(rows) else np.zeros(0)
        assert (bound <= values.overhead[rows] + 1e-6).all(), seed
        assert not np.isfinite(values.goal_value[rows][bound > q.limits.max_overhead]).any()
        compared += len(rows)
    assert compared > 100


@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_searches_under_an_overhead_limit_equal_looking_at_every_plan(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        q = question(seed)
        plans, values = oracle(q)
        inputs, allowed = path_inputs_of(q, q.sites[0], plans)
        bound = np.where(allowed, plan_lower_bounds(q, inputs), 0.0)
        assert (bound <= values.goal_value * (1 + 1e-3)).all(), seed
        best, found = float(values.goal_value.min()), search(q, most=10**6)
        assert found.best_goal <= best * (1 + 1e-3) or not found.incumbents, seed
        assert np.isfinite(best) == bool(found.incumbents), seed


def test_the_bound_prunes_gangs_with_short_runs() -> None:
    seen = 0
    for seed in range(24):
        q = question(seed)
        plans, _ = oracle(q)
        inputs, _ = path_inputs_of(q, q.sites[0], plans)
        over_overhead = surely_over_overhead(q, inputs)  # type: ignore[arg-type]  # same columns
        assert not over_overhead[inputs.spot_usd_per_hour <= 0].any()
        seen += int(over_overhead.sum())
    assert seen > 100
