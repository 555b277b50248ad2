"""How long a rented VM lives: laws behind one interface, and their fits.

A law tells the chance S(t) to live longer than t hours. Weibull and lognormal laws, one with
early deaths, one read off recorded lifetimes, and any of them cut off by a provider's limit
(24 h for Google's preemptible VMs) draw lifetimes by the same `drawn`. Fits: `lifetimes.py`.

A server that died between a and b hours has the chance S(a) - S(b); one that was alive when
last seen, at a hours, S(a) (b infinite). The most likely law maximises the weighted sum of
their logarithms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from recommender.arrays import Floats
from recommender.risk.normal_law import normal_cdf

MIN_H, MAX_H = 1e-4, 1e6  # lifetimes are drawn between a third of a second and a century
_HALVINGS = 60


class Lifetimes(Protocol):
    """A law of lifetimes."""

    def survival(self, hours: Floats) -> Floats:
        """Chance to live longer than `hours` ≥ 0; any shape."""
        ...


@dataclass(frozen=True, slots=True)
class Weibull:
    """S(t) = exp(-(t/scale)^shape); the hazard falls with age where the shape is below one."""

    scale_h: float
    shape: float  # 1: exponential

    def survival(self, hours: Floats) -> Floats:
        """Chance to live longer than `hours` ≥ 0; any shape."""
        return np.asarray(np.exp(-((hours / self.scale_h) ** self.shape)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Lognormal:
    """ln T is normal around the logarithm of the median."""

    median_h: float
    sigma: float

    def survival(self, hours: Floats) -> Floats:
        """Chance to live longer than `hours` ≥ 0; any shape."""
        return normal_cdf(np.log(self.median_h / np.maximum(hours, 1e-300)) / self.sigma)


@dataclass(frozen=True, slots=True)
class EarlyDeaths:
    """A share of the machines dies within hours; the others follow a law of their own.

    S(t) = share·exp(-t/early_h) + (1 - share)·late(t): reclaims of a whole batch right after
    the launch, then a plateau. The early part of the bathtub of Kadupitiya, Jadhao, Sharma,
    "Modeling the temporally constrained preemptions of transient cloud VMs" (HPDC 2020).
    """

    share: float
    early_h: float  # mean life of those
    late: Weibull

    def survival(self, hours: Floats) -> Floats:
        """Chance to live longer than `hours` ≥ 0; any shape."""
        early = np.exp(-hours / self.early_h)
        return np.asarray(
            self.share * early + (1.0 - self.share) * self.late.survival(hours), dtype=np.float64
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """The shares that lived longer than some hours, joined by straight lines, as recorded.

    Nothing is known beyond the last hour: who lived longer lives on.
    """

    hours: tuple[float, ...]  # rising, above 0
    alive: tuple[float, ...]  # falling, at most 1

    def survival(self, hours: Floats) -> Floats:
        """Chance to live longer than `hours` ≥ 0; any shape."""
        return np.interp(hours, (0.0, *self.hours), (1.0, *self.alive))


def drawn(law: Lifetimes, uniforms: Floats) -> Floats:
    """Lifetimes in hours for uniforms in (0, 1), S(T) = u by bisection; any shape.

    The same uniforms give longer lives under a law that survives longer, so plans that are
    compared on common draws differ by their laws. Lives beyond `MAX_H` are cut there.
    """
    low = np.full(uniforms.shape, np.log(MIN_H))
    high = np.full(uniforms.shape, np.log(MAX_H))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        lives = law.survival(np.exp(middle)) > uniforms
        low, high = np.where(lives, middle, low), np.where(lives, high, middle)
    return np.asarray(np.exp(high), dtype=np.float64)


Law = TypeVar("Law", bound=Lifetimes)

_MIN_CHANCE = 1e-12
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
    return float((ends.weight * np.log(np.maximum(least - most, _MIN_CHANCE))).sum())


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
