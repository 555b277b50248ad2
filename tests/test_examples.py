"""The example scripts and the examples of the documentation run, and are short."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAID = {
    "hello.py": r"(?m)^1  \dx .*USD .* h .*%$",
    "own_job.py": r"^my-model: .* FLOP; derived: hidden, ",
    "train_with_checkpoints.py": r"^1000 steps, weights 1\.0000$",
    "deadlines.py": r"(?m)^ 48 h  on_demand .* USD  ",
}
LINES = 40


def python(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        env={**os.environ, "RECOMMEND_NOW": "2026-11-21T12:00Z"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path: Path):
    assert len(path.read_text("utf-8").splitlines()) < LINES
    assert re.search(SAID[path.name], python(str(path)))


def test_the_page_for_python_users_runs():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    short, full, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(full.splitlines()) <= 30
    assert "instance_type=" in python("-c", short)
    assert "chance" in python("-c", full)


def test_the_page_for_python_users_names_every_public_name():
    import recommender

    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    assert {name for name in recommender.__all__ if f"`{name}" not in page} == set()


@pytest.mark.slow
def test_the_notebook_goes_from_a_job_to_its_frontier():
    nbclient = pytest.importorskip("nbclient", reason="the extra notebook is not installed")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(ROOT / "examples" / "frontier.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert [cell for cell in notebook.cells if cell.get("outputs")] == []  # none is kept
    ends = notebook.cells + [nbformat.v4.new_code_cell(
        "assert frontier.usd.is_monotonic_increasing and frontier.hours.is_monotonic_decreasing\n"
        "assert len(frontier) > 2 and len(simulated) > len(frontier)\n"
        "assert deadlines.usd.is_monotonic_decreasing and (deadlines.chance >= 0.95).all()"
    )]  # fmt: skip
    notebook.cells = ends
    nbclient.NotebookClient(notebook, timeout=300).execute()  # raises what a cell raises
    shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert any("image/png" in out.get("data", {}) for out in shown)
