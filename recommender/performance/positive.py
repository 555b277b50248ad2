"""Small least-squares fits of non-negative constants, without a library of optimisers."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
