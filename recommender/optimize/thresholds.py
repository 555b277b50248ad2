"""Chooses the two thresholds of a plan's policy: when it gives up waiting, when it goes back.

All pairs of a small grid are simulated on the paths of a search and the cheapest is confirmed on
the printed ones. Costs are flat around the best pair (docs/policies.md), so the grid is coarse. A
plan keeps to the simple rule (wait to the last moment, then stay on demand) where thresholds gain
no more than a hundredth, which is surely so where spot would save no more on all that its
fallback does.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from recommender.arrays import Bools, Ints
from recommender.optimize.evaluate import values_of
from recommender.optimize.space import Space
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs

MIN_GAIN = 0.01  # of the cost: less is not worth a second rule
# Slack per second that is still needed on demand. Of six markets of V100 (48 h of work in 52, 60
# and 72 h, one and three zones) the best pair of a finer grid cost at most 0.4 % less (2026-11-29).
WAIT_ABOVE = (0.05, 0.1, 0.2, 0.4)
BACK_ABOVE = (0.02, 0.05, 0.1)


def with_thresholds(space: Space, plans: PathInputs, among: Ints) -> PathInputs:
    """Plans, some of them with their best thresholds where these gain more than a little."""
    if space.limits.goal == "time" or not len(among):
        return plans
    rows = among[_may_gain(space, plans.take(among))]
    if not len(rows):
        return plans
    simple = plans.take(rows)
    best = _best(space, simple)
    printed = space.on_printed_paths()
    before, after = values_of(printed, simple), values_of(printed, best)
    gains = ~before.meets_limits | (after.cost_usd < (1.0 - MIN_GAIN) * before.cost_usd)
    gains &= after.meets_limits
    waits, backs = plans.wait_above.copy(), plans.back_above.copy()
    waits[rows[gains]], backs[rows[gains]] = best.wait_above[gains], best.back_above[gains]
    return replace(plans, wait_above=waits, back_above=backs)


def _best(space: Space, plans: PathInputs) -> PathInputs:
    """Plans with the pair of the grid that is best on the paths of a search."""
    pairs = list(product(WAIT_ABOVE, BACK_ABOVE))
    tried = values_of(space, PathInputs.joined([_with(plans, *pair) for pair in pairs]))
    best = tried.goal_value.reshape(len(pairs), len(plans)).argmin(axis=0)
    waits, backs = np.array(pairs).T
    return replace(plans, wait_above=waits[best], back_above=backs[best])


def _with(plans: PathInputs, wait: float, back: float) -> PathInputs:
    count = len(plans)
    return replace(plans, wait_above=np.full(count, wait), back_above=np.full(count, back))


def _may_gain(space: Space, plans: PathInputs) -> Bools:
    """Where the work of a gang's fallback costs enough more than it would on spot; (plans,)."""
    able = (plans.fallback_speed > 0.0) & (plans.elastic_share <= 0.0)
    rows, deadline_s = np.flatnonzero(able), space.limits.deadline_s
    if deadline_s is None or not len(rows):
        return np.zeros(len(plans), dtype=bool)
    some = plans.take(rows)
    paths = simulate_paths(some, deadline_s, space.cache.path_count, space.seed)
    more_usd = some.fallback_usd_per_hour - some.fallback_speed * some.spot_usd_per_hour
    gain = more_usd * paths.fallback_s.mean(axis=1) / 3600.0
    able[rows] = gain > MIN_GAIN * paths.expected_usd.mean(axis=1)
    return able
