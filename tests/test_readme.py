"""The README tells the truth: its commands, its output, its counts."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from recommender.job.jobfile import find_job, job_from_text
from recommender.job.preset_files import presets
from tests import regenerate

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
INSTALL, TEST = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)[0].splitlines()
FIRST_SCREEN = 12  # lines


@pytest.mark.parametrize("path", regenerate.PAGES, ids=lambda path: path.name)
def test_the_output_is_what_the_tool_prints(path: Path):
    if os.environ.get("RECOMMEND_UPDATE_GOLDEN"):
        path.write_text(regenerate.page(path), "utf-8")
    text = path.read_text("utf-8")
    assert regenerate.CALL.search(text)
    assert regenerate.page(path) == text, "run: python -P tests/regenerate.py"


def test_it_opens_with_its_title_and_two_shell_lines():
    assert TEXT.startswith("# recommend\n")
    assert f"```sh\n{INSTALL}\n{TEST}\n```" in "\n".join(TEXT.splitlines()[:FIRST_SCREEN])
    assert INSTALL.startswith("pip install . && recommend ")
    assert TEST == "pip install '.[test]' && pytest"


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_ci_runs_both_lines_of_the_readme_unchanged():
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    (reading,) = [line for line in script if line.startswith("mapfile ")]
    reported = subprocess.run(
        ["bash", "-c", f'{reading}\nprintf "%s\\n" "${{lines[@]}}"'],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert reported.stdout.splitlines() == [INSTALL, TEST]
    assert '  (cd .ci/copy && eval "${lines[0]}")' in script
    assert script[-1] == '(eval "${lines[1]}")'


def test_the_job_of_the_readme_is_a_job():
    (job,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert job_from_text(job).samples > 0


def test_the_number_of_presets():
    (said,) = re.findall(r"one of (\d+) that come", TEXT)
    assert int(said) == len(presets())


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_a_job(name: str):
    assert find_job(name).name
