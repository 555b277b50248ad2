"""Rejects plans that break a limit in too many of their first runs, without simulating all of them.

Under a budget the search evaluates plans with hundreds of interruptions that cost too much in every
run. A limit met in 95 % of 256 runs is broken in at most 12, so 13 among the first 32 decide. The
first runs are the same as in the whole sample, so no plan that would meet the limits is rejected.
"""

import numpy as np

from recommender.arrays import Bools
from recommender.optimize.evaluate import limits_met
from recommender.optimize.space import Space
from recommender.plan.limits import PATH_LIMITS
from recommender.risk.monte_carlo import cycles_needed, simulate_paths
from recommender.risk.path_inputs import PathInputs

FIRST_PATHS = 32  # runs looked at first
LONG = 24  # cycles drawn from which on that pays: shorter plans take no longer in full


def surely_infeasible(space: Space, inputs: PathInputs) -> Bools:
    """Which plans cannot meet the limits often enough; False if undecided."""
    limits, cache = space.limits, space.cache
    found = np.zeros(len(inputs), dtype=bool)
    broken_at_most = (1.0 - space.min_chance) * cache.path_count
    if broken_at_most >= FIRST_PATHS or next(limits.given(PATH_LIMITS), None) is None:
        return found
    # What a fallback could save has to be known of all runs; with one, most deadlines are met.
    rows = np.isinf(inputs.best_fallback_usd_per_hour)
    if limits.budget_usd is None:
        rows &= inputs.fallback_speed <= 0.0
    rows &= cycles_needed(inputs, limits.deadline_s) >= LONG
    rows[rows] = cache.not_cached(inputs.take(np.flatnonzero(rows)), limits.deadline_s)
    if rows.any():
        begun = simulate_paths(
            inputs.take(np.flatnonzero(rows)),
            limits.deadline_s,
            cache.path_count,
            cache.seed,
            first=FIRST_PATHS,
        )
        found[rows] = (~limits_met(limits, begun)).sum(axis=1) > broken_at_most + 1e-6
    return found
