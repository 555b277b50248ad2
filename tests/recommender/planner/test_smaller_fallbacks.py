"""Fallbacks with smaller quotas, of plans that may lead."""

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import PlanBuilder, meets
from recommender.planner.problem import planning_problem
from recommender.planner.search import PlanSearch
from recommender.planner.selection import ranked_plans
from recommender.planner.smaller_fallbacks import with_cheapest_fallback, with_smaller_fallback
from recommender.planner.trio import AS_SENSIBLE
from tests.recommender.optimize.samples import sampled
from tests.recommender.planning import HOUR, NOW, ask
from tests.shipped import snapshot

DEADLINES = (("gpt2-xl", 24), ("llama3-70b-qlora", 24), ("llama3-70b-qlora", 48), ("sd-xl", 12))


@pytest.mark.parametrize("question", sampled(DEADLINES, DEADLINES[:2]))
def test_the_fallback_of_the_leading_plan_has_few_gpus(question: tuple[str, int]) -> None:
    """Of three machines with H100 it was sixteen with A100, 128 GPUs; of one 64."""
    job, hours = question
    answer = ask(snapshot(), find_job(job), max_machines=16, deadline_s=hours * HOUR)
    assert answer.trio is not None
    lead = answer.trio.sensible.plan
    assert lead.fallback is None or lead.fallback.gpus <= 2 * max(lead.gpus, 8)
    assert meets(lead, Limits(deadline_s=hours * HOUR))


def test_a_smaller_fallback_needs_less_quota_and_costs_little_more() -> None:
    limits, job = Limits(deadline_s=24 * HOUR, max_machines=16), find_job("llama3-70b-qlora")
    pipeline = Pipeline(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    search = pipeline.search
    found = [each for each in pipeline.ranked.plans if each.plan.fallback]
    changed = 0
    for each in found:
        most = each.cost_usd * (1.0 + AS_SENSIBLE)
        other = with_smaller_fallback(search.builder, each, most)
        assert other.plan.machines == each.plan.machines
        assert other.cost_usd <= most
        if other.candidate != each.candidate:
            changed += 1
            assert other.plan.fallback is not None
            assert each.plan.fallback is not None
            assert other.plan.fallback.gpus < each.plan.fallback.gpus
            assert meets(other.plan, search.problem.limits)
    assert changed


def test_the_best_plan_has_a_cheaper_fallback_that_the_search_does_not_try() -> None:
    """236 USD by the search, 233 with another fallback of the same machines."""
    limits, job = Limits(deadline_s=4.0 * HOUR, max_machines=16), find_job("gpt2-medium")
    pipeline = Pipeline(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 7))
    builder = pipeline.search.builder
    of_search = builder.build(pipeline.search.best.best_candidate())
    found = with_cheapest_fallback(builder, of_search)
    assert found.plan.machines == of_search.plan.machines
    assert found.cost_usd < 0.99 * of_search.cost_usd
    assert meets(found.plan, limits)
    assert pipeline.ranked.plans[0].cost_usd == found.cost_usd


@pytest.mark.parametrize("max_overhead", [None, 0.05])
def test_all_fallbacks_of_a_site_are_those_of_the_search_and_others(
    max_overhead: float | None,
) -> None:
    limits = Limits(deadline_s=48 * HOUR, max_overhead=max_overhead)
    asked = planning_problem(find_job("t5-3b"), limits, Choice(), snapshot(), Progress(), NOW, 7)
    builder = PlanBuilder(asked, asked.single_type_sites)
    of_search = builder.sites.sites[0].fallbacks.count
    every = builder.with_all_fallbacks(0)
    pools, counts = every.fallbacks[0], every.sites[0].fallbacks.count
    assert counts[: len(of_search)].tolist() == of_search.tolist()
    assert len(counts) > len(of_search)
    assert len(counts) == len({(pool.rows, n) for pool, n in zip(pools, counts, strict=True)})


def test_a_best_plan_with_a_fallback_that_the_search_did_not_try_is_not_proven() -> None:
    limits = Limits(deadline_s=4.0 * HOUR)
    asked = planning_problem(
        find_job("gpt2-medium"), limits, Choice(), snapshot(), Progress(), NOW, 7
    )
    found = ranked_plans(PlanSearch(asked), 1).plans[0]
    answer = Pipeline(asked).answer()
    best = answer.plans[answer.best - 1]
    gained = 1.0 - best.estimate.cost.mean / found.cost_usd
    assert gained > 0.005
    assert answer.proof.status == "gap"
    assert answer.proof.one_type_gap >= gained * (1.0 - 1e-6)
