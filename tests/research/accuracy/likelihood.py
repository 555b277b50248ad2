"""How likely recorded runs are under a law of run lengths: cut runs and ticks counted right.

A series is seen at ticks, so a run of k ticks lasted between k - ½ and k + ½ of them; a run of
one tick is known to be short and no more. A run under way at the first tick is a residue: its
rest R has P(R > t) = E[(X - t)+]/E[X] (renewal theory; Cox, 1962). A run not over at the last
tick is only known to be longer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.risk.laws import RUN_FAMILY
from tests.research.fits.spot_fit import Trace

MIN_CHANCE = 1e-12  # of a run: what the closed forms resolve


@dataclass(frozen=True, slots=True)
class RunsSeen:
    """The runs of a gang in one series; shape (runs,)."""

    ticks: Ints
    began_before: Bools  # under way at the first tick
    not_over: Bools  # under way at the last tick
    tick_h: float

    @property
    def ended(self) -> int:
        """How many runs were interrupted."""
        return int((~self.not_over).sum())

    def hours_each(self, more_ticks: float) -> Floats:
        """Length of each run, some ticks more or less; (runs,)."""
        return np.asarray((self.ticks + more_ticks) * self.tick_h, dtype=np.float64)


def runs_seen(trace: Trace, machines: int) -> RunsSeen:
    """Cut a series into the runs of a gang."""
    up = trace.up(machines)
    edges = np.r_[0, np.flatnonzero(np.diff(up)) + 1, len(up)]
    runs = up[edges[:-1]]
    first = np.arange(len(runs)) == 0
    return RunsSeen(np.diff(edges)[runs], first[runs], first[::-1][runs], trace.gap_h)


@dataclass(frozen=True, slots=True)
class RunLaw:
    """A law of run lengths X in hours, by its mean and what is left of it beyond a time."""

    mean_h: float
    survival: Callable[[Floats], Floats]  # P(X > t)
    excess: Callable[[Floats], Floats]  # E[(X - t)+]

    def beyond(self, hours: Floats, residue: Bools) -> Floats:
        """Chance that a run, or the rest of a run met at random, is longer; (runs,)."""
        return np.where(residue, self.excess(hours) / self.mean_h, self.survival(hours))


def exponential_law(mean_h: float) -> RunLaw:
    """Runs without memory."""

    def survival(hours: Floats) -> Floats:
        return np.exp(-hours / mean_h)

    return RunLaw(mean_h, survival, lambda hours: mean_h * survival(hours))


def lognormal_law(mean_h: float, sigma: float) -> RunLaw:
    """Lognormal runs, with the functions that the estimates use."""
    mean, spread = np.array(mean_h), np.array(sigma)
    return RunLaw(
        mean_h,
        lambda hours: RUN_FAMILY.survival(hours, mean, spread),
        lambda hours: RUN_FAMILY.excess(hours, mean, spread),
    )


def run_chances(seen: RunsSeen, law: RunLaw) -> Floats:
    """Chance of what was seen of each run; (runs,)."""
    least = np.where(seen.ticks == 1, 0.0, seen.hours_each(-0.5))
    longer = law.beyond(least, seen.began_before)
    longest = law.beyond(seen.hours_each(0.5), seen.began_before)
    return np.where(seen.not_over, longer, longer - longest)


def log_likelihood(seen: RunsSeen, law: RunLaw) -> float:
    """Sum over the runs of the logarithm of their chance, in nats."""
    return float(np.log(np.maximum(run_chances(seen, law), MIN_CHANCE)).sum())
