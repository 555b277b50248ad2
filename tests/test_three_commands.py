"""From `pip install` to a managed job in three commands, as docs/your-job.md shows it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.test_packaging import sdist, wheel

__all__ = ["sdist", "wheel"]  # fixtures
PAGE = (Path(__file__).parents[1] / "docs" / "your-job.md").read_text("utf-8")
LEFT_OUT = "…"


def transcript() -> list[tuple[list[str], list[str]]]:
    """The words of each command, and the lines that it prints."""
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    calls = [each.splitlines() for each in block.split("$ ")[1:]]
    return [(shlex.split(first), printed) for first, *printed in calls]


@pytest.fixture(scope="module")
def done(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[tuple[list[str], str]]]:
    """A folder, the commands that were run in it, and what they printed.

    Our wheel is installed from here and next to what it needs, so that no network is asked.
    """
    place, installed = tmp_path_factory.mktemp("place"), tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip"]
    local = ["--quiet", "--no-index", "--no-deps", "--no-compile", "--target", str(installed)]
    printed = []
    for words, _ in transcript():
        if words[0] == "pip":
            assert words == ["pip", "install", "."]
            call = [*pip, "install", *local, str(wheel)]
        else:
            call = [sys.executable, str(installed / "bin" / words[0]), *words[1:]]
        run = subprocess.run(
            call, cwd=place, capture_output=True, text=True, timeout=120,
            env={**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "80"},
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        printed.append((words, run.stdout + run.stderr))
    return place, printed


def test_three_commands_are_enough(done: tuple[Path, list[tuple[list[str], str]]]):
    _, printed = done
    assert [words[0] for words, _ in printed] == ["pip", "recommend", "recommend"]


def test_they_print_what_the_page_shows(done: tuple[Path, list[tuple[list[str], str]]]):
    for (_, shown), (_, printed) in zip(transcript(), done[1], strict=True):
        lines = [line for line in shown if line != LEFT_OUT]
        assert "\n".join(lines) in printed


def test_they_end_in_a_managed_job_of_this_fine_tuning(
    done: tuple[Path, list[tuple[list[str], str]]],
):
    job = yaml.safe_load((done[0] / "run" / "train.yaml").read_text("utf-8"))
    assert job["resources"]["ordered"]
    assert job["resources"]["job_recovery"]["strategy"] == "EAGER_NEXT_REGION"
    assert job["envs"]["GLOBAL_BATCH"] == "64"
    assert "torchrun" in job["run"]
    assert job["num_nodes"] >= 1
