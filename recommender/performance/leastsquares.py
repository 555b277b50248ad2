"""Small least-squares fits of non-negative constants, without a library of optimisers."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 100
TURN = 1e-6  # of a logarithm, for numerical slopes
WIDEST = 1.0  # change of a logarithm in one step


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
    """Constants > 0 of least sum of squared residuals near `start`, by Levenberg and Marquardt.

    Steps are taken in the logarithms of the constants.
    """
    at, damping = np.log(start), 1e-2
    missed = residuals(np.exp(at))
    for _ in range(STEPS):
        moved = at[None] + TURN * np.eye(len(at))
        slopes = np.stack([residuals(np.exp(y)) - missed for y in moved], axis=1) / TURN
        normal = slopes.T @ slopes
        scale = np.diag(np.diag(normal) + 1e-12)
        step = np.linalg.solve(normal + damping * scale, -slopes.T @ missed)
        tried = at + np.clip(step, -WIDEST, WIDEST)
        now = residuals(np.exp(tried))
        if now @ now < missed @ missed:
            at, missed, damping = tried, now, damping / 5.0
        else:
            damping *= 4.0
        if damping > 1e10:
            break
    return np.asarray(np.exp(at))
