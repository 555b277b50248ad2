"""Fits laws of lifetimes to VMs of which only the hours around their end are known.

A server that died between a and b hours has the chance S(a) - S(b); one that was alive when
last seen, at a hours, S(a) (b infinite). The most likely law maximises the weighted sum of
their logarithms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from recommender.risk.lifetimes import EarlyDeaths, Lifetimes, Lognormal, Recorded, Weibull

Floats = NDArray[np.float64]
Law = TypeVar("Law", bound=Lifetimes)

_LEAST_CHANCE = 1e-12
_ROUNDS = 600
_CLOSE = 1e-7  # of the likelihood, between the corners of the simplex


@dataclass(frozen=True, slots=True)
class Ends:
    """Intervals in which servers died; shape (intervals,)."""

    after_h: Floats
    before_h: Floats  # infinite: still alive at `after_h`
    weight: Floats  # servers

    def share_dead(self, hours: Floats) -> Floats:
        """Share of the servers known to be dead at some hours; (hours,)."""
        dead = self.before_h[None] <= np.asarray(hours)[:, None]
        return np.asarray((dead * self.weight).sum(axis=1) / self.weight.sum(), dtype=np.float64)


def log_likelihood(law: Lifetimes, ends: Ends) -> float:
    """Weighted sum of the logarithms of what was seen, in nats."""
    least = law.survival(ends.after_h)
    most = np.where(
        np.isfinite(ends.before_h),
        law.survival(np.where(np.isfinite(ends.before_h), ends.before_h, 1.0)),
        0.0,
    )
    return float((ends.weight * np.log(np.maximum(least - most, _LEAST_CHANCE))).sum())


def fit_exponential(ends: Ends) -> Weibull:
    """The most likely constant hazard."""
    return _best(ends, lambda x: Weibull(_exp(x[0]), 1.0), [np.log(_scale(ends))])


def fit_weibull(ends: Ends) -> Weibull:
    """The most likely Weibull law."""
    start = [np.log(_scale(ends)), np.log(0.6)]
    return _best(ends, lambda x: Weibull(_exp(x[0]), _exp(x[1])), start)


def fit_lognormal(ends: Ends) -> Lognormal:
    """The most likely lognormal law."""
    start = [np.log(_scale(ends)), np.log(2.0)]
    return _best(ends, lambda x: Lognormal(_exp(x[0]), _exp(x[1])), start)


def fit_early_deaths(ends: Ends) -> EarlyDeaths:
    """The most likely law with early deaths; early lives of a tenth of an hour to twelve hours."""

    def law(x: Floats) -> EarlyDeaths:
        share = 1.0 / (1.0 + _exp(-x[0]))
        early = float(np.clip(_exp(x[1]), 0.1, 12.0))
        return EarlyDeaths(share, early, Weibull(_exp(x[2]), _exp(x[3])))

    start = [-1.0, np.log(0.7), np.log(2.0 * _scale(ends)), 0.0]
    return _best(ends, law, start)


def recorded(ends: Ends) -> Recorded:
    """The recorded shares themselves, where all intervals share their borders."""
    hours = np.unique(ends.before_h[np.isfinite(ends.before_h)])
    alive = 1.0 - ends.share_dead(hours)
    return Recorded(tuple(map(float, hours)), tuple(map(float, alive)))


def _exp(x: float) -> float:
    return float(np.exp(np.clip(x, -20.0, 20.0)))


def _scale(ends: Ends) -> float:
    """Hours lived per death, roughly: where a fit begins."""
    seen = np.where(np.isfinite(ends.before_h), ends.before_h, ends.after_h)
    died = float(ends.weight[np.isfinite(ends.before_h)].sum())
    return float((ends.weight * seen).sum()) / max(died, 0.5)


def _best(ends: Ends, law: Callable[[Floats], Law], start: Sequence[float]) -> Law:
    found = simplex(lambda x: -log_likelihood(law(x), ends), np.array(start, dtype=np.float64))
    return law(found)


def simplex(error: Callable[[Floats], float], start: Floats) -> Floats:
    """Least of a function near a start, by the simplex of Nelder and Mead (1965).

    First corners one apart in each direction; deterministic. For smooth functions of a few
    parameters of order one.
    """
    corners = [start, *(start + row for row in np.eye(len(start)))]
    ranked = sorted(((error(x), i, x) for i, x in enumerate(corners)), key=lambda c: c[:2])
    for number in range(len(start) + 1, len(start) + 1 + _ROUNDS):
        worst = ranked[-1]
        if worst[0] - ranked[0][0] < _CLOSE:
            break
        centre = np.mean([x for _, _, x in ranked[:-1]], axis=0)
        step = centre - worst[2]
        tried = (error(centre + step), number, centre + step)
        if tried[0] < ranked[0][0]:
            further = (error(centre + 2.0 * step), number, centre + 2.0 * step)
            tried = min(tried, further, key=lambda c: c[0])
        elif tried[0] >= ranked[-2][0]:
            tried = (error(centre - 0.5 * step), number, centre - 0.5 * step)
        if tried[0] < worst[0]:
            ranked[-1] = tried
        else:
            best = ranked[0][2]
            shrunk = [(best + 0.5 * (x - best), i) for _, i, x in ranked[1:]]
            ranked[1:] = [(error(x), i, x) for x, i in shrunk]
        ranked.sort(key=lambda c: c[:2])
    return ranked[0][2]
