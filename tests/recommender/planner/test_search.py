"""The search of a problem answers the same problem under other limits, and keeps what it found."""

from pathlib import Path

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.plan_builder import is_on_demand_only, keeps
from recommender.planner.problem import PRINTED, planning_problem
from recommender.planner.search import PlanSearch
from recommender.planner.selection import ranked_plans
from recommender.planner.single_type_search import BASELINE, FULL, QUICK
from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.planning import HOUR, NOW, ask, job, written

DAY = Limits(deadline_s=24 * HOUR, max_machines=6)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return written(Path(tmp_path_factory.mktemp("catalog")))


@pytest.fixture
def search(catalog: Catalog) -> PlanSearch:
    return PlanSearch(planning_problem(job(), DAY, Choice(), catalog, Progress(), NOW, 7))


def test_what_was_searched_once_is_not_searched_again(search: PlanSearch) -> None:
    tighter = Limits(deadline_s=12 * HOUR, max_machines=6)
    known = search.single_type.search(tighter, cap=BASELINE)
    assert search.single_type.search(tighter, cap=QUICK) is known


def test_who_asks_for_a_longer_search_gets_one(search: PlanSearch) -> None:
    other = Limits(deadline_s=11 * HOUR, max_machines=6)
    quick = search.single_type.search(other, cap=QUICK)
    longer = search.single_type.search(other, cap=FULL)
    assert longer.max_plans > quick.max_plans
    assert longer.best_goal <= quick.best_goal * 1.02  # on the printed paths, not those of a search


def test_a_search_stops_when_its_budget_is_used_up(search: PlanSearch) -> None:
    assert QUICK.plans < BASELINE.plans < FULL.plans
    state = search.single_type.search(Limits(budget_usd=1e6, max_machines=6), cap=QUICK)
    assert state.max_plans == QUICK.plans


def test_entries_of_one_market_can_be_searched_alone(search: PlanSearch) -> None:
    for only in ("on_demand", "spot"):
        state = search.single_type.search(DAY, only, BASELINE)
        plan = search.builder.build(state.best_candidate()).plan
        assert is_on_demand_only(plan) == (only == "on_demand")


def test_where_no_plan_keeps_the_limits_the_fastest_is_found(search: PlanSearch) -> None:
    hopeless = Limits(deadline_s=60.0, max_machines=6)
    assert not search.single_type.search(hopeless).incumbents
    assert search.single_type.search_or_relaxed(hopeless).incumbents


def test_a_candidate_is_built_once_and_carries_what_it_was_simulated_with(
    search: PlanSearch,
) -> None:
    first = ranked_plans(search, 1).plans[0]
    assert first == search.builder.build(first.candidate)
    paths = simulate_paths(first.inputs, DAY.deadline_s, PRINTED, search.problem.seed)
    assert paths.expected_usd.mean() == pytest.approx(first.cost_usd)
    assert keeps(first.plan, DAY)


def test_replanning_leads_to_the_plan_that_one_gets_who_asks_for_it(
    search: PlanSearch, catalog: Catalog
) -> None:
    tighter = Limits(deadline_s=14 * HOUR, max_machines=6)
    replanned = search.replan(tighter)
    asked = ask(catalog, deadline_s=14 * HOUR)
    assert replanned is not None
    assert replanned.plan.machines == asked.plans[0].machines


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


def test_of_many_regions_those_are_mixed_first_whose_bound_is_best(search: PlanSearch) -> None:
    inf = float("inf")
    everywhere, rest = search.problem.mix_regions(inf, None)
    regions = [site.region for site in everywhere.sites]
    assert len(regions) > 1
    assert rest == inf
    one, rest = search.problem.mix_regions(inf, None, pairs=1)
    assert [site.region for site in one.sites] == [
        site.region for site in search.problem.mix_regions(inf, 1)[0].sites
    ]
    assert rest == search.problem.mix_regions(inf, 1)[1] < inf
    assert len(search.problem.mix_regions(inf, None, pairs=10**9)[0].sites) == len(regions)
