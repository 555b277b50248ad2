"""Distributions of run and outage lengths: families, single laws, and gangs.

A *family* has a mean and one shape parameter per plan. Everything that depends on the lengths of
spot runs and outages uses `RUN_FAMILY` or `OUTAGE_FAMILY`: simulated paths, checkpoint intervals,
ratings, the fallback policies, the fits to traces. To use another law, write its family here and
assign it below (CONTRIBUTING.md lists the other edits).

A single law (`RunLaw`) is a shape with runs of mean one, for `--run-law` and the closed form. The
simulation needs two functions of a uniform: the length of a run, and the remaining length of a run
observed at a random moment, whose density is S(x)/mean (the equilibrium law of renewal theory).
Weibull shapes below one and lognormals have early failures: the hazard falls with age.
"""

import math
from functools import cached_property
from typing import Protocol

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import GANG_KNEE
from recommender.risk.normal_law import normal_cdf, normal_cdf_lower_bound, normal_quantile

_GRID = 4001  # points of the table of a law's residue
_REACH = 20.0  # logits of the outermost points: one run in 5e8 lies beyond


class IntervalFamily(Protocol):
    """Distributions of positive lengths by mean and shape; arguments broadcast."""

    @property
    def candidate_shapes(self) -> Floats:
        """The shapes that a fit to a trace tries."""

    def scores(self, uniform: Floats) -> Floats:
        """Quantiles before scaling by the shape, so that plans with other shapes share them."""

    def lengths(self, scores: Floats, shape: Floats | float) -> Floats:
        """Convert scores to lengths of mean one."""

    def residual_factors(self, lengths: Floats, shape: Floats, uniform: Floats) -> Floats:
        """Factors that turn `lengths` into remaining lengths at a random moment."""

    def survival(self, t: Floats, mean: Floats, shape: Floats) -> Floats:
        """P(X > t)."""

    def excess(self, t: Floats, mean: Floats, shape: Floats) -> Floats:
        """E[(X - t)+]; over the mean, the probability that more than t remains at random."""

    def min_long_share(self, t: Floats, mean: Floats, shape: Floats) -> Floats:
        """Lower bound of E[X; X >= t] / E[X], the share of time in lengths of at least t."""

    def mean_square(self, shape: Floats) -> Floats:
        """E[X²] / E[X]²."""

    def shape_of_variation(self, squared: float) -> float:
        """The shape with this squared coefficient of variation."""

    def law(self, shape: float) -> "RunLaw":
        """One law of the family."""


class LognormalFamily:
    """ln X ~ N(ln(mean) - shape²/2, shape²): the shape is σ, the sd of ln X."""

    candidate_shapes: Floats = np.arange(0.30, 3.001, 0.01)

    def scores(self, uniform: Floats) -> Floats:
        """Quantiles before scaling by the shape: standard normal."""
        return normal_quantile(uniform)

    def lengths(self, scores: Floats, shape: Floats | float) -> Floats:
        """Convert scores to lengths of mean one."""
        power = np.multiply(scores, shape, order="C")
        power -= 0.5 * shape**2
        return np.exp(power, out=power)

    def residual_factors(self, lengths: Floats, shape: Floats, uniform: Floats) -> Floats:
        """Factors that turn `lengths` into remaining lengths at a random moment.

        A length observed at random is length-biased, ln X ~ N(mu + σ², σ²), and part of it is over.
        """
        return np.asarray(np.exp(shape**2) * uniform)

    def survival(self, t: Floats, mean: Floats, shape: Floats) -> Floats:
        """P(X > t)."""
        centre = np.log(mean) - 0.5 * shape * shape
        return normal_cdf((centre - np.log(np.maximum(t, 1e-300))) / np.maximum(shape, 1e-9))

    def excess(self, t: Floats, mean: Floats, shape: Floats) -> Floats:
        """E[(X - t)+]; over the mean, the probability that more than t remains at random."""
        scale = np.maximum(shape, 1e-9)
        t = np.minimum(t, 1e300)
        z = (np.log(mean) - 0.5 * scale * scale - np.log(np.maximum(t, 1e-300))) / scale
        return np.maximum(mean * normal_cdf(z + scale) - t * normal_cdf(z), 0.0)

    def min_long_share(self, t: Floats, mean: Floats, shape: Floats) -> Floats:
        """Lower bound of E[X; X >= t] / E[X], the share of time in lengths of at least t."""
        with np.errstate(divide="ignore"):
            z = np.log(mean) + 0.5 * shape**2 - np.log(t)
        return normal_cdf_lower_bound(z / shape)

    def mean_square(self, shape: Floats) -> Floats:
        """E[X²] / E[X]²."""
        return np.asarray(np.exp(shape**2))

    def shape_of_variation(self, squared: float) -> float:
        """The shape with this squared coefficient of variation."""
        return float(np.sqrt(np.log1p(squared)))

    def law(self, shape: float) -> "RunLaw":
        """One law of the family."""
        return Lognormal(shape)


RUN_FAMILY: IntervalFamily = LognormalFamily()
OUTAGE_FAMILY: IntervalFamily = LognormalFamily()


def logistic(value: Floats) -> Floats:
    """Probability of a logit."""
    return 1.0 / (1.0 + np.exp(-value))


def further_hazard(machines: Ints | Floats | int, co_interruption: Floats) -> Floats:
    """The interruptions that further machines of a gang add, per interruption of its first machine.

    (n - 1)·(1 - ρ): a machine is interrupted together with the others with probability ρ, the
    co-interruption, and alone otherwise. Fitted to gangs of 1 to 16 machines in recorded zones
    (docs/research/risk-facts.md).
    """
    return np.asarray((machines - 1) * (1 - co_interruption))


def gang_hazard(machines: Ints | Floats | int, co_interruption: Floats) -> Floats:
    """Interruptions of a gang of n machines, per interruption of one: 1 + (n - 1)·(1 - ρ)."""
    return 1 + further_hazard(machines, co_interruption)


def gang_doublings(machines: Ints | Floats) -> Floats:
    """log2(1 + (n - 1)/8): the number of slopes by which a gang's logit availability falls."""
    return np.asarray(np.log2(1.0 + (machines - 1.0) / GANG_KNEE))


class RunLaw(Protocol):
    """Run lengths of mean one, as functions of uniforms in (0, 1)."""

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run: the quantile function."""

    def residues(self, uniform: Floats) -> Floats:
        """The remaining length of a run observed at a random moment."""


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
    """S(x) = exp(-(x/s)^k); k = 1 is exponential, k < 1 has early failures."""

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
        return np.asarray(np.exp(self.sigma * normal_quantile(uniform) - 0.5 * self.sigma**2))


@dataclass(frozen=True)
class SurvivalCurve(_Tabled):
    """A measured survival curve: linear between its points, with an exponential tail.

    `age_s` rises from 0, `survival` falls from 1. The tail has the mean hazard of the second half
    of the curve, because the first half contains early failures.
    """

    age_s: tuple[float, ...]
    survival: tuple[float, ...]

    def lengths(self, uniform: Floats) -> Floats:
        """Length of a run, in means of the curve."""
        return self._seconds(uniform) / self.mean_s

    @cached_property
    def mean_s(self) -> float:
        """Mean length: the area under the curve and its tail."""
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
