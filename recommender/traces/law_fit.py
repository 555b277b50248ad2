"""Laws of interval lengths by maximum likelihood: lognormal, Weibull, exponential, with censoring.

All three are location-scale families of y = ln X: y = μ + σ·z. An interval that was seen to its
end adds ln f(z) - ln σ - y, one that was cut off adds ln S(z):

    lognormal      f normal                     shape σ          median e^μ
    Weibull        f(z) = exp(z - e^z)          shape k = 1/σ    median e^μ·(ln 2)^σ
    exponential    Weibull with σ = 1           shape 1

(Lawless, Statistical Models and Methods for Lifetime Data, 2003, ch. 5.) Newton's method in
(μ, ln σ); limits from the observed information, on the scale of the logarithm.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.traces.fit_result import LawFit, Value

Slopes = tuple[Floats, Floats, Floats]  # ln f or ln S, and its first two derivatives

Z95 = 1.959963985
_STEPS = 200
_TOLERANCE = 1e-10
MIN_SEEN = 3  # intervals of different length without which a shape is not fitted


@dataclass(frozen=True, slots=True)
class ObservedIntervals:
    """Lengths of intervals and whether their end was seen; both shape (intervals,), hours > 0."""

    hours: Floats
    over: Bools

    def __len__(self) -> int:
        return len(self.hours)


def pool_intervals(parts: Sequence[ObservedIntervals]) -> ObservedIntervals:
    """The intervals of several series together."""
    return ObservedIntervals(
        np.concatenate([part.hours for part in parts]), np.concatenate([p.over for p in parts])
    )


@dataclass(frozen=True, slots=True)
class LikelihoodMaximum:
    """Where the likelihood is greatest, and the covariance of (μ, ln σ) there."""

    mu: float
    log_sigma: float
    log_likelihood: float
    covariance: Floats  # (2, 2)


def fit_laws(what: str, intervals: ObservedIntervals) -> tuple[LawFit, ...]:
    """The three families fitted to some intervals, best first; none where no end was seen.

    Lognormal and Weibull need three intervals of different length.
    """
    if not intervals.over.any():
        return ()
    found = [_exponential(what, intervals)]
    if len(np.unique(intervals.hours[intervals.over])) >= MIN_SEEN:
        for family in ("lognormal", "weibull"):
            found.append(_law(what, family, intervals, most_likely(family, intervals)))
    least = min(law.aic for law in found)
    ranked = sorted(found, key=lambda law: law.aic)
    return tuple(_marked(law, law.aic == least) for law in ranked)


def _marked(law: LawFit, best: bool) -> LawFit:
    names = (name for name in LawFit.__slots__ if name != "best")
    return LawFit(best=best, **{name: getattr(law, name) for name in names})


def _exponential(what: str, intervals: ObservedIntervals) -> LawFit:
    """Mean = time in all intervals per end seen; its logarithm has the variance 1/ends."""
    ends = int(intervals.over.sum())
    mean = float(intervals.hours.sum()) / ends
    aic = 2.0 - 2.0 * (-ends * math.log(mean) - ends)
    width = 1.0 / math.sqrt(ends)
    return LawFit(
        what=what,
        family="exponential",
        mean_h=around(math.log(mean), width),
        median_h=around(math.log(mean * math.log(2.0)), width),
        shape=Value(1.0),
        aic=aic,
        best=False,
        seen=ends,
        unfinished=len(intervals) - ends,
    )


def _law(what: str, family: str, intervals: ObservedIntervals, best: LikelihoodMaximum) -> LawFit:
    sigma, mu = math.exp(best.log_sigma), best.mu
    spread = math.sqrt(best.covariance[1, 1])
    weibull = family == "weibull"
    shape = around(-best.log_sigma if weibull else best.log_sigma, spread)
    medians = (1.0, sigma * math.log(math.log(2.0)) if weibull else 0.0)
    log_median = mu + (sigma * math.log(math.log(2.0)) if weibull else 0.0)
    step = 1e-5
    above, below = (_log_mean(family, mu, math.exp(best.log_sigma + d)) for d in (step, -step))
    means = (1.0, (above - below) / (2.0 * step))
    ends = int(intervals.over.sum())
    return LawFit(
        what=what,
        family=family,
        mean_h=around(_log_mean(family, mu, sigma), _width(means, best.covariance)),
        median_h=around(log_median, _width(medians, best.covariance)),
        shape=shape,
        aic=4.0 - 2.0 * best.log_likelihood,
        best=False,
        seen=ends,
        unfinished=len(intervals) - ends,
    )


def _log_mean(family: str, mu: float, sigma: float) -> float:
    return mu + (math.lgamma(1.0 + sigma) if family == "weibull" else 0.5 * sigma * sigma)


def _width(slope: tuple[float, float], covariance: Floats) -> float:
    """Standard deviation of a function with this slope (delta method)."""
    g = np.array(slope)
    return math.sqrt(max(float(g @ covariance @ g), 0.0))


def around(log_value: float, width: float) -> Value:
    """A positive number with limits that are symmetric on the scale of its logarithm."""
    low, high = log_value - Z95 * width, log_value + Z95 * width
    return Value(math.exp(log_value), math.exp(low), math.exp(min(high, 700.0)))


def most_likely(family: str, intervals: ObservedIntervals) -> LikelihoodMaximum:
    """Maximise the likelihood of a family over (μ, ln σ) by damped Newton steps."""
    slopes = _SLOPES[family]
    logs = np.log(intervals.hours)
    seen = logs[intervals.over]
    point = np.array([logs.mean(), math.log(max(float(seen.std()), 0.05))])
    height, slope, bend = _likelihood(slopes, logs, intervals.over, point)
    damping = 1e-3
    for _ in range(_STEPS):
        if float(np.abs(slope).max()) < _TOLERANCE * len(logs):
            break
        scale = damping * np.maximum(np.abs(np.diag(bend)), 1e-3)
        step = np.linalg.solve(np.diag(scale) - bend, slope)
        trial = point + np.clip(step, -2.0, 2.0)
        new = _likelihood(slopes, logs, intervals.over, trial)
        if new[0] >= height:
            point, (height, slope, bend), damping = trial, new, damping * 0.2
        else:
            damping *= 8.0
        if damping > 1e12:
            break
    covariance: Floats = np.asarray(np.linalg.inv(-bend), dtype=np.float64)
    return LikelihoodMaximum(float(point[0]), float(point[1]), height, covariance)


def _likelihood(
    slopes: Callable[[Floats, Bools], Slopes], logs: Floats, over: Bools, point: Floats
) -> tuple[float, Floats, Floats]:
    """ln L at (μ, ln σ), its gradient and its second derivatives."""
    sigma = math.exp(float(point[1]))
    z = (logs - point[0]) / sigma
    w, first, second = slopes(z, over)
    ends = float(over.sum())
    height = float(w.sum()) - ends * float(point[1]) - float(logs[over].sum())
    slope = np.array([-first.sum() / sigma, -(z * first).sum() - ends])
    cross = (z * second + first).sum() / sigma
    last = (z * z * second + z * first).sum()
    return height, slope, np.array([[second.sum() / sigma**2, cross], [cross, last]])


def _weibull(z: Floats, over: Bools) -> Slopes:
    grown = np.exp(np.minimum(z, 300.0))
    return np.where(over, z, 0.0) - grown, np.where(over, 1.0, 0.0) - grown, -grown


def _normal(z: Floats, over: Bools) -> Slopes:
    w = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    first, second = -z, -np.ones_like(z)
    for i in np.flatnonzero(~over):  # few: one for each series
        tail, hazard = _upper_tail(float(z[i]))
        w[i], first[i], second[i] = tail, -hazard, -hazard * (hazard - float(z[i]))
    return w, first, second


def _upper_tail(z: float) -> tuple[float, float]:
    """ln P(N > z) of a standard normal N, and its hazard φ(z)/P(N > z)."""
    log_density = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    if z < 25.0:
        log_tail = math.log(0.5 * math.erfc(z / math.sqrt(2.0)))
    else:  # Abramowitz and Stegun 26.2.12
        log_tail = log_density - math.log(z) + math.log1p(-1.0 / z**2 + 3.0 / z**4)
    return log_tail, math.exp(log_density - log_tail)


_SLOPES: dict[str, Callable[[Floats, Bools], Slopes]] = {
    "lognormal": _normal,
    "weibull": _weibull,
}
