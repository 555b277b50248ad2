"""Least squares with few constants that must not be negative."""

from itertools import combinations

import numpy as np

from recommender.arrays import Floats


def nonnegative(columns: Floats, target: Floats) -> Floats:
    """Minimise |columns·x - target|² over x >= 0; columns (rows, constants), few constants.

    Every subset of positive constants is tried, so the minimum is exact.
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
