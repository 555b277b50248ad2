"""The table of a back-test: right sums, fits that see the past only, DeepVM's standing bills."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.availability_fit import zone_class
from recommender.policies.backtest import (
    FittedPolicy,
    FixedRule,
    Market,
    SingleAnchor,
    Tiering,
    Workers,
    bounds,
    closed_by_sums,
    judge,
    pieces,
    run,
)
from recommender.policies.rules import Greedy, OnDemand, SpotOnly, UniformProgress
from recommender.policies.state import ModePrices
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import PRICES, hours, simulated

TICK = 600.0
TASK = hours(12, 18, 0.1)
SERIES = simulated(HEAVY, TICK, 4_000, seed=1)
TRACE = Market.of_one("made up", TICK, SERIES[:2_000], SERIES[2_000:], PRICES)
DEAR = Market.of_one("dear", TICK, SERIES[:2_000], SERIES[2_000:], ModePrices(8.0, 24.0))


def rows_of(rules, markets, tasks):
    return run(pieces(rules, markets, tasks), Workers())


def seen_as(market, available):
    return replace(market, judged=replace(market.judged, available=available))


def test_greedy_closes_nothing_and_on_demand_less():
    rows = rows_of([FixedRule(Greedy()), FixedRule(OnDemand())], [TRACE], [TASK])
    assert [row.policy for row in rows] == ["greedy", "on-demand"]
    assert rows[0].gap_closed == pytest.approx(0.0)
    assert rows[1].gap_closed < 0.0
    assert rows[1].p50_usd == rows[1].p90_usd == pytest.approx(PRICES.on_demand * 73 / 6)


def test_the_fitted_policy_sees_the_past_only():
    within = bounds(TRACE, TASK)
    row = judge(FittedPolicy(), TRACE, TASK, within)
    policy, _ = FittedPolicy().enter(TRACE)
    other, _ = FittedPolicy().enter(seen_as(TRACE, ~TRACE.judged.available))
    np.testing.assert_array_equal(policy.law.exits_per_hour, other.law.exits_per_hour)
    assert row.late_share == 0.0
    assert row.optimum_usd <= row.mean_usd <= row.greedy_usd


def test_a_zone_without_a_past_needs_a_class():
    blind = replace(TRACE, past=TRACE.past[:, :0])
    with pytest.raises(UsageError, match="no past"):
        FittedPolicy().enter(blind)
    kind = zone_class([TRACE.past[0]], TICK)
    policy, _ = FittedPolicy(kind).enter(blind)
    assert policy.law is kind.unwatched


def test_a_row_can_be_made_in_another_process():
    parts = (FittedPolicy(confidence=0.95), TRACE, TASK, bounds(TRACE, TASK))
    again = pickle.loads(pickle.dumps(parts))
    assert judge(*again) == judge(*parts)


def test_sums_weigh_every_window_alike():
    rows = rows_of([FixedRule(UniformProgress())], [TRACE], [TASK, hours(24, 40, 0.2)])
    greedy, policy, best = (
        sum(row.windows * getattr(row, name) for row in rows)
        for name in ("greedy_usd", "mean_usd", "optimum_usd")
    )
    assert closed_by_sums(rows) == pytest.approx((greedy - policy) / (greedy - best))
    assert closed_by_sums([]) is None


def test_deepvms_anchor_is_paid_while_spot_is_away():
    policy, seen = SingleAnchor(machines=8).enter(DEAR)
    assert isinstance(policy, SpotOnly)
    assert seen.offers.prices == ModePrices(7 / 8 * 8.0 + 3.0, 24.0, 3.0)


def test_deepvms_anchor_needs_one_spot_machine_fewer():
    up = TRACE.judged.available
    never = seen_as(TRACE, np.zeros_like(up))
    there = replace(never, one_fewer=np.ones_like(up))
    within = bounds(there, TASK)
    row = judge(SingleAnchor(machines=2), there, TASK, within)
    assert row.late_share == 0.0
    # Whole ticks on one spot machine of two, at half of each price.
    ticks = np.ceil((TASK.work_s + TASK.changeover_s) / TICK)
    each = 0.5 * (PRICES.spot + PRICES.on_demand)
    assert row.mean_usd == pytest.approx(ticks * TICK / 3600.0 * each)
    waits = judge(SingleAnchor(machines=2), never, TASK, within)
    assert waits.late_share == 1.0


def test_deepvms_receivers_are_paid_all_the_time():
    _, seen = Tiering(receivers_usd_per_hour=0.5).enter(DEAR)
    assert seen.offers.prices == ModePrices(8.5, 24.0, 0.5)


def test_a_trace_shorter_than_the_deadline_is_left_out_of_the_table_and_refused_alone():
    short = replace(seen_as(TRACE, TRACE.judged.available[:, :50]), name="short")
    assert rows_of([FixedRule(Greedy())], [short, TRACE], [TASK])[0].trace == TRACE.name
    with pytest.raises(UsageError, match="no trace is as long as a deadline"):
        rows_of([FixedRule(Greedy())], [short], [TASK])
    with pytest.raises(UsageError, match="shorter than the deadline"):
        bounds(short, TASK)
