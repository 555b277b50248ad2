"""Of what the searches find, what a reader may choose between is ranked."""

from itertools import combinations

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.plan_builder import is_on_demand_only
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.ranking import ranked_plans
from tests.recommender.planning import DAY, NOW, job, small

NO_LIMITS = Limits(max_machines=6)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small()


def search_of(catalog: Catalog, limits: Limits) -> PlanPool:
    return PlanPool(planning_problem(job(), limits, Choice(), catalog, Progress(), NOW, 7))


def test_a_table_holds_the_best_of_each_provider_and_one_without_spot(catalog: Catalog) -> None:
    found = ranked_plans(search_of(catalog, DAY), 12)
    providers = {each.plan.machines[0].provider for each in found.plans}
    assert providers == {"aws", "gcp"}
    assert any(is_on_demand_only(each.plan) for each in found.plans)
    costs = [each.cost_usd for each in found.plans]
    assert costs[0] == min(costs)


def test_no_plan_of_a_curve_is_beaten_in_cost_and_time_by_another(catalog: Catalog) -> None:
    plans = ranked_plans(search_of(catalog, NO_LIMITS), 8).plans
    assert len(plans) > 1
    for cheaper, dearer in combinations(plans, 2):  # in the order of cost
        assert cheaper.cost_usd < dearer.cost_usd
        assert cheaper.time_s > dearer.time_s


def test_where_nothing_meets_the_limits_nothing_is_ranked(catalog: Catalog) -> None:
    hopeless = Limits(deadline_s=60.0, max_machines=2)
    assert ranked_plans(search_of(catalog, hopeless), 5).plans == ()
