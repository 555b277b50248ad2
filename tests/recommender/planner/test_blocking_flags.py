"""For a job that no machine can train the answer names the flag that excludes them."""

import pytest

from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.plan.limits import Choice, GpuFilter, Limits, Progress
from recommender.planner.blocking_flags import blocking_flags, fits
from recommender.planner.problem import planning_problem
from tests.recommender.planning import NOW
from tests.shipped import snapshot

HERE = Choice(regions=("us-east-1",), instances=("g4dn.xlarge", "p3.16xlarge", "p4d.24xlarge"))


def blocking(job: str, machines: int, choice: Choice, **flags: str) -> tuple[str, ...]:
    """What is said of a job that does not fit."""
    asked, limits = find_job(job, flags=JobFlags(**flags)), Limits(max_machines=machines)
    problem = planning_problem(asked, limits, choice, snapshot(), Progress(), NOW, 7)
    assert not fits(problem)
    return blocking_flags(problem)


@pytest.mark.parametrize(
    ("job", "flags", "choice", "machines", "reason"),
    [
        ("resnet50-imagenet", {"sharding": "pipeline"}, HERE, 4,
         "--sharding pipeline needs a transformer, whose layers it splits; with --sharding auto"),
        ("llama3-70b-sft", {"sharding": "ddp"}, HERE, 16,
         "--sharding ddp does not fit; with --sharding auto some machines can"),
        ("llama3-8b-sft", {"sharding": "context"}, HERE, 4,
         "--sharding context shares sequences of 8,192 tokens and more; with --sharding auto"),
        ("llama3-70b-sft", {}, HERE, 2, "--max-machines 2 is too few; 4 are enough"),
        ("llama3-8b-lora", {"precision": "bf16"}, Choice(gpus=(GpuFilter("T4"),)), 4,
         "--precision bf16 excludes all machines; with --precision mixed some can"),
        ("llama3-8b-sft", {"seq_len": "131072"}, Choice(gpus=(GpuFilter("H100"),)), 16,
         "with --sharding context GPUs share them (code such as Megatron-LM"),
        ("llama3-70b-qlora", {}, Choice(gpus=(GpuFilter("T4", 1),)), 1,
         "--gpu T4:1 leaves no machine that can"),
    ],
)  # fmt: skip
def test_the_flag_that_keeps_a_job_from_fitting_is_named(
    job: str, flags: dict[str, str], choice: Choice, machines: int, reason: str
) -> None:
    first, *flags_named = blocking(job, machines, choice, **flags)
    assert "among those allowed can train this job" in first
    assert [each for each in flags_named if reason in each]


def test_shared_sequences_are_named_only_where_they_fit() -> None:
    one_gpu = Choice(gpus=(GpuFilter("T4", 1),))
    assert "context" not in " ".join(blocking("llama3-8b-sft", 2, one_gpu, seq_len="131072"))


def test_a_flag_that_blocks_nothing_is_not_named() -> None:
    said = blocking("llama3-70b-sft", 2, HERE)
    assert not [each for each in said if "--sharding" in each or "--precision" in each]
