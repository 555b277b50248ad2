"""SKILL.md and docs/export.md say what works: their commands, run by the real planner."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recommender.cli import main
from tests.recommender.cli.conftest import Result
from tests.recommender.cli.page_commands import ROOT, run_page

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `recommend` in a folder of its own, on a fixed day, among few machines."""
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
    monkeypatch.setenv("RECOMMEND_GPU", "A10G")  # a quick search
    monkeypatch.setenv("RECOMMEND_PROVIDERS", "aws")
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        code = main(words)
        return Result(code, *capsys.readouterr())

    return call


def test_every_command_for_agents_runs(run: Run, tmp_path: Path) -> None:
    found = run_page("SKILL.md", run, tmp_path)
    assert len(found) == 7
    for words, said in found:
        assert said.code == 0, (words, said.err)
    assert (tmp_path / "recommend.yaml").exists()
    assert (tmp_path / "run" / "train.sh").exists()
    assert "p5.48xlarge may not be rented." in found[3][1].out  # of A10Gs alone


def test_every_command_of_running_a_plan_runs(run: Run, tmp_path: Path) -> None:
    found = run_page("docs/export.md", run, tmp_path)
    assert len(found) == 3
    for words, said in found:
        assert said.code == 0, (words, said.err)
    assert (tmp_path / "run" / "train.yaml").exists()


def test_the_skill_has_a_name_and_says_when_it_is_of_use() -> None:
    head = (ROOT / "SKILL.md").read_text("utf-8").split("---")[1]
    assert "\nname: recommend\n" in head
    assert "Use when" in head
