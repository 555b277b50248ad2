"""The table of a job over several zones: the right yardsticks, fits that see the past only."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.backtest import BacktestTrace, Workers, run
from recommender.policies.backtest_zones import (
    FittedZones,
    ZoneRule,
    ZonesTrace,
    market_of,
    zones_pieces,
)
from recommender.policies.replay_zones import Failover
from recommender.policies.state import ModePrices
from tests.recommender.policies.laws import HEAVY, STEADY
from tests.recommender.policies.markets import PRICES, hours, simulated

TICK = 600.0
TASK = hours(6, 9, 0.1)
MOVES = 0.5 * (1.0 - np.eye(2))


def trace(name, law, seed, prices=None):
    series = simulated(law, TICK, 1_200, seed)
    return BacktestTrace(name, TICK, series[:600], series[600:], prices)


TRACES = (trace("a", HEAVY, 1, ModePrices(0.6, 3.0)), trace("b", STEADY, 2))


def test_traces_become_zones_at_their_own_prices():
    market = market_of(TRACES, PRICES, MOVES)
    assert market.judged.spot_usd_per_hour.tolist() == [0.6, PRICES.spot]
    assert market.judged.on_demand_usd_per_hour.tolist() == [3.0, PRICES.on_demand]
    assert (market.past[1] == TRACES[1].past).all()
    assert market.name == "2 zones together"


def test_failover_closes_nothing_and_ours_more():
    work = zones_pieces(
        (ZoneRule(Failover()), FittedZones()), market_of(TRACES, PRICES, MOVES), (TASK,)
    )
    failover, ours = run(work, Workers())
    assert failover.gap_closed == pytest.approx(0.0)
    assert ours.gap_closed > 0.0
    assert ours.optimum_usd <= ours.mean_usd
    assert ours.late_share == 0.0


def test_the_fit_sees_the_past_only():
    market = market_of(TRACES, PRICES, MOVES)
    other = ZonesTrace(
        "other", market.past, replace(market.judged, available=~market.judged.available)
    )
    first, second = (FittedZones().enter(each) for each in (market, other))
    for one, same in zip(first.laws, second.laws, strict=True):
        np.testing.assert_array_equal(one.exits_per_hour, same.exits_per_hour)


def test_what_cannot_be_one_market_is_refused():
    short = replace(TRACES[1], judged=TRACES[1].judged[:-1])
    with pytest.raises(UsageError, match="one tick and one length"):
        market_of((TRACES[0], short), PRICES, MOVES)
    market = market_of(TRACES, PRICES, MOVES)
    with pytest.raises(UsageError, match="no trace is as long"):
        zones_pieces((FittedZones(),), market, (hours(90, 120, 0.1),))
    with pytest.raises(UsageError, match="no past to fit"):
        FittedZones().enter(replace(market, past=market.past[:, :0]))
