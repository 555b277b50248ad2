"""The lognormal law of run lengths: survival and mean excess, vectorised without scipy."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Abramowitz and Stegun 7.1.26 (1964): erfc within 1.5e-7
_P = 0.3275911
_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def normal_cdf(x: Floats) -> Floats:
    """P(N ≤ x) of the standard normal law, within 1e-7; any shape."""
    tail = 0.5 * _scaled_tail(np.abs(x)) * np.exp(-0.5 * x * x)
    found: Floats = np.where(x < 0, tail, 1.0 - tail)
    return found


def mills_ratio(x: Floats) -> Floats:
    """P(N > x) / density(x) for x ≥ 0: where both are too small to be divided."""
    return np.asarray(np.sqrt(0.5 * np.pi) * _scaled_tail(x))


def _scaled_tail(x: Floats) -> Floats:
    """erfc(x/√2)·exp(x²/2) for x ≥ 0."""
    t = 1.0 / (1.0 + (_P / np.sqrt(2.0)) * x)
    tail: Floats = np.zeros_like(t)
    for coefficient in _COEFFICIENTS:
        tail = (tail + coefficient) * t
    return tail


def lognormal_survival(t: Floats, mean: Floats, sigma: Floats) -> Floats:
    """P(X > t) of a lognormal X with the given mean and sd of ln X; arguments broadcast."""
    centre = np.log(mean) - 0.5 * sigma * sigma
    return normal_cdf((centre - np.log(np.maximum(t, 1e-300))) / np.maximum(sigma, 1e-9))


def lognormal_excess(t: Floats, mean: Floats, sigma: Floats) -> Floats:
    """E[(X - t)+] of a lognormal X with the given mean and sd of ln X; arguments broadcast."""
    scale = np.maximum(sigma, 1e-9)
    t = np.minimum(t, 1e300)
    z = (np.log(mean) - 0.5 * scale * scale - np.log(np.maximum(t, 1e-300))) / scale
    return np.maximum(mean * normal_cdf(z + scale) - t * normal_cdf(z), 0.0)
