"""The chance that limits are met, on more paths where the printed ones cannot tell.

A chance of 95 % is known to half a point on 2,048 paths. A plan within that error of the chance
that is asked is simulated on up to 16,384 paths before it is refused or praised, and accepted
within what these know. They are the same paths whatever the seed of the printed ones: so no answer
hangs on the seed.
"""

import math

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.optimize.evaluate import chance_of
from recommender.optimize.space import Space
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import SEED, clear_caches
from recommender.risk.run_statistics import keys_of

SAMPLES = 8  # of as many paths as are printed, the first those of the default seed
LOOKS = (1, 3)  # samples after which plans that are decided are left
OTHER = 1_000_003  # from one seed to the next
# Standard errors within which a chance on the printed paths is looked at again, whatever their
# seed; and within which it is followed on the paths that are the same for all.
ERRORS, FOLLOWED = 3.0, 2.0


def chance_error(chance: float, paths: int) -> float:
    """Standard error of a share of independent paths."""
    return math.sqrt(max(chance * (1.0 - chance), 0.0) / paths)


def enough(limits: Limits, paths: int) -> float:
    """The smallest chance that is the one asked for, as far as the largest sample knows."""
    return limits.confidence - chance_error(limits.confidence, SAMPLES * paths) - 1e-12


def near(limits: Limits, chances: Floats, paths: int, errors: float = ERRORS) -> Bools:
    """Which chances on so many paths may be the one asked for, or may not."""
    asked = limits.confidence
    return np.asarray(np.abs(chances - asked) <= errors * chance_error(asked, paths))


def sure_chances(space: Space, plans: PathInputs, chances: Floats) -> Floats:
    """The chances of plans, given those on the printed paths; (plans,)."""
    limits, cache = space.limits, space.on_printed_paths().cache
    rows = np.flatnonzero(near(limits, chances, cache.path_count))
    if not len(rows):
        return chances
    keys = [(key, limits) for key in keys_of(plans.take(rows), limits.deadline_s)]
    new = np.flatnonzero([key not in cache.chances for key in keys])
    if len(new):
        found = _followed(space, plans.take(rows[new]), chances[rows[new]])
        cache.chances.update(zip([keys[row] for row in new.tolist()], found.tolist(), strict=True))
    chances = chances.copy()
    chances[rows] = [cache.chances[key] for key in keys]
    return chances


def _followed(space: Space, plans: PathInputs, chances: Floats) -> Floats:
    """The chances of plans on several samples: two, four, then all of those that are still near."""
    cache, limits, found = space.on_printed_paths().cache, space.limits, np.zeros(len(plans))
    open_ = np.arange(len(plans))
    for number in range(SAMPLES):
        seed = SEED + number * OTHER
        if seed == cache.seed:
            met = chances[open_]
        else:
            some = plans.take(open_)
            paths = simulate_paths(some, limits.deadline_s, cache.path_count, seed)
            met = chance_of(limits, paths, some)
        found[open_] += (met - found[open_]) / (number + 1)
        if number in LOOKS:
            paths_so_far = (number + 1) * cache.path_count
            open_ = open_[near(limits, found[open_], paths_so_far, FOLLOWED)]
        if not len(open_):
            break
    clear_caches()  # of seeds that are used once
    return found
