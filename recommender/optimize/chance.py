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
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import SEED

SAMPLES = 8  # of as many paths as are printed, the first those of the default seed
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
    """The chances of plans, given those on the printed paths; (plans,).

    Of those near the one asked on two samples, and on more, up to all, while they are still near.
    """
    cache, limits = space.on_printed_paths().cache, space.limits
    chances = chances.copy()
    open_ = np.flatnonzero(near(limits, chances, cache.path_count))
    found = np.zeros(len(chances))
    for number in range(SAMPLES):
        if not len(open_):
            break
        some = plans.take(open_)
        paths = cache.other(SEED + number * OTHER).outcomes(some, limits.deadline_s)
        found[open_] += (chance_of(limits, paths, some) - found[open_]) / (number + 1)
        chances[open_] = found[open_]
        if number:
            so_far = (number + 1) * cache.path_count
            open_ = open_[near(limits, found[open_], so_far, FOLLOWED)]
    return chances
