"""The least value of a limit that makes a plan possible, against every plan there is."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.plan.limits import BUDGET, DEADLINE, HOURLY, Choice, Limit, Limits, Progress
from recommender.planner.plan_builder import meets
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.relaxed_limits import each_relaxed, relaxed
from tests.recommender.optimize.brute_force import every_plan
from tests.recommender.optimize.samples import sampled
from tests.recommender.planning import HOUR, NOW, job, small

ASKED = {
    "deadline": (DEADLINE, Limits(deadline_s=1.0 * HOUR, max_machines=2)),
    "budget": (BUDGET, Limits(budget_usd=1.0, max_machines=2)),
    "hourly": (HOURLY, Limits(deadline_s=16.0 * HOUR, hourly_usd=0.05, max_machines=2)),
    "sure deadline": (DEADLINE, Limits(deadline_s=HOUR, max_machines=2, confidence=0.99)),
}
STEP = 1.01  # the least value is named a hundredth wider than what its plan needs, and rounded up


def problem(limits: Limits) -> Problem:
    choice = Choice(mix="no", instances=("g4dn.xlarge", "g4dn.2xlarge"), providers=("aws",))
    return planning_problem(job("8"), limits, choice, small(), Progress(), NOW, 7)


def possible(limit: Limit, limits: Limits, value: float) -> bool:
    """Whether any plan of every cluster, path and fallback meets the limits with this value."""
    return any(True for _ in every_plan(problem(limits.with_value(limit, value))))


def least(limit: Limit, limits: Limits, low: float, high: float) -> float:
    """The least value with a plan, to half a hundredth, by halving."""
    while high > low * 1.005:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if possible(limit, limits, middle) else (middle, high)
    return high


@pytest.mark.parametrize("name", sampled(ASKED, ("deadline", "hourly")))
def test_the_value_named_is_about_the_least_that_any_plan_meets(name: str) -> None:
    limit, limits = ASKED[name]
    asked = problem(limits)
    found = relaxed(limit, limits, PlanPool(asked))
    assert found is not None
    named = found.limits.value(limit)
    assert named is not None
    wanted = least(limit, limits, limits.value(limit) or 1.0, 4.0 * named)
    # Its plan meets it in the printed figures, whose policy may allow a little less.
    assert wanted * 0.97 <= named <= wanted * STEP**4
    assert meets(found.plan, found.limits)


def test_each_limit_is_relaxed_alone_and_its_plan_meets_what_is_suggested() -> None:
    limits = Limits(deadline_s=2.0 * HOUR, budget_usd=2.0, max_machines=2)
    pool = PlanPool(problem(limits))
    assert not pool.best.plans
    for each in each_relaxed(limits, pool, limits):
        assert meets(each.plan, each.limits)
        if each.limit is not None:
            assert each.limits == replace(
                limits.with_value(each.limit, each.limits.value(each.limit)),
                objective=each.limits.objective,
            )
            assert (each.limits.value(each.limit) or 0.0) > (limits.value(each.limit) or np.inf)
        else:
            assert each.limits.confidence < limits.confidence
