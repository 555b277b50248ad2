"""Fits the seconds of a message to a latency and a bandwidth: t = a + bytes / B."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Line:
    """What was fitted, and how well."""

    latency_s: float
    bytes_per_s: float
    r2: float  # share of the variance of the seconds that the line explains
    residuals: tuple[float, ...]  # measured over fitted, minus one


def fit_line(sizes: Sequence[float], seconds: Sequence[float]) -> Line:
    """Fit by least squares, each error weighed by one over its seconds.

    A message is many blocks, each with a noise of its own: the variance of their sum grows like
    the seconds. Plain squares would leave the latency to the noise of the largest message,
    relative ones would let messages that fit into a cache decide the bandwidth.

    Neither part can be negative: a negative latency is set to zero and the other fitted alone.
    Raises ValueError for fewer than three sizes, or seconds that do not grow with the size.
    """
    x, t = np.asarray(sizes, float), np.asarray(seconds, float)
    if len(x) < 3 or len(x) != len(t) or not (t > 0).all() or len(np.unique(x)) < 3:
        raise ValueError("a line needs three message sizes with positive seconds")
    weight = 1 / np.sqrt(t)
    columns = np.column_stack([weight, x * weight])
    (latency, slope), *_ = np.linalg.lstsq(columns, t * weight, rcond=None)
    if latency < 0:
        latency, slope = 0.0, float(x.sum() / (x**2 / t).sum())
    if slope <= 0:
        raise ValueError("seconds do not grow with the size of the message")
    fitted = latency + slope * x
    unexplained, all_of_it = ((t - fitted) ** 2).sum(), ((t - t.mean()) ** 2).sum()
    r2 = 1 - unexplained / all_of_it if all_of_it > 0 else 0.0
    return Line(float(latency), float(1 / slope), float(r2), tuple((t / fitted - 1).tolist()))
