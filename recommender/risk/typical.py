"""The time of a plan that waits for spot: the mean of the nine runs of ten inside its span.

A zone's mean outage is lognormal with a spread of 1.4 to 2.6 (docs/risk-facts.md), so a few
histories in a thousand wait for months. They rule a plain mean: over 2,048 histories it is off
by a third, and may lie above the 95 % quantile. They are no forecast either: the spread comes
from recordings of weeks. The mean of the middle nine tenths is a figure of those runs that the
printed span holds; it lies inside the span, and 2,048 histories tell it to a few per cent.

It grows with every single history, so a bound on each history bounds it (`optimize/floors.py`).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ONE_IN = 20  # the fastest and the slowest of so many runs are left out: the span is 5 to 95 %


def typical(values: Floats) -> Floats:
    """Mean of the middle nine tenths along the last axis."""
    count = values.shape[-1]
    out = count // ONE_IN
    means: Floats = np.sort(values, axis=-1)[..., out : count - out].mean(axis=-1)
    return means


def quantiles(values: Floats, *shares: float) -> tuple[float, ...]:
    """Values that these shares of the histories do not exceed, between two by their distance.

    `np.quantile` gives the same, and imports `numpy.ma` for it at the first call.
    """
    places = np.array(shares) * (len(values) - 1)
    return tuple(np.interp(places, np.arange(len(values)), np.sort(values)).tolist())


def middle(values: Floats) -> Ints:
    """Which histories these are; `values` has shape (histories,)."""
    out = len(values) // ONE_IN
    return np.argsort(values, kind="stable")[out : len(values) - out]


def typical_error(values: Floats) -> float:
    """Standard error of the typical value of independent histories, shape (histories,).

    Tukey and McLaughlin (1963): the deviation of the sample whose tails are pulled in to the
    ends of the middle, over the share that is left.
    """
    inside = np.sort(values)[len(values) // ONE_IN : len(values) - len(values) // ONE_IN]
    pulled = np.clip(values, inside[0], inside[-1])
    return float(pulled.std() / (1.0 - 2.0 / ONE_IN) / np.sqrt(len(values)))
