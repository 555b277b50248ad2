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

from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import Values, values_of
from recommender.optimize.space import Space
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs

MIN_GAIN = 0.01  # of the cost: less is not worth a second rule
# Slack per second that is still needed on demand. Of six markets of V100 (48 h of work in 52, 60
# and 72 h, one and three zones) the best pair of a finer grid cost at most 0.4 % less (2026-11-29).
WAIT_ABOVE = (0.05, 0.1, 0.2, 0.4)
BACK_ABOVE = (0.02, 0.05, 0.1)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The two numbers of `risk/policy.py`."""

    wait_above: float = 0.0
    back_above: float = np.inf

    def of(self, plan: PathInputs) -> PathInputs:
        """A plan with these thresholds; one row."""
        each = np.array([self.wait_above]), np.array([self.back_above])
        return replace(plan, wait_above=each[0], back_above=each[1])


SIMPLE = Thresholds()


def best_thresholds(space: Space, plan: PathInputs) -> Thresholds:
    """The thresholds of a plan (one row), those of the simple rule where others gain little."""
    if space.limits.goal == "time" or not _may_gain(space, plan):
        return SIMPLE
    pairs = [Thresholds(*pair) for pair in product(WAIT_ABOVE, BACK_ABOVE)]
    grid = PathInputs.joined([pair.of(plan) for pair in pairs])
    tried = values_of(space, grid)
    best = pairs[int(np.argmin(tried.goal_value))]
    both = PathInputs.joined([plan, best.of(plan)])
    simple, other = _of_each(values_of(space.on_printed_paths(), both))
    gains = not simple.meets_limits[0] or other.cost_usd < (1.0 - MIN_GAIN) * simple.cost_usd
    return best if other.meets_limits[0] and gains else SIMPLE


def _of_each(both: Values) -> tuple[Values, Values]:
    return both.take(np.array([0])), both.take(np.array([1]))


def _may_gain(space: Space, plan: PathInputs) -> bool:
    """Whether the work of a gang's fallback costs enough more than it would on spot."""
    deadline_s = space.limits.deadline_s
    if deadline_s is None or plan.fallback_speed[0] <= 0.0 or plan.elastic_share[0] > 0.0:
        return False
    paths = simulate_paths(plan, deadline_s, space.cache.path_count, space.seed)
    more_usd = plan.fallback_usd_per_hour[0] - plan.fallback_speed[0] * plan.spot_usd_per_hour[0]
    gain = more_usd * paths.fallback_s.mean() / 3600.0
    return bool(gain > MIN_GAIN * paths.expected_usd.mean())
