"""The chance that limits are met, on more paths where the printed ones cannot tell.

A chance of 95 % is known to half a point on 2,048 paths. A plan within that error of the chance that
is asked is simulated on 16,384 paths before it is refused or praised, and accepted within what these
know: so no answer hangs on the seed.
"""

import math

from recommender.optimize.evaluate import limits_met
from recommender.optimize.space import Space
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import keys_of

SAMPLES = 8  # of as many paths as are printed, with other seeds
OTHER = 1_000_003  # from one seed to the next
ERRORS = 2.0  # standard errors within which a chance is looked at again


def chance_error(chance: float, paths: int) -> float:
    """Standard error of a share of independent paths."""
    return math.sqrt(max(chance * (1.0 - chance), 0.0) / paths)


def enough(limits: Limits, paths: int) -> float:
    """The smallest chance that is the one asked for, as far as the largest sample knows."""
    return limits.confidence - chance_error(limits.confidence, SAMPLES * paths) - 1e-12


def sure_chance(space: Space, plan: PathInputs, chance: float) -> float:
    """The chance of a plan (one row), given that on the printed paths."""
    cache = space.on_printed_paths().cache
    asked = space.limits.confidence
    if abs(chance - asked) > ERRORS * chance_error(asked, cache.path_count):
        return chance
    key = keys_of(plan, space.limits.deadline_s)[0], space.limits
    if key not in space.sure:
        more = (_chance(space, plan, number) for number in range(1, SAMPLES))
        space.sure[key] = (chance + sum(more)) / SAMPLES
    return space.sure[key]


def _chance(space: Space, plan: PathInputs, number: int) -> float:
    cache = space.on_printed_paths().cache
    seed = cache.seed + number * OTHER
    paths = simulate_paths(plan, space.limits.deadline_s, cache.path_count, seed)
    return float(limits_met(space.limits, paths).mean())
