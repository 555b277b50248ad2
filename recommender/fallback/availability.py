"""Spot availability as a semi-Markov process whose hazards depend on the age of a run or outage.

Spot is up or down, in one of a few regimes (good and bad days; one is the default). The rate at
which a run or an outage of age a ends is constant in each age bucket:

    rate[regime, side, bucket]     exits per hour, side 0 = down, 1 = up, edges on a log scale
    switch[regime, regime]         regime changes per hour, off the diagonal

Runs of spot are not memoryless: their hazard falls tenfold from the first hour to the second
day, which is why a run that has lasted is worth staying on and a long outage worth leaving.
"""

from dataclasses import dataclass

import numpy as np

from recommender.errors import UsageError
from recommender.replay.state import Bools, Floats

EDGES_H = (0.1, 0.3, 1.0, 3.0, 8.0)  # age buckets; the last one is open
_SQUARINGS = 30  # of the one-tick matrix: 2^30 ticks, long past any mixing time


@dataclass(frozen=True, slots=True)
class Availability:
    """When spot capacity comes and goes in one zone (or, pooled, in a class of zones)."""

    edges_h: tuple[float, ...]  # upper ages of all buckets but the last
    exits_per_hour: Floats  # (regimes, 2, buckets)
    switches_per_hour: Floats  # (regimes, regimes), zero on the diagonal
    elsewhere: float = 0.0  # chance that a run that ends goes on at once in another listed zone

    def __post_init__(self) -> None:
        regimes = len(self.exits_per_hour)
        if self.exits_per_hour.shape[1:] != (2, len(self.edges_h) + 1):
            raise UsageError(f"{self.exits_per_hour.shape[1:]}: rates must be (2, edges + 1)")
        if self.switches_per_hour.shape != (regimes, regimes):
            raise UsageError(f"{regimes} regimes need as many rows and columns of switches")


@dataclass(frozen=True, slots=True)
class Chain:
    """The process seen once per tick: a Markov chain over (regime, side, age bucket)."""

    step: Floats  # (states, states) probabilities of one tick
    up: Bools  # (states,) is spot there?
    usual: Floats  # (states,) long-run shares: what is known of a moment before looking
    moved: Floats | None = None  # of `step`: machines taken, others there at once; None: never

    @property
    def share_up(self) -> float:
        """Long-run availability."""
        return float(self.usual[self.up].sum())


def chain(law: Availability, tick_s: float) -> Chain:
    """The chain of one tick: exit, else grow older, and perhaps change the regime.

    An age passes to the next bucket with probability 1 / ticks of the bucket, so the time in a
    bucket has the right mean. A run or outage begins in the bucket of one tick's age.
    """
    hours = tick_s / 3600.0
    last = np.floor(np.array((0.0, *law.edges_h)) / hours + 1e-9)  # tick of each bucket
    first = int(np.searchsorted(np.asarray(law.edges_h), hours))
    regimes, _, buckets = law.exits_per_hour.shape
    leave = -np.expm1(-law.exits_per_hour * hours)
    older = np.append(1.0 / np.maximum(np.diff(last), 1.0), 0.0)
    stay = np.zeros((regimes, 2, buckets, 2, buckets))
    moved = np.zeros_like(stay)
    moved[:, 1, :, 1, first] = leave[:, 1] * law.elsewhere
    ages = np.arange(buckets)
    for side in (0, 1):
        stay[:, side, :, 1 - side, first] = leave[:, side]
        stay[:, side, ages, side, ages] += (1.0 - leave[:, side]) * (1.0 - older)
        stay[:, side, ages[:-1], side, ages[1:]] = (1.0 - leave[:, side, :-1]) * older[:-1]
    stay[:, 1, :, 0, first] *= 1.0 - law.elsewhere
    switch = -np.expm1(-law.switches_per_hour * hours)
    np.fill_diagonal(switch, 1.0 - switch.sum(axis=1))
    step, taken = (
        np.einsum("rsatb,rq->rsaqtb", each, switch).reshape(2 * regimes * buckets, -1)
        for each in (stay + moved, moved)
    )
    up = np.tile(np.repeat([False, True], buckets), regimes)
    return Chain(step, up, _usual(step), taken if law.elsewhere else None)


def seen(law: Chain, belief: Floats, available: Bools) -> Floats:
    """The belief (windows, states) after a look at whether spot is there (windows,)."""
    sides = law.up[None] == available[:, None]
    here = np.where(sides, belief, 0.0)
    # What was thought impossible happens: begin again from the long-run shares.
    here = np.where(here.sum(axis=1, keepdims=True) > 0.0, here, sides * law.usual + 1e-300)
    return np.asarray(here / here.sum(axis=1, keepdims=True))


def _usual(step: Floats) -> Floats:
    power = step
    for _ in range(_SQUARINGS):
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return np.asarray(power.mean(axis=0))


def memoryless(law: Availability, share_up: float, mean_run_h: float) -> Availability:
    """The exponential model of the same availability and mean run: what most tools assume."""
    rates = np.array([share_up / (1.0 - share_up), 1.0]) / mean_run_h
    exits = np.repeat(rates[None, :, None], len(law.edges_h) + 1, axis=2)
    return Availability(law.edges_h, exits, np.zeros((1, 1)))
