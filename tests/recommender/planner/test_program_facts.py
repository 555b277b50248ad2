"""The linear program of an answer: written whatever it contains, and in agreement with the plan."""

from pathlib import Path

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.pipeline import save_program
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.program_facts import reported_program
from recommender.planner.ranking import ranked_plans
from tests.recommender.planning import HOUR, NOW
from tests.shipped import snapshot


def with_few_machines(hours: float) -> PlanPool:
    """GPT-2 XL on demand on Azure, with 96 vCPU of each family."""
    families = sorted({q.quota_family for q in snapshot().quotas if q.provider == "azure"})
    quotas = tuple(QuotaLimit("azure", f, "any", "", "vcpu", 96.0) for f in families)
    choice = Choice(providers=("azure",), market="on_demand", quotas=quotas)
    limits = Limits(deadline_s=hours * HOUR)
    job = find_job("gpt2-xl")
    return PlanPool(planning_problem(job, limits, choice, snapshot(), Progress(), NOW, 0))


@pytest.mark.parametrize("hours", [24.0, 2.0])
def test_a_program_under_quotas_is_written(tmp_path: Path, hours: float) -> None:
    pool, path = with_few_machines(hours), tmp_path / "program.lp"
    reported = reported_program(pool, ranked_plans(pool, 1).plans)
    assert reported is not None
    save_program(reported, path)
    text = path.read_text(encoding="utf-8")
    assert all(name in text for name in reported.program.names)
    rows = [row for row in reported.program.model.rows if row.startswith("quota_")]
    assert rows
    for row in rows:
        terms, most = reported.program.model.rows[row].terms, reported.program.model.rows[row].limit
        assert max(terms.values()) <= most * (1.0 + 1e-9)  # else it is no column
    assert text.startswith("\\ These rows cannot be met together: deadline") == (hours == 2.0)


@pytest.mark.parametrize("minutes", [199.0, 210.0])  # the first near the least deadline there is
def test_what_the_reported_program_uses_is_simulated_and_costs_no_more_than_the_plan(
    minutes: float,
) -> None:
    limits = Limits(deadline_s=minutes * 60.0)
    job = find_job("llama3-8b-sft")
    pool = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 0))
    found = reported_program(pool, ranked_plans(pool, 1).plans)
    assert found is not None
    assert found.row >= 0
    columns, share = found.program.columns, found.program.share
    assert share.sum() == pytest.approx(1.0)
    assert found.program.solution.objective <= columns.usd[found.row] * (1.0 + 1e-9)
    assert found.program.solution.status == "optimal"
    for row in np.flatnonzero(share > 1e-6):
        inputs = pool.builder.details(columns.plans[row]).inputs
        of_answer = row == found.row
        cache = pool.problem.printed_cache if of_answer else pool.problem.outcome_cache
        usd = cache.outcomes(inputs, limits.deadline_s).expected_usd[0]
        assert columns.usd[row] == pytest.approx(usd, rel=0.02)  # another policy of its fallback
    assert 0.0 <= found.saving < 1.0
    assert sum(found.work.values()) == pytest.approx(1.0)
    assert sum(found.plan_work.values()) == pytest.approx(1.0)
