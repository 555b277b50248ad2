"""How often each plan is the best over common draws of what is uncertain."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from recommender.plan.evidence import Evidence
from recommender.plan.limits import Limits
from recommender.planner.ties import DRAWS, ONE_GPU_SD, best_shares
from tests.recommender.answers import HOUR, machines, plan

COST, TIME = Limits(deadline_s=24 * HOUR), Limits(budget_usd=100.0)
SURE = Evidence("measured", "fresh", None, 0.0, 0.0, 0.0, 0.0)


def one(gpu: str, usd: float, hours: float = 5.0, market: str = "on_demand", **evidence: float):
    rented = machines(f"box-{gpu}", gpu, "aws:us-east-1", market)
    made = plan(rented, ("us-east-1",), (usd, usd / 2, usd * 2), (hours, hours, hours), 0.97)
    return replace(made, evidence=replace(SURE, **evidence))


def test_of_two_plans_with_one_gpu_and_one_price_the_cheaper_always_is():
    assert best_shares([one("H100", 10.0), one("H100", 10.1)], COST, 7) == (1.0, 0.0)


def test_plans_of_two_gpus_that_cost_the_same_share_the_draws():
    first, second = best_shares([one("H100", 10.0), one("A100", 10.0)], COST, 7)
    assert first + second == 1.0
    assert first == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("dearer", [1.1, 1.3, 1.6])
def test_how_often_the_more_expensive_is_cheaper_follows_from_the_spreads(dearer):
    """ln of the ratio is normal: Φ(-ln ratio / sd)."""
    plans = [one("H100", 10.0), one("L40S", 10.0 * dearer, speed_sd=0.2)]
    sd = np.hypot(ONE_GPU_SD, np.hypot(ONE_GPU_SD, 0.2))
    reported = best_shares(plans, COST, 7)[1]
    assert reported == pytest.approx(
        NormalDist().cdf(-np.log(dearer) / sd), abs=3 / np.sqrt(DRAWS) / 2
    )


def test_prices_count_for_cost_and_not_for_time():
    near = [one("H100", 10.0, 5.0), one("H100", 11.0, 4.9, "spot", price_sd=0.4)]
    assert 0.2 < best_shares(near, COST, 7)[1] < 0.8
    assert best_shares(near, TIME, 7) == (0.0, 1.0)


def test_a_plan_that_another_of_its_kind_beats_changes_no_share():
    two = [one("H100", 10.0), one("A100", 11.0)]
    three = [*two, one("H100", 12.0)]
    assert best_shares(three, COST, 7) == (*best_shares(two, COST, 7), 0.0)
    assert best_shares([], COST, 7) == ()
