"""Lifetimes that are not memoryless matter: what the exponential assumption gets wrong.

A zone whose runs are heavy-tailed, as measured, is fitted twice on one long record: by age, and
with exponential runs and outages of the same means. Both are judged on another record.
"""

import numpy as np
import pytest

from recommender.policies.availability import Availability, chain
from recommender.policies.availability_fit import zone_class
from recommender.policies.optimal import SemiMarkov, expected_usd
from recommender.policies.policy_table import policy_table
from recommender.policies.replay import replay
from recommender.policies.state import ModePrices, Task
from tests.recommender.policies.laws import HEAVY, STEADY, memoryless
from tests.recommender.policies.markets import PRICES, hours, one, simulated

TICK = 600.0
RECORD, LATER = (simulated(HEAVY, TICK, 150_000, seed) for seed in (4, 5))
SHORT = hours(3, 12, 0.5)
STEADY_PRICES = ModePrices(spot=1.35, on_demand=3.06)  # a more expensive zone with steady runs


@pytest.fixture(scope="module")
def by_age() -> Availability:
    return zone_class([RECORD], TICK).pooled


@pytest.fixture(scope="module")
def exponential() -> Availability:
    ends = (RECORD[:-1] & ~RECORD[1:]).sum()
    return memoryless(HEAVY, float(RECORD.mean()), RECORD.sum() * TICK / 3600.0 / ends)


def promised(law: Availability, task: Task, prices: ModePrices) -> float:
    process = chain(law, TICK)
    return expected_usd(policy_table(process, task, prices, TICK), process, task)


def paid(law: Availability, series: np.ndarray, task: Task, prices: ModePrices) -> float:
    starts = one(series, TICK, PRICES).windows(task, 12 * 3600.0)
    return float(replay(SemiMarkov(law), one(series, TICK, prices), starts, task).cost_usd.mean())


def test_the_exponential_law_picks_the_more_expensive_zone_and_ours_does_not(by_age, exponential):
    steady_series = simulated(STEADY, TICK, 150_000, seed=7)
    true_heavy = min(paid(law, LATER, SHORT, PRICES) for law in (by_age, exponential))
    true_steady = paid(STEADY, steady_series, SHORT, STEADY_PRICES)
    assert true_steady < 0.95 * true_heavy  # the steady zone is the right one
    offered = promised(STEADY, SHORT, STEADY_PRICES)
    assert promised(exponential, SHORT, PRICES) < offered  # so it picks the heavy-tailed zone
    assert promised(by_age, SHORT, PRICES) > offered


def test_the_exponential_law_promises_too_little_and_ours_is_near(by_age, exponential):
    true = paid(by_age, LATER, SHORT, PRICES)
    assert promised(exponential, SHORT, PRICES) < 0.85 * true
    assert promised(by_age, SHORT, PRICES) == pytest.approx(true, rel=0.05)


def test_under_a_tight_deadline_the_exponential_policy_pays_more(by_age, exponential):
    tight = hours(24, 30, 0.5)
    ours = paid(by_age, LATER, tight, PRICES)
    assert paid(exponential, LATER, tight, PRICES) > 1.01 * ours
