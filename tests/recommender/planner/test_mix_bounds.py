"""What mixes could gain is bounded before they are searched: the best regions first."""

from pathlib import Path

import pytest

from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.mix_bounds import mix_lower_bound, mix_regions
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.search import PlanSearch
from tests.recommender.planning import HOUR, NOW, job, written

DAY = Limits(deadline_s=24 * HOUR, max_machines=6)


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    catalog = written(Path(tmp_path_factory.mktemp("catalog")))
    return planning_problem(job(), DAY, Choice(mix="yes"), catalog, Progress(), NOW, 7)


def test_of_many_regions_those_are_mixed_first_whose_bound_is_best(problem: Problem) -> None:
    inf = float("inf")
    everywhere, rest = mix_regions(problem, inf, None)
    regions = [site.region for site in everywhere.sites]
    assert len(regions) > 1
    assert rest == inf
    one, rest = mix_regions(problem, inf, None, pairs=1)
    assert [site.region for site in one.sites] == [
        site.region for site in mix_regions(problem, inf, 1)[0].sites
    ]
    assert rest == mix_regions(problem, inf, 1)[1] < inf
    assert len(mix_regions(problem, inf, None, pairs=10**9)[0].sites) == len(regions)


@pytest.mark.parametrize("thorough", [False, True])
def test_no_mix_that_is_found_costs_less_than_the_bound_of_all(
    problem: Problem, thorough: bool
) -> None:
    bound = mix_lower_bound(problem, float("inf"), thorough)
    found = PlanSearch(problem).best.incumbents.values()
    assert 0.0 < bound <= min(candidate.goal_value for candidate in found)
