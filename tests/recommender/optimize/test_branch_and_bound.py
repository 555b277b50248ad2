"""The search by boxes against every plan of small spaces."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.branch_and_bound import boxes_apply, search_boxes
from recommender.optimize.entry_sets import counts_lower_bounds
from recommender.optimize.search_state import SearchState
from recommender.optimize.space import Space
from tests.recommender.optimize.palette import (
    assert_boxes_are_exact,
    evaluate,
    every_cluster,
    every_plan,
    no_fallbacks,
    oracle,
    space,
)
from tests.recommender.optimize.samples import thinned

SEEDS = range(40)


def alone(seed: int) -> Space:
    """A random space of one region without fallbacks, where cost or time is the goal."""
    found = space(seed, entries=3 + seed % 2, most=4 + (seed % 3 == 0))
    site = replace(found.sites[0], fallbacks=no_fallbacks(), region="here")
    limits = found.limits
    if limits.goal == "frontier":
        limits = replace(limits, objective="cost" if seed % 2 else "time")
    job = replace(found.job, elastic=False)
    return replace(found, job=job, limits=limits, sites=(site,))


@pytest.mark.parametrize("seed", thinned(SEEDS, 3))
def test_boxes_find_the_best_plan(seed):
    assert_boxes_are_exact(alone(seed))


@pytest.mark.parametrize("seed", thinned(SEEDS, 3))
def test_a_cluster_called_too_late_never_meets_its_limits(seed):
    asked = replace(space(seed), job=replace(space(seed).job, elastic=False))
    site = asked.sites[0]
    counts = every_cluster(site, asked.limits.max_machines)
    late = counts[~np.isfinite(counts_lower_bounds(asked, site, counts))]
    if len(late):
        assert not np.isfinite(
            evaluate(asked, site, every_plan(asked, site, late)).goal_value
        ).any()


def test_what_was_not_looked_at_is_a_gap():
    asked = next(one for one in map(alone, SEEDS) if np.isfinite(oracle(one)[1].goal_value.min()))
    state = SearchState(slack=0.0, max_plans=10**6, max_supports=0)
    search_boxes(asked, 0, state)
    assert state.gap() > 0.0


def test_boxes_are_for_many_machines_without_fallbacks_or_a_budget():
    asked = alone(0)
    entries = asked.sites[0].entries
    site = replace(asked.sites[0], entries=replace(entries, cap=np.full(len(entries), 100)))
    large = replace(asked.limits, max_machines=100, budget_usd=None, objective="cost")
    assert boxes_apply(replace(asked, limits=large), site)
    assert not boxes_apply(replace(asked, limits=replace(large, max_machines=16)), site)
    assert not boxes_apply(replace(asked, limits=replace(large, budget_usd=9.0)), site)
    assert not boxes_apply(replace(asked, job=replace(asked.job, elastic=True), limits=large), site)
