"""The linear program of an answer: written whatever it contains, and in agreement with the plan."""

from pathlib import Path

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.optimize.candidate import Candidate
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.pipeline import save_program
from recommender.planner.problem import planning_problem
from recommender.planner.reported_program import ReportedProgram, reported_program
from recommender.planner.plan_pool import PlanPool
from recommender.planner.selection import ranked_plans
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
def test_a_program_with_mixes_under_quotas_is_written(tmp_path: Path, hours: float) -> None:
    search, path = with_few_machines(hours), tmp_path / "program.lp"
    program = search.single_type.program
    assert program is not None
    assert any(len(program.clusters[c].entries) == 3 for c in program.columns.cluster)
    save_program(ReportedProgram(program), path)
    text = path.read_text(encoding="utf-8")
    assert all(name in text for name in program.names)
    assert text.startswith("\\ These rows cannot be met together: deadline") == (hours == 2.0)


def test_what_the_reported_program_uses_is_simulated_and_costs_no_more_than_the_plan() -> None:
    limits = Limits(deadline_s=199.0 * 60.0)
    job = find_job("llama3-8b-sft")
    search = PlanPool(planning_problem(job, limits, Choice(), snapshot(), Progress(), NOW, 0))
    best = ranked_plans(search, 1).plans[0]
    program = search.single_type.program
    assert program is not None
    found = reported_program(program, search.builder, best)
    columns, share = found.program.columns, found.program.share
    assert columns.usd[found.row] == pytest.approx(best.cost_usd)
    assert columns.time_quantile_s[found.row] <= limits.deadline_s
    assert found.program.solution.objective <= best.cost_usd * (1.0 + 1e-9)
    cache = search.problem.space(search.sites).on_printed_paths().cache
    for row in np.flatnonzero(share > 1e-6):
        cluster = found.program.clusters[columns.cluster[row]]
        path, fallback = int(columns.checkpoint_path[row]), int(columns.fallback[row])
        candidate = Candidate(cluster.site, cluster.entries, cluster.counts, path, fallback)
        inputs = search.builder.details(candidate).inputs
        usd = cache.outcomes(inputs, limits.deadline_s).expected_usd[0]
        assert columns.usd[row] == pytest.approx(usd)
    assert found.plan_share > 0.5
