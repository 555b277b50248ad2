"""Few states in place of many: an availability chain lumped by how long it will stay as it is.

A zone's chain has dozens of states (regime × side × age). For a programme over several zones at
once each zone keeps one state for outages and one to three for runs, young to old: states of a
side are put together where their expected time left is alike.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from recommender.fallback.availability import Chain
from recommender.replay.state import Bools, Floats


@dataclass(frozen=True, slots=True)
class Lumps:
    """A small chain that stands for a large one."""

    member: Floats  # (states, lumps) 1 where a state belongs to a lump
    step: Floats  # (lumps, lumps) probabilities of one tick
    up: Bools  # (lumps,)


def lumps(law: Chain, ups: int) -> Lumps:
    """One lump of outages and `ups` of runs; states weigh their long-run shares.

    Runs are cut where the weighted variance of ln(expected ticks left) within lumps is least.
    """
    groups = [np.flatnonzero(~law.up), *_cut(law, ups)]
    member = np.zeros((len(law.up), len(groups)))
    for lump, states in enumerate(groups):
        member[states, lump] = 1.0
    weights = member * (law.usual[:, None] + 1e-300)
    weights /= weights.sum(axis=0)
    return Lumps(member, weights.T @ law.step @ member, np.arange(len(groups)) > 0)


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
