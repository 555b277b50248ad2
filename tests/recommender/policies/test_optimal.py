"""The cost-optimal policy does what its model promises, and is never late if that is required."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.policies.availability import chain
from recommender.policies.hindsight import optimum
from recommender.policies.optimal import GRACE, SemiMarkov, expected_usd
from recommender.policies.policy_table import policy_table
from recommender.policies.replay import replay
from recommender.policies.rules import Greedy, UniformProgress
from recommender.policies.state import ModePrices
from tests.recommender.policies.laws import ALWAYS, HEAVY, NEVER_UP, STEADY
from tests.recommender.policies.markets import PRICES, hours, one, simulated

TICK = 600.0
TASK = hours(24, 36, 0.2)
FIRST = np.array([0])


def costs(policy, series, task=TASK, tick_s=TICK, prices=PRICES):
    starts = one(series, tick_s, PRICES).windows(task, 6 * 3600.0)
    return replay(policy, one(series, tick_s, prices), starts, task)


def test_with_spot_always_there_it_costs_the_spot_price():
    found = replay(SemiMarkov(ALWAYS), one(np.ones(250, dtype=bool), TICK, PRICES), FIRST, TASK)
    assert found.cost_usd[0] == pytest.approx(PRICES.spot * (24 + 2 / 6))  # whole ticks


def test_with_spot_never_there_it_costs_the_on_demand_price():
    found = replay(SemiMarkov(NEVER_UP), one(np.zeros(250, dtype=bool), TICK, PRICES), FIRST, TASK)
    assert found.cost_usd[0] == pytest.approx(PRICES.on_demand * (24 + 2 / 6))


@pytest.mark.parametrize("law", [HEAVY, pytest.param(STEADY, marks=pytest.mark.slow)])
def test_the_table_expects_what_replay_on_its_own_law_costs(law):
    process = chain(law, TICK)
    expected = expected_usd(policy_table(process, TASK, PRICES, TICK), process, TASK)
    series = simulated(law, TICK, 200_000, seed=5)
    found = costs(SemiMarkov(law), series).cost_usd
    assert found.mean() == pytest.approx(expected, rel=0.05)


def test_on_its_own_law_it_beats_the_published_rules():
    for law, least in ((HEAVY, 0.5), (STEADY, 0.7)):
        series = simulated(law, TICK, 40_000, seed=6)
        ours = costs(SemiMarkov(law), series).cost_usd.mean()
        greedy, uniform = (costs(rule, series).cost_usd.mean() for rule in rules())
        starts = one(series, TICK, PRICES).windows(TASK, 6 * 3600.0)
        best = optimum(one(series, TICK, PRICES), starts, TASK).mean()
        assert best <= ours < min(greedy, uniform)
        assert (greedy - ours) / (greedy - best) > least


def rules():
    return Greedy(), UniformProgress()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=4, max_size=30),
    st.sampled_from([(10, 12, 0.1), (10, 11, 0.3), (6, 14, 0.5), (8, 8.5, 0.4)]),
    st.sampled_from([195.0, 600.0, 900.0]),
)
def test_at_full_confidence_it_is_never_late(runs, setting, tick_s):
    task = hours(*setting)
    series = np.repeat(np.arange(len(runs)) % 2 == 0, runs)
    series = np.tile(series, 1 + int(task.deadline_s / tick_s) // len(series) + 1)
    starts = np.arange(0, len(series) - int(task.deadline_s / tick_s), 7)
    found = replay(SemiMarkov(HEAVY), one(series, tick_s, PRICES), starts, task)
    assert not found.late(task.deadline_s).any()


def test_a_chance_to_be_late_saves_money_and_is_not_exceeded():
    series = simulated(HEAVY, TICK, 60_000, seed=8)
    sure, likely = (costs(SemiMarkov(HEAVY, confidence), series) for confidence in (1.0, 0.95))
    assert not sure.late(TASK.deadline_s).any()
    assert 0.0 < likely.late(TASK.deadline_s).mean() <= 0.05
    assert likely.cost_usd.mean() < sure.cost_usd.mean()
    assert (likely.finish_s <= (1 + GRACE) * TASK.deadline_s + 1e-3).all()


def test_more_expensive_spot_or_less_time_never_make_a_job_cheaper():
    process = chain(HEAVY, TICK)

    def usd(task, prices):
        return expected_usd(policy_table(process, task, prices, TICK), process, task)

    base = usd(TASK, PRICES)
    assert usd(TASK, ModePrices(1.2, 3.06)) > base
    assert usd(hours(24, 30, 0.2), PRICES) > base
    assert usd(hours(24, 36, 0.4), PRICES) > base
    assert usd(TASK, ModePrices(PRICES.spot, PRICES.on_demand, idle=0.1)) > base


def test_spot_that_costs_more_than_on_demand_is_not_used():
    found = costs(
        SemiMarkov(STEADY), simulated(STEADY, TICK, 2_000, 1), prices=ModePrices(4.0, 3.06)
    )
    assert (found.spot_s == 0.0).all()


def test_no_time_to_spare_means_on_demand_at_once():
    series = simulated(HEAVY, TICK, 2_000, seed=3)
    found = costs(SemiMarkov(HEAVY), series, task=hours(24, 24.4, 0.2))
    assert not found.late(24.4 * 3600.0).any()


def test_a_confidence_is_a_chance():
    with pytest.raises(UsageError, match="confidence"):
        SemiMarkov(HEAVY, confidence=1.5)


def test_a_deadline_that_cannot_be_met_means_on_demand_to_the_end():
    for deadline in (10.0, 23.0, 24.0):
        found = costs(SemiMarkov(HEAVY), np.ones(300, dtype=bool), task=hours(24, deadline, 0.2))
        assert found.late(deadline * 3600.0).all()
        assert np.isfinite(found.finish_s).all()
