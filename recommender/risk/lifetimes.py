"""How long a rented VM lives: laws behind one interface, for runs counted from the start.

A law tells the chance S(t) to live longer than t hours. Weibull and lognormal laws, one with
early deaths, one read off recorded lifetimes, and any of them cut off by a provider's limit
(24 h for Google's preemptible VMs) draw lifetimes by the same `drawn`. Fits: `lifetime_fits.py`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recommender.lognormal import normal_cdf

Floats = NDArray[np.float64]

LEAST_H, MOST_H = 1e-4, 1e6  # lifetimes are drawn between a third of a second and a century
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


@dataclass(frozen=True, slots=True)
class Limited:
    """A law under a provider's limit: at that age every machine is taken back."""

    law: Lifetimes
    limit_h: float  # 24 for Google's preemptible VMs

    def survival(self, hours: Floats) -> Floats:
        """Chance to live longer than `hours` ≥ 0; any shape."""
        return np.where(hours < self.limit_h, self.law.survival(hours), 0.0)


def hazard_per_hour(law: Lifetimes, begin_h: Floats, end_h: Floats) -> Floats:
    """Mean rate of deaths between two ages, -ln(S(end)/S(begin))/(end - begin); any shape."""
    with np.errstate(divide="ignore"):
        lost = np.log(law.survival(begin_h)) - np.log(law.survival(end_h))
    return np.asarray(lost / (end_h - begin_h), dtype=np.float64)


def drawn(law: Lifetimes, uniforms: Floats) -> Floats:
    """Lifetimes in hours for uniforms in (0, 1), S(T) = u by bisection; any shape.

    The same uniforms give longer lives under a law that survives longer, so plans that are
    compared on common draws differ by their laws. Lives beyond `MOST_H` are cut there.
    """
    low = np.full(uniforms.shape, np.log(LEAST_H))
    high = np.full(uniforms.shape, np.log(MOST_H))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        lives = law.survival(np.exp(middle)) > uniforms
        low, high = np.where(lives, middle, low), np.where(lives, high, middle)
    return np.asarray(np.exp(high), dtype=np.float64)
