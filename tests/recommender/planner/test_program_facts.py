"""The linear program of an answer: written whatever it contains, and in agreement with the plan."""

from pathlib import Path

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.pipeline import save_program
from recommender.planner.problem import planning_problem
from recommender.planner.search import PlanSearch
from tests.recommender.planning import HOUR, NOW
from tests.shipped import snapshot


def with_few_machines(hours: float) -> PlanSearch:
    """GPT-2 XL on demand on Azure, with 96 vCPU of each family."""
    families = sorted({q.quota_family for q in snapshot().quotas if q.provider == "azure"})
    quotas = tuple(QuotaLimit("azure", f, "any", "", "vcpu", 96.0) for f in families)
    choice = Choice(providers=("azure",), market="on_demand", quotas=quotas)
    limits = Limits(deadline_s=hours * HOUR)
    job = find_job("gpt2-xl")
    return PlanSearch(planning_problem(job, limits, choice, snapshot(), Progress(), NOW, 0))


@pytest.mark.parametrize("hours", [24.0, 2.0])
def test_a_program_with_mixes_under_quotas_is_written(tmp_path: Path, hours: float) -> None:
    search, path = with_few_machines(hours), tmp_path / "program.lp"
    program = search.single_type.program
    assert program is not None
    assert any(words.count(" + ") == 2 for words in program.configurations)
    save_program(search, path)
    text = path.read_text(encoding="utf-8")
    assert all(name in text for name in program.names)
    assert text.startswith("\\ These rows cannot be met together: deadline") == (hours == 2.0)
