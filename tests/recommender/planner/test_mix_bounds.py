"""What mixes could gain is bounded before they are searched: the best regions first."""

from pathlib import Path

import pytest

from recommender.job.jobfile import find_job
from recommender.optimize.bounds.mixed_spot import min_mix_usd
from recommender.optimize.search import search_mixes
from recommender.optimize.search_state import SearchState
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.mix_bounds import mix_lower_bound, mix_regions
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.search import PlanSearch
from tests.recommender.planning import HOUR, NOW, job, written
from tests.shipped import snapshot

DAY = Limits(deadline_s=24 * HOUR, max_machines=6)


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    catalog = written(Path(tmp_path_factory.mktemp("catalog")))
    return planning_problem(job(), DAY, Choice(mix="yes"), catalog, Progress(), NOW, 7)


def test_of_many_regions_those_are_mixed_first_whose_bound_is_best(problem: Problem) -> None:
    inf = float("inf")
    everywhere, best = mix_regions(problem, inf, None), mix_regions(problem, inf, 1)
    regions = [site.region for site in everywhere.sites.sites]
    assert len(regions) > 1
    assert everywhere.of_rest == inf
    assert best.lower_bounds == (min(everywhere.lower_bounds),)
    one = mix_regions(problem, inf, None, pairs=1)
    assert [site.region for site in one.sites.sites] == [site.region for site in best.sites.sites]
    assert one.of_rest == best.of_rest == sorted(everywhere.lower_bounds)[1] < inf
    assert len(mix_regions(problem, inf, None, pairs=10**9).sites.sites) == len(regions)


def test_regions_that_wait_for_their_turn_hide_no_mix(problem: Problem) -> None:
    regions = mix_regions(problem, float("inf"), None)
    space = problem.space(regions.sites)
    at_once = SearchState(slack=0.0, max_plans=10**6)
    in_turn = SearchState(slack=0.0, max_plans=10**6)
    search_mixes(space, at_once)
    search_mixes(space, in_turn, lower_bounds=regions.lower_bounds)
    assert in_turn.best_candidate() == at_once.best_candidate()
    assert in_turn.gap() == at_once.gap() == 0.0
    assert min(regions.lower_bounds) <= at_once.best_goal


@pytest.mark.parametrize("thorough", [False, True])
def test_no_mix_that_is_found_costs_less_than_the_bound_of_all(
    problem: Problem, thorough: bool
) -> None:
    bound = mix_lower_bound(problem, float("inf"), thorough)
    found = PlanSearch(problem).best.incumbents.values()
    assert 0.0 < bound <= min(candidate.goal_value for candidate in found)


@pytest.mark.parametrize(("provider", "hours"), [("gcp", 8.0), ("azure", 16.0)])
def test_the_quick_bound_is_no_higher_than_that_of_all_offers(provider: str, hours: float) -> None:
    """The machine on demand that is cheapest at perfect scaling has too little memory here."""
    choice, limits = Choice(providers=(provider,)), Limits(deadline_s=hours * HOUR)
    asked = find_job("llama3-8b-sft"), limits, choice, snapshot(), Progress(), NOW, 7
    asked_for = planning_problem(*asked)
    cutoff = PlanSearch(asked_for).single_type.own.best_goal
    every = asked_for.site_space.builder.regions_of_providers(
        asked_for.rows, asked_for.single_type_sites
    )
    space = asked_for.space(asked_for.single_type_sites)
    quick = mix_lower_bound(asked_for, cutoff, thorough=False)
    assert quick <= min_mix_usd(space, every, cutoff) * (1.0 + 1e-6)
