"""A plan that its own fallback, rented alone, beats in cost and in time is none."""

import numpy as np
import pytest

from recommender.optimize.dominated import SAME_SHARE, dominated, fallback_costs, may_be_dominated
from recommender.optimize.evaluate import path_inputs_of, values_of
from recommender.optimize.search import search
from recommender.optimize.space import Space
from tests.recommender.optimize.palette import (
    assert_search_is_exact,
    every_cluster,
    every_plan,
    space,
)
from tests.recommender.optimize.samples import one_in, thinned

SEEDS = [seed for seed in range(160) if space(seed).limits.deadline_s is not None]


def question(seed: int) -> Space:
    return space(seed, entries=2 + seed % 4)


@pytest.mark.parametrize("chunk", one_in(6, 6))
def test_a_plan_is_left_out_exactly_where_its_fallback_among_all_plans_beats_it(chunk: int) -> None:
    beaten = 0
    for seed in SEEDS[chunk::6]:
        q, site = question(seed), question(seed).sites[0]
        plans = every_plan(q, site, every_cluster(site, q.limits.max_machines))
        values = values_of(q, *path_inputs_of(q, site, plans))
        left_out = dominated(plans, values, fallback_costs(q, site))
        assert not left_out[~may_be_dominated(q, site, plans, values)].any(), seed
        offers = site.entries.offer
        for i in np.flatnonzero(np.isfinite(values.goal_value)):
            row = plans.fallback[i]
            if row < 0:
                assert not left_out[i], seed
                continue
            wanted = np.where(offers == site.fallbacks.offer[row], site.fallbacks.count[row], 0)
            same = (plans.counts == wanted).all(axis=1) & (plans.fallback < 0)
            alone = np.flatnonzero(same & np.isfinite(values.goal_value))
            if not len(alone):
                assert not left_out[i], seed
                continue
            best = alone[values.goal_value[alone].argmin()]
            more = 1.0 / (1.0 - SAME_SHARE)
            cost, time = values.cost_usd[i] * more, values.time_s[i] * more
            beats = values.cost_usd[best] <= cost and values.time_s[best] <= time
            assert left_out[i] == beats, seed
            beaten += beats
        # For a plan that meets the limits there is another that does, no costlier or slower.
        assert (
            not np.isfinite(values.goal_value).any()
            or np.isfinite(values.goal_value[~left_out]).any()
        )
    assert beaten > 0


@pytest.mark.parametrize("seed", thinned(SEEDS[:40], 3))
def test_no_search_keeps_a_plan_that_its_fallback_beats(seed: int) -> None:
    q = question(seed)
    costs = fallback_costs(q, q.sites[0])
    cost, time = costs.usd, costs.time_s
    for found in search(q, slack=0.3, most=10**6).incumbents.values():
        if found.fallback >= 0:
            better = cost[found.fallback] <= found.cost_usd and time[found.fallback] <= found.time_s
            assert not better


def test_a_plan_is_not_left_out_for_a_fallback_that_misses_the_deadline_on_the_printed_paths() -> (
    None
):
    """Its fallback alone meets the deadline of this question within the error of few paths only."""
    assert_search_is_exact(space(101_676, 3, 4))
