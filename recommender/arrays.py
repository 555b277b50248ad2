"""Short names for the arrays that every part passes around, and the quantile of every span."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Z_90 = 1.6449  # standard deviations on either side that hold 90 % of a normal law

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Each value once, ascending; `np.unique` imports `numpy.ma` at its first call, 8 ms."""
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    found: NDArray[Any] = ordered[first]
    return found
