"""Laws of spot runs: lengths (Weibull, lognormal, survival curves) and the hazard of a gang.

A run law is a *shape*: runs of mean one. Two functions of a uniform are all that the simulation
needs: the length of a run, and what is left of a run met at a random moment, whose density is
S(x)/mean (the equilibrium law of renewal theory). Weibull shapes below one and lognormals die
early: the hazard falls with age.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.schema import GANG_KNEE
from recommender.risk.random_numbers import normal

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


def logistic(value: Floats) -> Floats:
    """Probability of a logit."""
    return 1.0 / (1.0 + np.exp(-value))


def further_hazard(machines: Ints | Floats | int, co_interruption: Floats) -> Floats:
    """Interruptions that the further machines of a gang add, per interruption of its first.

    (n - 1)·(1 - ρ): a machine is interrupted together with the others with probability ρ, the
    co-interruption, and alone otherwise. Fitted to gangs of 1 to 16 machines in recorded zones
    (docs/risk-facts.md).
    """
    return np.asarray((machines - 1) * (1 - co_interruption))


def gang_hazard(machines: Ints | Floats | int, co_interruption: Floats) -> Floats:
    """Interruptions of a gang of n machines, per interruption of one: 1 + (n - 1)·(1 - ρ)."""
    return 1 + further_hazard(machines, co_interruption)


def gang_doublings(machines: Ints | Floats) -> Floats:
    """log2(1 + (n - 1)/8): a gang of n machines is there with so many slopes of logit less."""
    return np.asarray(np.log2(1.0 + (machines - 1.0) / GANG_KNEE))


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


def lognormal_residual(t: Floats, mean: float, sigma: Floats) -> Floats:
    """P(more than t of a lognormal X is left at a random moment in it); arguments broadcast.

    E[(X - t)+]/E[X] = Φ(σ - z) - t/mean·Φ(-z), z = (ln(t/mean) + σ²/2)/σ.
    """
    z = (np.log(t / mean) + 0.5 * sigma**2) / sigma
    found: Floats = normal_cdf(sigma - z) - t / mean * normal_cdf(-z)
    return found


_GRID = 4001  # points of the table of a law's residue
_REACH = 20.0  # logits of the outermost points: one run in 5e8 lies beyond


class RunLaw(Protocol):
    """Run lengths of mean one, as functions of uniforms in (0, 1)."""

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run: the quantile function."""

    def residues(self, uniform: Floats) -> Floats:
        """What is left of a run met at a random moment."""


class _Tabled:
    """The residue of any law, tabulated from its quantiles."""

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run: the quantile function."""
        raise NotImplementedError

    def residues(self, uniform: Floats) -> Floats:
        """What is left of a run met at a random moment: P(left ≤ x) = ∫₀ˣ S / ∫₀^∞ S."""
        at, share = self._table
        return np.asarray(np.interp(uniform, share, at))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        level = 1.0 / (1.0 + np.exp(-np.linspace(-_REACH, _REACH, _GRID)))
        at = np.concatenate([[0.0], self.lengths(level)])
        survival = 1.0 - np.concatenate([[0.0], level])
        area = 0.5 * (survival[1:] + survival[:-1]) * np.diff(at)
        total = np.concatenate([[0.0], np.cumsum(area)])
        return at, total / total[-1]


@dataclass(frozen=True)
class Weibull(_Tabled):
    """S(x) = exp(-(x/s)^k); k = 1 is exponential, k < 1 dies early."""

    shape: float

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run: the quantile function."""
        scale = 1.0 / math.gamma(1.0 + 1.0 / self.shape)
        return np.asarray(scale * (-np.log1p(-uniform)) ** (1.0 / self.shape))


@dataclass(frozen=True)
class Lognormal(_Tabled):
    """ln X ~ N(-sigma²/2, sigma²), the law of the shipped spot classes."""

    sigma: float

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run: the quantile function."""
        return np.asarray(np.exp(self.sigma * normal(uniform) - 0.5 * self.sigma**2))


@dataclass(frozen=True)
class SurvivalCurve(_Tabled):
    """A measured survival curve: linear between its points, an exponential tail behind them.

    `age_s` rises from 0, `survival` falls from 1. The tail has the mean hazard of the second
    half of the curve, since that of the first is infant mortality.
    """

    age_s: tuple[float, ...]
    survival: tuple[float, ...]

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run, in means of the curve."""
        return self._seconds(uniform) / self.mean_s

    @cached_property
    def mean_s(self) -> float:
        """Mean length: the area below the curve and its tail."""
        age, alive = np.array(self.age_s), np.array(self.survival)
        area = float((0.5 * (alive[1:] + alive[:-1]) * np.diff(age)).sum())
        return area + self.survival[-1] * self._tail_mean_s

    @property
    def _tail_mean_s(self) -> float:
        """Mean of what follows the last point."""
        if self.survival[-1] <= 0.0:
            return 0.0
        half = len(self.age_s) // 2
        fallen = math.log(self.survival[half] / self.survival[-1])
        passed = self.age_s[-1] - self.age_s[half]
        return passed / fallen if fallen > 0.0 else self.age_s[-1] / self.survival[-1]

    def _seconds(self, uniform: Floats) -> Floats:
        level = 1.0 - uniform  # share still alive at the length sought
        alive, age = np.array(self.survival[::-1]), np.array(self.age_s[::-1])
        inside = np.interp(level, alive, age)
        beyond = np.log(np.maximum(self.survival[-1], 1e-300) / np.maximum(level, 1e-300))
        tail = self.age_s[-1] + self._tail_mean_s * np.maximum(beyond, 0.0)
        return np.asarray(np.where(level < self.survival[-1], tail, inside))
