"""What other limits would change: what a mix is worth against a job that never trains in part."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from recommender.planner.options import AnswerOptions
from recommender.planner.recommend import recommend
from tests.shipped import snapshot
from tests.speed.optimiser import quotas_of

DAY = Limits(deadline_s=86_400.0)
NOW = datetime(2026, 11, 21, tzinfo=UTC)


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
