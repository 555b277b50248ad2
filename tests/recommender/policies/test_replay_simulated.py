"""Replay on drawn markets: the tick rules of the engine, and what only a path can say."""

import numpy as np
import pytest

from recommender.policies.replay import SimulatedMarket, replay, replay_simulated
from recommender.policies.rules import Greedy, OnDemand, SpotOnly, UniformProgress
from recommender.policies.state import ModePrices, Task
from recommender.policies.thresholds import SAFETY_NET
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import hours, one, simulated

TICK, HOUR = 600.0, 3600.0
TASK = hours(12, 20, 0.2)
PRICES = ModePrices(spot=1.0, on_demand=3.0)


def market(available, taken=None, **facts):
    up = np.asarray(available, dtype=bool)
    windows = up.shape[1]
    given = {"done_s": np.zeros(windows), "queue_s": np.zeros(windows), **facts}
    return SimulatedMarket(up, np.zeros_like(up) if taken is None else taken, **given)


@pytest.mark.parametrize("policy", [Greedy(), UniformProgress(), SAFETY_NET], ids=lambda p: p.name)
def test_without_more_to_say_it_is_the_replay_of_the_benchmark(policy):
    series = simulated(HEAVY, TICK, 3_000, seed=2)
    starts = np.arange(0, 2_000, 37)
    plain = replay(policy, one(series, TICK, PRICES), starts, TASK)
    length = 200
    many = market(np.stack([series[s : s + length] for s in starts], axis=1))
    found = replay_simulated(policy, many, TICK, TASK, PRICES).replays
    assert np.array_equal(found.cost_usd, plain.cost_usd)
    assert np.array_equal(found.finish_s, plain.finish_s)


def test_a_machine_taken_while_others_are_there_costs_one_more_start():
    up = np.ones((200, 1), dtype=bool)
    taken = np.zeros_like(up)
    taken[30] = True
    task = Task(10 * HOUR, 20 * HOUR, TICK)
    calm, moved = (
        replay_simulated(SpotOnly(), market(up, t), TICK, task, PRICES) for t in (None, taken)
    )
    assert (calm.interruptions[0], moved.interruptions[0]) == (0, 1)
    assert moved.replays.finish_s[0] == calm.replays.finish_s[0] + TICK


def test_a_run_taken_in_its_free_time_is_not_paid():
    up = np.ones((200, 1), dtype=bool)
    up[3:5] = False  # taken after half an hour
    task = Task(5 * HOUR, 20 * HOUR, 0.0)
    paid, free = (
        replay_simulated(SpotOnly(), market(up, free_s=f), TICK, task, PRICES).replays
        for f in (0.0, HOUR)
    )
    assert paid.cost_usd[0] == pytest.approx(5.0)
    assert free.cost_usd[0] == pytest.approx(4.5)


def test_a_queue_for_on_demand_takes_time_and_no_money():
    task = Task(5 * HOUR, 9 * HOUR, 0.0)
    up = np.zeros((10, 2), dtype=bool)
    found = replay_simulated(
        OnDemand(), market(up, queue_s=np.array([0.0, HOUR])), TICK, task, PRICES
    ).replays
    assert found.cost_usd == pytest.approx([15.0, 15.0])
    assert found.finish_s == pytest.approx([5 * HOUR, 6 * HOUR])


def test_paths_with_more_work_take_longer():
    task = Task(5 * HOUR, 9 * HOUR, 0.0)
    done = np.array([HOUR, 0.0, -HOUR])
    found = replay_simulated(
        OnDemand(), market(np.zeros((10, 3)), done_s=done), TICK, task, PRICES
    ).replays
    assert found.finish_s == pytest.approx([4 * HOUR, 5 * HOUR, 6 * HOUR])


def test_a_plan_that_waits_for_spot_that_never_comes_never_ends():
    found = replay_simulated(SpotOnly(), market(np.zeros((10, 2))), TICK, TASK, PRICES).replays
    assert np.isinf(found.finish_s).all()
