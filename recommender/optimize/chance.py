"""The chance that limits are met, on more paths where the printed ones cannot tell.

A chance of 95 % is known to half a point on 2,048 paths. A plan within that error of the chance
that is asked is simulated on up to 16,384 paths before it is refused or praised, and accepted
within what these know: so no answer hangs on the seed.
"""

import math

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.optimize.evaluate import chance_of
from recommender.optimize.space import Space
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import clear_caches
from recommender.risk.run_statistics import keys_of

SAMPLES = 8  # of as many paths as are printed, with other seeds
LOOKS = (1, 3)  # samples after which plans that are decided are left
OTHER = 1_000_003  # from one seed to the next
ERRORS = 2.0  # standard errors within which a chance is looked at again


def chance_error(chance: float, paths: int) -> float:
    """Standard error of a share of independent paths."""
    return math.sqrt(max(chance * (1.0 - chance), 0.0) / paths)


def enough(limits: Limits, paths: int) -> float:
    """The smallest chance that is the one asked for, as far as the largest sample knows."""
    return limits.confidence - chance_error(limits.confidence, SAMPLES * paths) - 1e-12


def near(limits: Limits, chances: Floats, paths: int) -> Bools:
    """Which chances on so many paths may be the one asked for, or may not."""
    asked = limits.confidence
    return np.asarray(np.abs(chances - asked) <= ERRORS * chance_error(asked, paths))


def sure_chances(space: Space, plans: PathInputs, chances: Floats) -> Floats:
    """The chances of plans, given those on the printed paths; (plans,)."""
    limits, cache = space.limits, space.on_printed_paths().cache
    rows = np.flatnonzero(near(limits, chances, cache.path_count))
    if not len(rows):
        return chances
    keys = [(key, limits) for key in keys_of(plans.take(rows), limits.deadline_s)]
    new = np.flatnonzero([key not in space.sure for key in keys])
    if len(new):
        found = _followed(space, plans.take(rows[new]), chances[rows[new]])
        space.sure.update(zip([keys[row] for row in new.tolist()], found.tolist(), strict=True))
    chances = chances.copy()
    chances[rows] = [space.sure[key] for key in keys]
    return chances


def _followed(space: Space, plans: PathInputs, chances: Floats) -> Floats:
    """The chances of plans on more samples, of which the printed one is the first.

    So many in all: two, four, then all of those that are still near.
    """
    cache, limits, found = space.on_printed_paths().cache, space.limits, chances.copy()
    open_ = np.arange(len(plans))
    for number in range(1, SAMPLES):
        seed = cache.seed + number * OTHER
        paths = simulate_paths(plans.take(open_), limits.deadline_s, cache.path_count, seed)
        met = chance_of(limits, paths, plans.take(open_))
        found[open_] += (met - found[open_]) / (number + 1)
        if number in LOOKS:
            open_ = open_[near(limits, found[open_], (number + 1) * cache.path_count)]
        if not len(open_):
            break
    clear_caches()  # of seeds that are used once
    return found
