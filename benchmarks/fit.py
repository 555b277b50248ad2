"""Fits the seconds of a message to a latency and a bandwidth: t = a + bytes / B.

Software may treat large messages otherwise: Gloo takes fresh memory for every all-gather and
reduce-scatter, which glibc gives back to the system from 32 MiB on (M_MMAP_THRESHOLD's largest),
so that each call pays for its pages and a byte costs twice as much. Such times are two lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

GOOD = 0.95  # share of the variance that a line must explain to be used
_LEAST = 3  # sizes of a line


@dataclass(frozen=True, slots=True)
class Line:
    """What was fitted, and how well."""

    latency_s: float
    bytes_per_s: float
    r2: float  # share of the variance of the seconds that the line explains
    residuals: tuple[float, ...]  # measured over fitted, minus one
    least_bytes: float = 0.0  # of the messages that it is for: above zero for a second line


def fit_line(sizes: Sequence[float], seconds: Sequence[float]) -> Line:
    """Fit by least squares, each error weighed by one over its seconds.

    A message is many blocks, each with a noise of its own: the variance of their sum grows like
    the seconds. Plain squares would leave the latency to the noise of the largest message,
    relative ones would let messages that fit into a cache decide the bandwidth.

    Neither part can be negative: a negative latency is set to zero and the other fitted alone.
    Raises ValueError for fewer than three sizes, or seconds that do not grow with the size.
    """
    x, t = np.asarray(sizes, float), np.asarray(seconds, float)
    few = len(x) < _LEAST or len(np.unique(x)) < _LEAST
    if few or len(x) != len(t) or not (t > 0).all():
        raise ValueError("a line needs three message sizes with positive seconds")
    latency, slope = _solved(x, t)
    fitted = latency + slope * x
    return Line(latency, 1 / slope, _explained(t, fitted), tuple((t / fitted - 1).tolist()))


def fit_lines(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[Line, ...]:
    """Fit one line, or two where one explains less than 95 % and two do better.

    The break is where two lines, each of three sizes or more, leave least; both tell the share
    of the variance that they explain together. Raises as `fit_line`.
    """
    order = np.argsort(sizes)
    x, t = np.asarray(sizes, float)[order], np.asarray(seconds, float)[order]
    whole = fit_line(x.tolist(), t.tolist())
    best: tuple[Line, ...] = (whole,)
    if whole.r2 >= GOOD:
        return best
    for cut in range(_LEAST, len(x) - _LEAST + 1):
        try:
            parts = [fit_line(x[s].tolist(), t[s].tolist()) for s in (slice(cut), slice(cut, None))]
        except ValueError:  # a part that does not grow is noise, no line
            continue
        fitted = np.concatenate(
            [
                p.latency_s + x[s] / p.bytes_per_s
                for p, s in zip(parts, (slice(cut), slice(cut, None)), strict=True)
            ]
        )
        r2 = _explained(t, fitted)
        if r2 > best[0].r2:
            best = (replace(parts[0], r2=r2), replace(parts[1], r2=r2, least_bytes=float(x[cut])))
    return best


def _solved(x: NDArray[np.float64], t: NDArray[np.float64]) -> tuple[float, float]:
    weight = 1 / np.sqrt(t)
    columns = np.column_stack([weight, x * weight])
    (latency, slope), *_ = np.linalg.lstsq(columns, t * weight, rcond=None)
    if latency < 0:
        latency, slope = 0.0, float(x.sum() / (x**2 / t).sum())
    if slope <= 0:
        raise ValueError("seconds do not grow with the size of the message")
    return float(latency), float(slope)


def _explained(t: NDArray[np.float64], fitted: NDArray[np.float64]) -> float:
    unexplained, all_of_it = ((t - fitted) ** 2).sum(), ((t - t.mean()) ** 2).sum()
    return float(1 - unexplained / all_of_it) if all_of_it > 0 else 0.0
