"""The commands of docs/your-job.md, run in their order in one folder."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest

from recommender.job.job import Job
from recommender.job.jobfile import job_from_text
from recommender.networks.known_models import _of_libraries, _same_shape, known_models
from recommender.plan.limits import Choice
from tests.recommender.cli.conftest import Planner, Run
from tests.recommender.planning import ask, small

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "your-job.md").read_text("utf-8")
CONFIGS = Path(__file__).parents[1] / "inputs" / "training_configs"


def commands() -> list[list[str]]:
    """The words of each command that can be run without the network."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def test_every_command_of_the_page_runs(run: Run, planner: Planner, tmp_path: Path) -> None:
    copy(CONFIGS / "axolotl_qlora.yaml", tmp_path / "axolotl.yaml")
    assert len(commands()) >= 5
    for words in commands():
        assert run(*words).code == 0, words
    asked = [call["job"] for call in planner.calls]
    packed = 4 * round(50e3 * 600 / 4096) * 4096  # 4 passes over whole sequences
    assert [job.samples * job.tokens_per_sample for job in asked[:2]] == [90e6, packed]


def test_a_detector_is_planned_by_its_published_flop() -> None:
    job = own(0)
    assert job.flop_per_sample == pytest.approx(6 * 134.38e9, rel=1e-3)
    assert job.parameters == pytest.approx(41_755_286, rel=2e-3)


def own(at: int) -> Job:
    """A job of the page's own FLOP, as it stands there."""
    return job_from_text(re.findall(r"```yaml\n(schema: .*?)```", PAGE, re.DOTALL)[at])


def test_a_graph_network_is_planned_by_the_flop_of_its_matrices() -> None:
    job = own(1)
    assert job.sample_unit == "sample"
    vertices, neighbours = (1 + 15 + 150, 1 + 15, 1), 1 + 15 + 150 + 750
    widths = ((100, 256), (256, 256), (256, 47))
    forward = sum(2 * 2 * n * a * b for n, (a, b) in zip(vertices, widths, strict=True))
    assert job.flop_per_sample == pytest.approx(3 * forward, rel=2e-3)
    assert job.parameters == pytest.approx(sum(2 * a * b for a, b in widths), rel=2e-3)
    assert job.data.bytes_per_sample == pytest.approx(4 * 100 * neighbours, rel=2e-3)


def test_jobs_of_their_own_flop_are_planned_to_the_end() -> None:
    """A detector's arithmetic takes as much longer as it has more FLOP than the same network."""
    detector = own(0)
    twice = replace(detector, flop_per_sample=2 * detector.flop_per_sample)
    steps = []
    for job in (detector, twice, own(1)):
        answer = ask(small(), job, Choice(providers=("aws",)), deadline_s=30 * 24 * 3600.0)
        plan = answer.plans[answer.best - 1]
        steps.append({(m.count, m.instance_type): p.estimate.step
                      for p in answer.plans for m in p.machines})  # fmt: skip
        assert plan.estimate.chance >= 0.95
        assert plan.estimate.time.p50 >= plan.estimate.step.step_s * job.steps * 0.5
    # Eight GPUs get so little of a step each that launches of kernels count.
    shared = {each for each in steps[0].keys() & steps[1].keys() if each[1] == "g4dn.xlarge"}
    assert shared
    for each in shared:
        assert steps[1][each].compute_s / steps[0][each].compute_s == pytest.approx(2, rel=0.05)
    assert all(step.compute_s < 1 for step in steps[2].values())  # 65 GFLOP a step


def test_the_page_says_how_many_models_are_known() -> None:
    known, shapes, of_timm = map(len, (known_models(), _same_shape(), _of_libraries()))
    said = f"({known} of them, {shapes} of the same shape under other names, {of_timm:,} of timm, "
    assert f"{said}and names in which one of them stands)" in PAGE


def test_a_kept_data_set_is_warned_of_as_the_page_says(run: Run, planner: Planner) -> None:
    run("llama3-8b-lora", "--epochs", "3")
    (remark,) = planner.calls[0]["job"].remarks
    assert "939,344 examples × 3 epochs × 720 tokens = 2.03B tokens" in remark


@pytest.mark.parametrize(
    ("deadline", "elapsed", "hours"),
    [("2026-11-21T08:00Z", (), 20), ("tomorrow 08:00 UTC", ("--elapsed", "9h"), 29)],
)
def test_a_moment_is_the_end_however_long_the_job_has_run(
    run: Run, planner: Planner, deadline: str, elapsed: tuple[str, ...], hours: int
) -> None:
    found = run("resnet50-imagenet", "--deadline", deadline, *elapsed, "--table")
    assert "by Sat 2026-11-21 08:00 UTC" in " ".join(found.out.split())
    assert planner.calls[0]["limits"].deadline_s == hours * 3600
