"""How many paths could meet a deadline at most, against going through them one by one."""

import math

import numpy as np
import pytest

from recommender.optimize.bounds.deadline import Completion, max_paths_in_time
from recommender.risk.random_numbers import random_numbers

PATHS, SEED = 64, 7


def one_by_one(sigma: float, due_s: float, own: list[float], net: list[float] | None) -> int:
    """The count by the definition; a way is work, start, chance to be at once, median wait."""
    sample = random_numbers(PATHS, 8, SEED)
    count = 0
    for z, supply in zip(sample.speed.tolist(), sample.supply.tolist(), strict=True):
        queue = waited(own, supply)
        ends = [queue + own[1] + own[0] * math.exp(sigma * z)]
        if net is not None:
            there = waited(net, supply)
            ends.append(queue + net[1] + there + net[0] * math.exp(sigma * z))
        count += min(ends) <= due_s
    return count


def waited(way: list[float], supply: float) -> float:
    """A Lomax wait of tail 1.1 behind the chance of none."""
    longer = supply / (1.0 - way[2]) if way[2] < 1.0 else 1.0
    return max(way[3] * (longer ** (-1 / 1.1) - 1.0) / (2.0 ** (1 / 1.1) - 1.0), 0.0)


@pytest.mark.parametrize("with_net", [False, True])
def test_the_count_equals_that_of_single_paths_or_little_more(with_net: bool) -> None:
    rng = np.random.default_rng(3)
    sigma = rng.choice([0.05, 0.2, 0.45], 200)
    own = rng.uniform([1e3, 60, 0, 600], [4e4, 2e3, 1, 2e4], (200, 4))
    own[:, 2] = rng.choice([0.7, 0.9, 1.0], 200)
    net = rng.uniform([5e2, 60, 0, 600], [4e4, 2e3, 1, 2e4], (200, 4))
    net[:, 2] = rng.choice([0.7, 0.99, 1.0], 200)
    for due_s in (3_000.0, 15_000.0, 40_000.0):
        found = max_paths_in_time(
            PATHS,
            SEED,
            sigma,
            due_s,
            Completion(*own.T),
            Completion(*net.T) if with_net else None,
        )
        wanted = [
            one_by_one(s, due_s, o, n if with_net else None)
            for s, o, n in zip(sigma.tolist(), own.tolist(), net.tolist(), strict=True)
        ]
        more = found - np.array(wanted)
        assert more.min() >= 0  # what is pruned cannot be in time
        assert more.mean() < 0.02 * PATHS
        assert 0 < sum(wanted) < PATHS * len(wanted)


def test_machines_that_are_seldom_there_at_once_cannot_be_sure() -> None:
    own = Completion(*(np.array([value]) for value in (3_600.0, 300.0, 0.7, 7_200.0)))
    count = max_paths_in_time(PATHS, SEED, np.array([0.1]), 7_200.0, own)
    # Seven in ten are there at once, and 3,300 s are left to wait of a median of 7,200.
    assert 0.72 < count[0] / PATHS < 0.86
