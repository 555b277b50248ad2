"""What other limits would change, and which changes are worth a line."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan
from recommender.planner.options import AnswerOptions
from recommender.planner.recommend import recommend
from recommender.planner.sensitivity import _better, _matters
from tests.recommender.answers import machines, plan
from tests.shipped import snapshot
from tests.speed.optimiser import quotas_of

DAY = Limits(deadline_s=86_400.0)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
FIRST = (10.0, 5.0, 8.0)  # USD in the mean, hours in the median and of 1 run in 20


def test_a_mix_of_markets_says_what_the_job_costs_as_a_gang() -> None:
    catalog, job = snapshot(), find_job("gpt2-xl")
    choice = Choice(providers=("azure",), quotas=quotas_of(catalog, 96.0), quotas_known=True)
    asked = {"catalog": catalog, "now": NOW}
    mixed = recommend(job, DAY, choice, AnswerOptions(), **asked)
    first = mixed.plans[mixed.best - 1]
    assert {machines.market for machines in first.machines} == {"spot", "on_demand"}
    (step,) = [each for each in mixed.sensitivity if each.change == "--gang"]
    gang = recommend(replace(job, elastic=False), DAY, choice, AnswerOptions(), **asked)
    alone = gang.plans[gang.best - 1].estimate.cost.mean
    more = alone - first.estimate.cost.mean
    assert step.plan is not None
    assert step.plan.estimate.cost.mean == pytest.approx(alone, rel=0.01)
    words, usd = step.effect.split()[:2]
    assert (words, float(usd)) == ("costs", pytest.approx(more, rel=0.01))
    assert not any(each.change == "--gang" for each in gang.sensitivity)


def costing(usd: float, hours: float, slow_hours: float) -> Plan:
    rented = machines("box", "H100", "aws:us-east-1", "spot")
    return plan(rented, ("us-east-1",), (usd, 6.0, 14.0), (hours, 4.0, slow_hours), 0.97)


@pytest.mark.parametrize(
    ("other", "worth_a_line"),
    [
        ((10.05, 5.2, 8.0), False),  # the same cost, 12 min later
        ((10.05, 5.0, 8.0), False),
        ((10.3, 5.0, 8.0), True),
        ((9.7, 5.2, 8.0), True),
        ((10.05, 4.9, 8.0), True),
        ((10.05, 5.2, 7.0), True),  # the slow runs end sooner
    ],
)
def test_a_plan_that_costs_the_same_and_takes_longer_is_no_line(
    other: tuple[float, float, float], worth_a_line: bool
) -> None:
    assert _matters(costing(*other), costing(*FIRST)) == worth_a_line


def test_a_few_cents_of_a_small_job_are_no_line() -> None:
    """ResNet-18 on CIFAR-10 costs 5 cents: a deadline of 36 h instead of 24 h saves 0.4 cents."""
    small, cheaper = costing(0.0516, 0.43, 24.0), costing(0.0479, 0.43, 24.0)
    assert not _better(cheaper, small, DAY)
    assert not _matters(cheaper, small)
    assert _better(costing(9.7, 5.0, 8.0), costing(*FIRST), DAY)
