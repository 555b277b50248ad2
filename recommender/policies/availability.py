"""Spot availability as a semi-Markov process whose hazards depend on the age of a run or outage.

Spot is up or down, in one of a few regimes (good and bad days; one is the default). The rate at
which a run or an outage of age a ends is constant in each age bucket:

    rate[regime, side, bucket]     exits per hour, side 0 = down, 1 = up, edges on a log scale
    switch[regime, regime]         regime changes per hour, off the diagonal

Runs of spot are not memoryless: their hazard falls tenfold from the first hour to the second
day, which is why a run that has lasted is worth staying on and a long outage worth leaving.

A zone's chain has dozens of states (regime × side × age). For a programme over several zones at
once each zone keeps one state for outages and one to three for runs, young to old: states of a
side are put together where their expected time left is alike.
"""

from itertools import combinations, pairwise

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError

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
    return Chain(step, up, _long_run_shares(step), taken if law.elsewhere else None)


def belief_after_look(law: Chain, belief: Floats, available: Bools) -> Floats:
    """The belief (windows, states) after a look at whether spot is there (windows,)."""
    sides = law.up[None] == available[:, None]
    here = np.where(sides, belief, 0.0)
    # What was thought impossible happens: begin again from the long-run shares.
    here = np.where(here.sum(axis=1, keepdims=True) > 0.0, here, sides * law.usual + 1e-300)
    return np.asarray(here / here.sum(axis=1, keepdims=True))


def _long_run_shares(step: Floats) -> Floats:
    power = step
    for _ in range(_SQUARINGS):
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return np.asarray(power.mean(axis=0))


@dataclass(frozen=True, slots=True)
class AggregatedStates:
    """A small chain that approximates a large one."""

    member: Floats  # (states, lumps) 1 where a state belongs to a lump
    step: Floats  # (lumps, lumps) probabilities of one tick
    up: Bools  # (lumps,)


def aggregate_states(law: Chain, ups: int) -> AggregatedStates:
    """One lump of outages and `ups` of runs; states weigh their long-run shares.

    Runs are cut where the weighted variance of ln(expected ticks left) within lumps is least.
    """
    groups = [np.flatnonzero(~law.up), *_cut(law, ups)]
    member = np.zeros((len(law.up), len(groups)))
    for lump, states in enumerate(groups):
        member[states, lump] = 1.0
    weights = member * (law.usual[:, None] + 1e-300)
    weights /= weights.sum(axis=0)
    return AggregatedStates(member, weights.T @ law.step @ member, np.arange(len(groups)) > 0)


def time_left(law: Chain) -> Floats:
    """Expected ticks until spot comes or goes, for each state."""
    left = np.empty(len(law.up))
    for side in (False, True):
        states = np.flatnonzero(law.up == side)
        stay = law.step[np.ix_(states, states)]
        left[states] = np.linalg.solve(np.eye(len(states)) - stay, np.ones(len(states)))
    return left


def _cut(law: Chain, ups: int) -> list[np.ndarray]:
    states = np.flatnonzero(law.up)
    left = np.log(time_left(law)[states])
    order = np.argsort(left, kind="stable")
    states, left = states[order], left[order]
    weight = law.usual[states] + 1e-300

    def spread(cuts: tuple[int, ...]) -> float:
        total = 0.0
        for begin, end in pairwise((0, *cuts, len(states))):
            share, value = weight[begin:end], left[begin:end]
            mean = float(share @ value / share.sum())
            total += float(share @ (value - mean) ** 2)
        return total

    best = min(combinations(range(1, len(states)), ups - 1), key=spread)
    return [states[begin:end] for begin, end in pairwise((0, *best, len(states)))]
