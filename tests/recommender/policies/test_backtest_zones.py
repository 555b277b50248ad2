"""The table of a job over several zones: the right yardsticks, fits that see the past only."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.backtest import FittedZones, FixedRule, Market, Workers, pieces, run
from recommender.policies.rules import Greedy
from recommender.policies.state import ModePrices
from tests.recommender.policies.laws import HEAVY, STEADY
from tests.recommender.policies.markets import PRICES, hours, simulated

TICK = 600.0
TASK = hours(6, 9, 0.1)
MOVES = 0.5 * (1.0 - np.eye(2))


def trace(name, law, seed, prices=PRICES):
    series = simulated(law, TICK, 1_200, seed)
    return Market.of_one(name, TICK, series[:600], series[600:], prices)


TRACES = (trace("a", HEAVY, 1, ModePrices(0.6, 3.0)), trace("b", STEADY, 2))


def test_traces_become_zones_at_their_own_prices():
    market = Market.together(TRACES, MOVES)
    assert market.judged.offers.spot_usd_per_hour.tolist() == [0.6, PRICES.spot]
    assert market.judged.offers.on_demand_usd_per_hour.tolist() == [3.0, PRICES.on_demand]
    assert (market.past[1] == TRACES[1].past[0]).all()
    assert market.name == "2 zones together"


def test_failover_closes_nothing_and_ours_more():
    rules = FixedRule(Greedy("failover")), FittedZones()
    work = pieces(rules, (Market.together(TRACES, MOVES),), (TASK,))
    failover, ours = run(work, Workers())
    assert failover.gap_closed == pytest.approx(0.0)
    assert ours.gap_closed > 0.0
    assert ours.optimum_usd <= ours.mean_usd
    assert ours.late_share == 0.0


def test_the_fit_sees_the_past_only():
    market = Market.together(TRACES, MOVES)
    judged = replace(market.judged, available=~market.judged.available)
    other = replace(market, judged=judged)
    first, second = (FittedZones().enter(each)[0] for each in (market, other))
    for one, same in zip(first.laws, second.laws, strict=True):
        np.testing.assert_array_equal(one.exits_per_hour, same.exits_per_hour)


def test_what_cannot_be_one_market_is_refused():
    judged = TRACES[1].judged
    cut = replace(judged, available=judged.available[:, :-1])
    short = replace(TRACES[1], judged=cut)
    with pytest.raises(UsageError, match="one tick and one length"):
        Market.together((TRACES[0], short), MOVES)
    market = Market.together(TRACES, MOVES)
    with pytest.raises(UsageError, match="no trace is as long"):
        pieces((FittedZones(),), (market,), (hours(90, 120, 0.1),))
    with pytest.raises(UsageError, match="no past to fit"):
        FittedZones().enter(replace(market, past=market.past[:, :0]))
