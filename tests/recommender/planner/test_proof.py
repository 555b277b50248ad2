"""A proof says no more than the search knows."""

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.problem import planning_problem
from recommender.planner.proof import proof_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.selection import ranked_plans
from tests.recommender.planning import NOW, search_of_day
from tests.shipped import snapshot


@pytest.fixture(scope="module")
def search() -> PlanPool:
    return search_of_day(Choice(mix="no"))


def test_a_search_that_left_nothing_open_leaves_no_gap_of_one_type(search: PlanPool) -> None:
    assert search.best.gap() == 0.0
    proof = proof_of(search)
    assert proof.one_type_gap == 0.0
    assert proof.mixes in ("searched", "bounded")
    assert proof.status == ("gap" if proof.gap else "optimal")


def test_of_a_more_expensive_plan_than_the_one_found_the_gap_is_what_it_costs_more(
    search: PlanPool,
) -> None:
    found = search.builder.build(search.best.best)
    dearer = max(ranked_plans(search, 5).plans, key=lambda each: each.cost_usd)
    assert dearer.cost_usd > found.cost_usd
    plain, gap = proof_of(search), proof_of(search, dearer).one_type_gap
    assert plain.one_type_gap == 0.0
    assert gap == pytest.approx(1.0 - found.cost_usd / dearer.cost_usd)


def test_of_one_machine_no_mix_is_left_open() -> None:
    job, limits = find_job("resnet50-imagenet"), Limits(deadline_s=24 * 3600.0, max_machines=1)
    alone = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    proof = proof_of(alone)
    assert proof.gap == proof.one_type_gap
    assert proof.mixes == "searched"


def test_mixes_that_only_the_tested_bound_rules_out_are_not_called_searched() -> None:
    job, limits = find_job("resnet50-imagenet"), Limits(deadline_s=24 * 3600.0)
    choice = Choice(mix="yes")
    search = PlanPool(planning_problem(job, limits, choice, snapshot(), Progress(), NOW, 7))
    assert search.mixes.made
    assert search.best.gap() > 0.0  # the search alone leaves mixes open
    proof = proof_of(search)
    assert (proof.gap, proof.mixes, proof.mixes_tried) == (0.0, "bounded", 0)


@pytest.mark.parametrize(
    ("preset", "limits"),
    [
        ("llama3-8b-lora", Limits(budget_usd=70.0)),
        ("resnet50-imagenet", Limits(deadline_s=44 * 60.0)),
    ],
    ids=["budget", "deadline"],
)
def test_without_a_plan_nothing_is_optimal_while_a_mix_may_do(preset: str, limits: Limits) -> None:
    job = find_job(preset)
    search = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    assert not search.best.plans
    assert not search.mixes.proven_infeasible
    proof = proof_of(search)
    assert (proof.status, proof.gap, proof.mixes) == ("gap", 1.0, "in part")
    assert proof.one_type_gap == 0.0


def test_without_a_plan_a_finished_search_is_a_proof() -> None:
    job, limits = find_job("resnet50-imagenet"), Limits(deadline_s=60.0)
    search = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    assert search.mixes.proven_infeasible
    assert proof_of(search).gap == 0.0
