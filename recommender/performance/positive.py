"""Small least-squares fits of non-negative constants, without a library of optimisers."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from recommender.performance.least_squares import Belief, solve

Floats = NDArray[np.float64]

FARTHEST = 10.0  # a logarithm moves no farther from where it starts
UNSURE = 1e6  # sd of a logarithm of which nothing is believed
SMALL = 1e-4  # residuals far below what any fit leaves: the search ends where they settle


def nonnegative(columns: Floats, target: Floats) -> Floats:
    """The x >= 0 of least |columns·x - target|²; columns (rows, constants), a handful of them.

    Every set of constants that stay positive is tried, so the minimum is exact.
    """
    count = columns.shape[1]
    length = np.linalg.norm(columns, axis=0)
    length = np.where(length > 0, length, 1.0)  # constants of any unit are alike to the solver
    columns = columns / length
    best, least = np.zeros(count), float(target @ target)
    for size in range(1, count + 1):
        for used in combinations(range(count), size):
            some = columns[:, list(used)]
            found = np.linalg.lstsq(some, target, rcond=None)[0]
            missed = float(((some @ found - target) ** 2).sum())
            if (found >= 0).all() and missed < least:
                best, least = np.zeros(count), missed
                best[list(used)] = found
    return np.asarray(best / length)


def positive(residuals: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Constants > 0 of least sum of squared residuals near `start`.

    Steps are taken in the logarithms of the constants, of which nothing is believed.
    """
    at = np.log(start)
    nothing = Belief(at, np.full(len(at), UNSURE), at - FARTHEST, at + FARTHEST)
    target = np.zeros(len(residuals(start)))
    fit = solve(lambda theta: residuals(np.exp(theta)), target, SMALL, nothing, at, np.inf)
    return np.asarray(np.exp(fit.value))
