"""Machines that the user names are planned, or refused with the number that forbids them."""

import pytest

from recommender.errors import UsageError
from recommender.inputs.units import Comparison, parse_comparison
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.job.preset_files import presets
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.current_setup import current_setup
from recommender.planner.problem import Problem, planning_problem
from tests.recommender.planning import NOW
from tests.shipped import snapshot


def problem(job: Job) -> Problem:
    """A question on the shipped snapshot."""
    return planning_problem(job, Limits(deadline_s=1e6), Choice(), snapshot(), Progress(), NOW, 7)


def refused(job: str, machines: str) -> str:
    """What is said where the machines cannot train the job."""
    with pytest.raises(UsageError) as found:
        current_setup(problem(find_job(job)), parse_comparison(machines))
    (said,) = found.value.problems
    assert said.startswith(f"--compare {machines.split()[0]}")
    return said


@pytest.mark.parametrize(
    ("job", "machines", "why", "instead"),
    [
        ("whisper-large", "1x g5.xlarge", "GiB per GPU, aws/g5.xlarge has", "of them can"),
        ("llama3-8b-sft", "1x a2-highgpu-1g spot", "gcp/a2-highgpu-1g has", "of them can"),
        ("llama3-8b-sft", "200x g5.xlarge", "share a batch of 128", "128 of them can"),
        ("resnet50-imagenet", "1x p2.xlarge", "it is not offered any more", "name machines"),
        ("resnet50-imagenet", "8x a100", "'a100' is a GPU", "such as p4d.24xlarge"),
        ("resnet50-imagenet", "1x g5.xlrge", "unknown instance type", "did you mean g5.xlarge"),
        ("resnet50-imagenet", "1x g5.xlarge spot mars-1", "no spot offer in mars-1", "ap-east-1"),
    ],
)
def test_machines_that_cannot_train_a_job_are_refused_with_why_and_what_instead(
    job: str, machines: str, why: str, instead: str
) -> None:
    said = refused(job, machines)
    assert why in said
    assert instead in said


@pytest.mark.parametrize("machines", ["1x g5.xlarge", "1x a2-highgpu-1g", "2x g4dn.xlarge"])
def test_every_job_is_planned_or_refused_and_so_many_as_are_named_instead_can_train_it(
    machines: str,
) -> None:
    wanted, planned = parse_comparison(machines), 0
    for name in presets():
        asked = problem(find_job(name))
        try:
            plan = current_setup(asked, wanted).plan
        except UsageError as error:
            (said,) = error.problems
            assert "cannot train this job: " in said
            number = said.rpartition("; ")[2].removesuffix(" of them can")
            if not number.isdigit():
                continue
            enough = Comparison(int(number), wanted.instance_type, "on_demand", "")
            plan = current_setup(asked, enough).plan
        planned += plan.estimate.step.step_s > 0
    assert planned > 5
