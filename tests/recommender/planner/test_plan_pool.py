"""The pool of a problem answers the same problem under other limits, and keeps what it found."""

import pytest

from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.plan_builder import is_on_demand_only, meets
from recommender.planner.plan_pool import Only, PlanPool
from recommender.planner.problem import PRINTED, planning_problem
from recommender.planner.ranking import best_unconstrained, ranked_plans
from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.planning import DAY, HOUR, NOW, ask, job, search_of_day, small


@pytest.fixture
def pool() -> PlanPool:
    return search_of_day()


def test_a_candidate_is_built_once_and_carries_what_it_was_simulated_with(pool: PlanPool) -> None:
    first = ranked_plans(pool, 1).plans[0]
    assert first == pool.builder.build(first.candidate)
    paths = simulate_paths(first.inputs, DAY.deadline_s, PRINTED, pool.problem.seed)
    assert paths.expected_usd.mean() == pytest.approx(first.cost_usd)
    assert meets(first.plan, DAY)


def test_a_replanned_limit_gives_the_plan_of_a_direct_question(pool: PlanPool) -> None:
    replanned = pool.replan(Limits(deadline_s=14 * HOUR, max_machines=6))
    asked = ask(small(), deadline_s=14 * HOUR)
    assert replanned is not None
    assert replanned.cost_usd == pytest.approx(asked.plans[0].estimate.cost.mean, rel=0.05)


@pytest.mark.parametrize("aim", ["time", "cost"])
def test_the_best_plan_without_limits_is_no_worse_than_any_under_them(
    pool: PlanPool, aim: str
) -> None:
    best = best_unconstrained(pool, "time" if aim == "time" else "cost")
    assert best is not None
    for each in ranked_plans(pool, 5).plans:
        if aim == "time":
            assert best.time_s <= each.time_s * 1.01
        else:
            assert best.cost_usd <= each.cost_usd * 1.01


def test_what_was_selected_once_is_not_selected_again(pool: PlanPool) -> None:
    tighter = Limits(deadline_s=12 * HOUR, max_machines=6)
    known = pool.select(tighter, "spot")
    assert pool.select(tighter, "spot") is known
    assert pool.select(DAY) is pool.best


@pytest.mark.parametrize("only", ["on_demand", "spot", "one GPU", "big"])
def test_entries_of_one_kind_can_be_selected_alone(pool: PlanPool, only: Only) -> None:
    found = pool.select(DAY, only)
    for candidate in found.plans[:4]:
        plan = pool.builder.build(candidate).plan
        if only in ("on_demand", "spot"):
            assert is_on_demand_only(plan) == (only == "on_demand")
        else:
            assert all((m.gpus == 1) == (only == "one GPU") for m in plan.machines)
    assert found.plans or only == "big"


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_the_best_of_a_provider_is_of_it(pool: PlanPool, provider: str) -> None:
    for candidate in pool.of_provider(provider).plans[:4]:
        assert pool.sites.sites[candidate.site].provider == provider


def test_where_no_plan_meets_the_limits_the_fastest_is_found(pool: PlanPool) -> None:
    hopeless = Limits(deadline_s=60.0, max_machines=6)
    assert not pool.select(hopeless).plans
    assert pool.select_or_relaxed(hopeless).plans


def test_an_answer_does_not_depend_on_earlier_questions() -> None:
    problem = planning_problem(job(), DAY, Choice(), small(), Progress(), NOW, 7)
    other = Limits(budget_usd=1e6, max_machines=6)
    first = PlanPool(problem).select(other)
    asked = PlanPool(problem)
    assert asked.best.plans
    assert asked.select(other).best == first.best


@pytest.mark.parametrize("most", [1, 2, 4])
def test_the_most_machines_and_the_price_of_an_hour_bind_every_plan_of_an_answer(most: int) -> None:
    """Also those of baselines, ties, sensitivity and relaxed limits, each a selection."""
    hourly = 3.0 * most
    answer = ask(small(), deadline_s=60 * HOUR, max_machines=most, hourly_usd=hourly)
    plans = [*answer.plans, *(p for p in answer.baselines if p.labels != ("current setup",))]
    assert answer.plans
    for plan in answer.plans:
        assert plan.max_usd_per_hour <= hourly + 1e-6
    for plan in plans:
        assert sum(m.count for m in plan.machines) <= most
    for step in answer.sensitivity:
        if step.plan is not None and "--max-machines" not in step.change:
            assert sum(m.count for m in step.plan.machines) <= most
