"""The two-threshold rule: read off the table, safe, and nearly as good."""

from itertools import product

import numpy as np
import pytest

from recommender.optimize.thresholds import BACK_ABOVE, WAIT_ABOVE
from recommender.policies.availability import chain
from recommender.policies.availability_fit import exit_rates, of_class
from recommender.policies.optimal import SemiMarkov
from recommender.policies.replay import replay
from recommender.policies.rules import Greedy
from recommender.policies.state import NONE, ON_DEMAND, SPOT, Offers, PolicyState
from recommender.policies.thresholds import (
    TwoThresholds,
    rule_usd,
)
from recommender.risk.laws import RUN_FAMILY
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import PRICES, hours, one, simulated

TICK = 600.0
TASK = hours(24, 36, 0.2)


def state(mode, done_h, now_h, available):
    return PolicyState(
        now_h * 3600.0,
        np.array([mode]),
        np.array([done_h * 3600.0]),
        np.zeros(1),
        np.array([[available]]),
        np.zeros(1, dtype=np.int64),
    )


@pytest.mark.parametrize(
    ("mode", "done_h", "now_h", "available", "want"),
    [
        (NONE, 0.0, 0.0, False, NONE),  # 11.8 h of slack, waits above 4.8
        (NONE, 4.0, 11.5, False, ON_DEMAND),  # 4.3 h of slack for 20 h of work, waits above 4
        (NONE, 4.0, 12.0, False, ON_DEMAND),  # 3.8 h
        (NONE, 4.0, 12.0, True, SPOT),
        (ON_DEMAND, 4.0, 12.0, True, SPOT),  # 3.8 h of slack, back above 2
        (ON_DEMAND, 4.0, 14.0, True, ON_DEMAND),  # 1.8 h
        (ON_DEMAND, 4.0, 4.5, False, ON_DEMAND),
        (SPOT, 4.0, 15.5, True, SPOT),
    ],
)
def test_the_rule_does_what_its_figures_say(mode, done_h, now_h, available, want):
    rule = TwoThresholds(wait=0.2167, back=0.1)
    decide = rule.begin(TASK, Offers.of_one(PRICES, TICK), 1)
    assert decide(state(mode, done_h, now_h, available))[0] == want


def test_two_figures_keep_most_of_what_the_whole_table_saves():
    process = chain(HEAVY, TICK)
    pairs = [TwoThresholds(*pair) for pair in product(WAIT_ABOVE, BACK_ABOVE)]
    rule = min(pairs, key=lambda pair: rule_usd(pair, process, TASK, PRICES, TICK))
    series = simulated(HEAVY, TICK, 60_000, seed=6)
    starts = one(series, TICK, PRICES).windows(TASK, 6 * 3600.0)
    greedy, full, short = (
        replay(policy, one(series, TICK, PRICES), starts, TASK)
        for policy in (Greedy(), SemiMarkov(HEAVY), rule)
    )
    assert not short.late(TASK.deadline_s).any()
    saved = greedy.cost_usd.mean() - full.cost_usd.mean()
    assert greedy.cost_usd.mean() - short.cost_usd.mean() > 0.6 * saved


def test_rates_of_a_lognormal_give_back_its_mean():
    for mean_h, sigma in ((3.35, 1.88), (1.0, 1.3)):
        law = exit_rates(RUN_FAMILY, mean_h, sigma)
        assert (np.diff(law[1:]) < 0.0).all()  # the hazard falls
        series_h = np.exp(
            np.log(mean_h) - sigma**2 / 2 + sigma * np.random.default_rng(0).normal(size=200_000)
        )
        early = series_h < 0.1
        assert law[0] == pytest.approx(early.sum() / np.minimum(series_h, 0.1).sum(), rel=0.05)


def test_the_usual_zone_of_a_class_has_its_availability():
    law = of_class(12070.0, 1.88, 1.36, 0.692, 0.0)
    assert chain(law, 120.0).share_up == pytest.approx(0.692, abs=0.05)
