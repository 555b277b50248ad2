"""The table of a back-test: right sums, fits that see the past only, DeepVM's standing bills."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.availability_fit import zone_class
from recommender.policies.backtest import (
    BacktestTrace,
    FittedPolicy,
    FixedRule,
    SingleAnchor,
    Tiering,
    backtest,
    bounds,
    closed_by_sums,
    judge,
)
from recommender.policies.rules import Greedy, OnDemand, SpotOnly, UniformProgress
from recommender.policies.state import ModePrices
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import PRICES, hours, simulated

TICK = 600.0
TASK = hours(12, 18, 0.1)
SERIES = simulated(HEAVY, TICK, 4_000, seed=1)
TRACE = BacktestTrace("made up", TICK, SERIES[:2_000], SERIES[2_000:])


def test_greedy_closes_nothing_and_on_demand_less():
    rows = backtest([FixedRule(Greedy()), FixedRule(OnDemand())], [TRACE], [TASK], PRICES)
    assert [row.policy for row in rows] == ["greedy", "on-demand"]
    assert rows[0].gap_closed == pytest.approx(0.0)
    assert rows[1].gap_closed < 0.0
    assert rows[1].p50_usd == rows[1].p90_usd == pytest.approx(PRICES.on_demand * 73 / 6)


def test_the_fitted_policy_sees_the_past_only():
    within = bounds(TRACE, TASK, PRICES)
    row = judge(FittedPolicy(), TRACE, TASK, PRICES, within)
    policy, _ = FittedPolicy().enter(TRACE, PRICES)
    other, _ = FittedPolicy().enter(replace(TRACE, judged=~TRACE.judged), PRICES)
    np.testing.assert_array_equal(policy.law.exits_per_hour, other.law.exits_per_hour)
    assert row.late_share == 0.0
    assert row.optimum_usd <= row.mean_usd <= row.greedy_usd


def test_a_zone_without_a_past_needs_a_class():
    blind = replace(TRACE, past=TRACE.past[:0])
    with pytest.raises(UsageError, match="no past"):
        FittedPolicy().enter(blind, PRICES)
    kind = zone_class([TRACE.past], TICK)
    policy, _ = FittedPolicy(kind).enter(blind, PRICES)
    assert policy.law is kind.unwatched


def test_a_row_can_be_made_in_another_process():
    parts = (FittedPolicy(confidence=0.95), TRACE, TASK, PRICES, bounds(TRACE, TASK, PRICES))
    again = pickle.loads(pickle.dumps(parts))
    assert judge(*again) == judge(*parts)


def test_sums_weigh_every_window_alike():
    rows = backtest([FixedRule(UniformProgress())], [TRACE], [TASK, hours(24, 40, 0.2)], PRICES)
    greedy, policy, best = (
        sum(row.windows * getattr(row, name) for row in rows)
        for name in ("greedy_usd", "mean_usd", "optimum_usd")
    )
    assert closed_by_sums(rows) == pytest.approx((greedy - policy) / (greedy - best))
    assert closed_by_sums([]) is None


def test_deepvms_anchor_is_paid_while_spot_is_away():
    prices = ModePrices(spot=8.0, on_demand=24.0)
    policy, paid = SingleAnchor(machines=8).enter(TRACE, prices)
    assert isinstance(policy, SpotOnly)
    assert (paid.spot, paid.idle) == (7 / 8 * 8.0 + 3.0, 3.0)


def test_deepvms_anchor_needs_one_spot_machine_fewer():
    never = replace(TRACE, judged=np.zeros_like(TRACE.judged))
    there = replace(never, one_fewer=np.ones_like(TRACE.judged))
    within = bounds(there, TASK, PRICES)
    row = judge(SingleAnchor(machines=2), there, TASK, PRICES, within)
    assert row.late_share == 0.0
    # Whole ticks on one spot machine of two, at half of each price.
    ticks = np.ceil((TASK.work_s + TASK.changeover_s) / TRACE.tick_s)
    each = 0.5 * (PRICES.spot + PRICES.on_demand)
    assert row.mean_usd == pytest.approx(ticks * TRACE.tick_s / 3600.0 * each)
    waits = judge(SingleAnchor(machines=2), never, TASK, PRICES, within)
    assert waits.late_share == 1.0


def test_deepvms_receivers_are_paid_all_the_time():
    _, paid = Tiering(receivers_usd_per_hour=0.5).enter(TRACE, ModePrices(8.0, 24.0))
    assert (paid.spot, paid.idle) == (8.5, 0.5)


def test_a_trace_shorter_than_the_deadline_is_left_out_of_the_table_and_refused_alone():
    short = replace(TRACE, name="short", judged=TRACE.judged[:50])
    assert backtest([FixedRule(Greedy())], [short, TRACE], [TASK], PRICES)[0].trace == TRACE.name
    with pytest.raises(UsageError, match="no trace is as long as a deadline"):
        backtest([FixedRule(Greedy())], [short], [TASK], PRICES)
    with pytest.raises(UsageError, match="shorter than the deadline"):
        bounds(short, TASK, PRICES)
