"""Searches over clusters of one machine type: kept, capped, and the same in any order."""

import pytest

from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner import single_type_search
from recommender.planner.plan_builder import is_on_demand_only
from recommender.planner.problem import planning_problem
from recommender.planner.search import PlanSearch
from recommender.planner.single_type_search import BASELINE, CAPPED_PLANS, FULL, QUICK
from tests.recommender.planning import DAY, HOUR, NOW, job, search_of_day, small


@pytest.fixture
def search() -> PlanSearch:
    return search_of_day()


def test_what_was_searched_once_is_not_searched_again(search: PlanSearch) -> None:
    tighter = Limits(deadline_s=12 * HOUR, max_machines=6)
    known = search.single_type.search(tighter, cap=BASELINE)
    assert search.single_type.search(tighter, cap=QUICK) is known


def test_a_longer_search_is_carried_out_if_requested(search: PlanSearch) -> None:
    other = Limits(deadline_s=11 * HOUR, max_machines=6)
    quick = search.single_type.search(other, cap=QUICK)
    longer = search.single_type.search(other, cap=FULL)
    assert longer.max_plans > quick.max_plans
    assert longer.best_goal <= quick.best_goal * 1.02  # on the printed paths, not those of a search


def test_a_search_stops_when_its_cap_is_used_up(search: PlanSearch) -> None:
    assert QUICK.plans < BASELINE.plans < FULL.plans
    state = search.single_type.search(Limits(budget_usd=1e6, max_machines=6), cap=QUICK)
    assert state.max_plans == QUICK.plans


def test_entries_of_one_market_can_be_searched_alone(search: PlanSearch) -> None:
    for only in ("on_demand", "spot"):
        state = search.single_type.search(DAY, only, BASELINE)
        plan = search.builder.build(state.best_candidate()).plan
        assert is_on_demand_only(plan) == (only == "on_demand")


def test_where_no_plan_meets_the_limits_the_fastest_is_found(search: PlanSearch) -> None:
    hopeless = Limits(deadline_s=60.0, max_machines=6)
    assert not search.single_type.search(hopeless).incumbents
    assert search.single_type.search_or_relaxed(hopeless).incumbents


def test_an_answer_does_not_depend_on_earlier_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        single_type_search, "MAX_PLANS_UNCAPPED", 0
    )  # every problem counts as a hard one
    problem = planning_problem(job(), DAY, Choice(), small(), Progress(), NOW, 7)
    other = Limits(budget_usd=1e6, max_machines=6)
    first = PlanSearch(problem).single_type.search(other, cap=FULL)
    asked = PlanSearch(problem)
    assert asked.best.incumbents
    after = asked.single_type.search(other, cap=FULL)
    assert first.max_plans == after.max_plans == CAPPED_PLANS
    assert first.incumbents == after.incumbents
