"""The search of a problem answers the same problem under other limits, and keeps what it found."""

import pytest

from recommender.plan.limits import Limits
from recommender.planner.plan_builder import meets
from recommender.planner.problem import PRINTED
from recommender.planner.search import PlanSearch
from recommender.planner.selection import ranked_plans
from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.planning import DAY, HOUR, ask, search_of_day, small


@pytest.fixture
def search() -> PlanSearch:
    return search_of_day()


def test_a_candidate_is_built_once_and_carries_what_it_was_simulated_with(
    search: PlanSearch,
) -> None:
    first = ranked_plans(search, 1).plans[0]
    assert first == search.builder.build(first.candidate)
    paths = simulate_paths(first.inputs, DAY.deadline_s, PRINTED, search.problem.seed)
    assert paths.expected_usd.mean() == pytest.approx(first.cost_usd)
    assert meets(first.plan, DAY)


def test_a_replanned_limit_gives_the_plan_of_a_direct_question(
    search: PlanSearch,
) -> None:
    tighter = Limits(deadline_s=14 * HOUR, max_machines=6)
    replanned = search.replan(tighter)
    asked = ask(small(), deadline_s=14 * HOUR)
    assert replanned is not None
    assert replanned.cost_usd == pytest.approx(asked.plans[0].estimate.cost.mean, rel=0.05)


@pytest.mark.parametrize("aim", ["time", "cost"])
def test_the_best_plan_without_limits_is_no_worse_than_any_under_them(
    search: PlanSearch, aim: str
) -> None:
    best = search.best_unconstrained("time" if aim == "time" else "cost")
    assert best is not None
    for each in ranked_plans(search, 5).plans:
        if aim == "time":
            assert best.time_s <= each.time_s * 1.01
        else:
            assert best.cost_usd <= each.cost_usd * 1.01
