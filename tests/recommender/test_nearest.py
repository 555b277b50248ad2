"""An answer without plans names what is in the way, in words that can be typed."""

import re
from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.jobfile import JobFlags, find_job
from recommender.limits import Choice, GpuWish, Limits, Progress
from recommender.plan import Infeasible
from tests.recommender.planning import HOUR, NOW, recommend, snapshot

HERE = Choice(regions=("us-east-1",), instances=("g4dn.xlarge", "p3.16xlarge", "p4d.24xlarge"))


def why(
    job: str, limits: Limits, choice: Choice = HERE, gone: Progress | None = None, **flags: Any
) -> Infeasible:
    """Why a job has no plan."""
    asked = find_job(job, flags=JobFlags(**flags))
    progress = gone or Progress()
    answer = recommend(asked, limits, choice, catalog=snapshot(), progress=progress, now=NOW)
    assert answer.infeasible is not None
    return answer.infeasible


@pytest.mark.parametrize(
    ("job", "flags", "choice", "machines", "said"),
    [
        ("resnet50-imagenet", {"sharding": "pipeline"}, HERE, 4,
         "--sharding pipeline needs a transformer, whose layers it cuts; --sharding auto leaves"),
        ("llama3-70b-sft", {"sharding": "ddp"}, HERE, 16,
         "--sharding ddp does not fit; --sharding auto leaves machines that can"),
        ("llama3-70b-sft", {}, HERE, 2, "--max-machines 2 is too few; 8 are enough"),
        ("llama3-8b-lora", {"precision": "bf16"}, Choice(gpus=(GpuWish("T4"),)), 4,
         "--precision bf16 is in the way; --precision mixed leaves machines that can"),
        ("llama3-70b-qlora", {}, Choice(gpus=(GpuWish("T4", 1),)), 1,
         "--gpu T4:1 leaves no machine that can"),
    ],
)  # fmt: skip
def test_the_flag_that_keeps_a_job_from_fitting_is_named(
    job: str, flags: dict[str, str], choice: Choice, machines: int, said: str
) -> None:
    binding = why(job, Limits(max_machines=machines), choice, **flags).binding
    assert "among those allowed can train this job" in binding[0]
    assert [each for each in binding[1:] if said in each]


def test_a_budget_is_told_as_well_where_the_fastest_plans_are_far_too_dear() -> None:
    found = why("resnet50-imagenet", Limits(budget_usd=5.0), Choice())
    assert found.nearest[0].change.startswith("--budget ")
    assert found.nearest[0].plan is not None
    assert "no single limit" not in " ".join(found.binding)


def test_a_flag_that_is_not_in_the_way_is_not_named() -> None:
    binding = why("llama3-70b-sft", Limits(max_machines=2), HERE).binding
    assert not [each for each in binding if "--sharding" in each or "--precision" in each]


@pytest.mark.parametrize("spent", [0.0, 4.99, 300.0])
def test_a_budget_that_is_too_small_is_told_what_budget_would_do(spent: float) -> None:
    limits = Limits(budget_usd=spent + 0.01, max_machines=4)
    found = why("resnet50-imagenet", limits, gone=Progress(spent_usd=spent))
    step = found.nearest[0]
    budget = float(re.fullmatch(r"--budget ([0-9.e+]+)", step.change).group(1))  # type: ignore[union-attr]
    job = find_job("resnet50-imagenet")
    again = recommend(
        job,
        Limits(budget_usd=budget, max_machines=4, objective="cost"),
        HERE,
        catalog=snapshot(),
        progress=Progress(spent_usd=spent),
        now=NOW,
    )
    assert again.status == "ok"
    assert budget - spent < 3 * again.plans[0].estimate.cost.mean
    if spent:
        assert found.binding[0] == f"0.01 USD are left of the budget after --spent {spent:g}"


def test_a_deadline_is_suggested_for_the_whole_job_not_for_what_is_left() -> None:
    gone = Progress(elapsed_s=20 * HOUR)
    found = why("resnet50-imagenet", Limits(deadline_s=20.1 * HOUR, max_machines=4), gone=gone)
    assert found.binding[0] == "6m are left of the deadline after --elapsed 20h"
    (step,) = (each for each in found.nearest if each.change.startswith("--deadline"))
    hours = re.match(r"--deadline (?:(\d+)d)?(?:(\d+)h)?", step.change)
    assert hours is not None
    assert 24 * int(hours[1] or 0) + int(hours[2] or 0) >= 20


def test_neighbouring_limits_are_those_of_the_whole_job_too() -> None:
    gone = Progress(elapsed_s=100 * HOUR, spent_usd=1000.0)
    answer = recommend(
        find_job("resnet50-imagenet"),
        Limits(deadline_s=148 * HOUR, budget_usd=1500.0, max_machines=4),
        HERE,
        catalog=snapshot(),
        progress=gone,
        now=NOW,
    )
    changes = [step.change for step in answer.steps]
    assert {"--deadline 5d9h", "--deadline 7d4h"} & set(changes)  # 100 h + 48 h x 0.6 or 1.5
    assert {"--budget 1300", "--budget 1750"} & set(changes)


def test_what_is_used_up_is_refused_before() -> None:
    with pytest.raises(UsageError, match="--spent 20 leaves nothing of --budget 20"):
        why("resnet50-imagenet", Limits(budget_usd=20.0), gone=Progress(spent_usd=20.0))
