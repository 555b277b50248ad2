"""What stands beside the best plan is true of it: limits at every place, savings, neighbours."""

from functools import cache

import pytest

from recommender.jobfile import find_job
from recommender.limits import Choice, Limits
from recommender.plan import Answer, Plan
from tests.recommender.planning import HOUR, NOW, recommend, snapshot


@cache
def asked(job: str, limits: Limits, choice: Choice = Choice()) -> Answer:  # noqa: B008 (frozen)
    """An answer from the shipped snapshot."""
    return recommend(find_job(job), limits, choice, catalog=snapshot(), now=NOW)


def dearest_usd_per_hour(plan: Plan) -> float:
    """What the machines cost at the dearest place of their failover list."""
    (machines,) = plan.machines
    places = [site.usd_per_hour for site in plan.sites] or [machines.usd_per_hour]
    return machines.count * max(places)


@pytest.mark.parametrize(("job", "usd"), [("resnet50-imagenet", 3.0), ("llama3-70b-qlora", 30.0)])
def test_a_price_per_hour_is_kept_at_every_place_of_a_failover_list(job: str, usd: float) -> None:
    plans = asked(job, Limits(hourly_usd=usd)).plans
    assert plans
    assert all(dearest_usd_per_hour(plan) <= usd for plan in plans)


def test_the_same_plan_costs_the_same_under_a_tighter_limit() -> None:
    """Its fallback would start earlier: then it is no longer the same to who pays for it."""
    choice = Choice(failover="none")
    answer = asked("resnet50-imagenet", Limits(deadline_s=24 * HOUR), choice)
    tighter = asked("resnet50-imagenet", Limits(deadline_s=14.4 * HOUR), choice)
    cost, other = (each.plans[0].estimate.cost.mean for each in (answer, tighter))
    said = answer.steps[0].effect
    assert (said == "the same plan") == (abs(other / cost - 1.0) < 0.01)


def test_a_tighter_budget_is_told_the_plan_that_asking_for_it_gives() -> None:
    """A short search meets the fastest plans first, all of them too dear."""
    step = asked("resnet50-imagenet", Limits(budget_usd=200.0)).steps[0]
    assert step.change == "--budget 120"
    assert step.plan is not None
    then = asked("resnet50-imagenet", Limits(budget_usd=120.0)).plans[0]
    assert step.plan.estimate.time.typical <= then.estimate.time.typical * 1.02
