"""The standard normal law: quantiles, distribution, Mills' ratio, by rational approximations."""

import numpy as np

from recommender.arrays import Floats

# Rational approximation of the inverse normal distribution: P. J. Acklam (2003), relative
# error below 1.2e-9 over (0, 1).
_CENTRE_TOP = (-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02,
               1.383577518672690e02, -3.066479806614716e01, 2.506628277459239e00)  # fmt: skip
_CENTRE_BOTTOM = (-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02,
                  6.680131188771972e01, -1.328068155288572e01, 1.0)  # fmt: skip
_TAIL_TOP = (-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00,
             -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00)  # fmt: skip
_TAIL_BOTTOM = (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00,
                3.754408661907416e00, 1.0)  # fmt: skip
_TAIL = 0.02425
_CHUNK = 16_384  # values at a time: temporaries stay in the second-level cache
# Abramowitz and Stegun 7.1.26 (1964): erfc within 1.5e-7
_P = 0.3275911
_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def normal_quantile(uniform: Floats) -> Floats:
    """Quantiles of the standard normal law at uniforms in (0, 1); any shape."""
    flat = np.ascontiguousarray(uniform).ravel()
    found = np.empty_like(flat)
    for begin in range(0, flat.size, _CHUNK):
        found[begin : begin + _CHUNK] = _quantile(flat[begin : begin + _CHUNK])
    return found.reshape(uniform.shape)


def _quantile(uniform: Floats) -> Floats:
    centre = uniform - 0.5
    square = centre * centre
    inner = centre * _polynomial(_CENTRE_TOP, square)
    inner /= _polynomial(_CENTRE_BOTTOM, square)
    tail = np.flatnonzero(np.abs(centre) > 0.5 - _TAIL - 1e-9)
    low = np.minimum(uniform[tail], 1.0 - uniform[tail])
    tail, low = tail[low < _TAIL], low[low < _TAIL]
    root = np.sqrt(-2.0 * np.log(low))
    outer = _polynomial(_TAIL_TOP, root) / _polynomial(_TAIL_BOTTOM, root)
    inner[tail] = np.where(uniform[tail] < 0.5, outer, -outer)
    return inner


def _polynomial(coefficients: tuple[float, ...], at: Floats) -> Floats:
    value = at * coefficients[0]
    value += coefficients[1]
    for coefficient in coefficients[2:]:
        value *= at
        value += coefficient
    return value


def normal_cdf(x: Floats) -> Floats:
    """P(N ≤ x) of the standard normal law, within 1e-7; any shape."""
    tail = 0.5 * _scaled_tail(np.abs(x)) * np.exp(-0.5 * x * x)
    found: Floats = np.where(x < 0, tail, 1.0 - tail)
    return found


def mills_ratio(x: Floats) -> Floats:
    """P(N > x) / density(x) for x ≥ 0, also if both are too small to divide."""
    return np.asarray(np.sqrt(0.5 * np.pi) * _scaled_tail(x))


def _scaled_tail(x: Floats) -> Floats:
    """erfc(x/√2)·exp(x²/2) for x ≥ 0."""
    t = 1.0 / (1.0 + (_P / np.sqrt(2.0)) * x)
    tail: Floats = np.zeros_like(t)
    for coefficient in _COEFFICIENTS:
        tail = (tail + coefficient) * t
    return tail


def normal_cdf_lower_bound(z: Floats) -> Floats:
    """Lower bound of the standard normal CDF: logistic form minus its largest error."""
    z = np.clip(z, -30.0, 30.0)
    return np.maximum(1.0 / (1.0 + np.exp(-1.5976 * z - 0.07056 * z**3)) - 2e-4, 0.0)
