"""Commands of SKILL.md, docs/export.md and docs/index.md, run by the real planner."""

from pathlib import Path

import pytest

from tests.recommender.cli.conftest import Run
from tests.recommender.cli.page_commands import ROOT, run_page


@pytest.fixture
def run(run_with_planner: Run, monkeypatch: pytest.MonkeyPatch, planned_once: None) -> Run:
    """Run `recommend` among few machines."""
    monkeypatch.setenv("RECOMMEND_GPU", "A10G")  # a quick search
    monkeypatch.setenv("RECOMMEND_PROVIDERS", "aws")
    return run_with_planner


def test_every_command_for_agents_runs(run: Run, tmp_path: Path) -> None:
    found = run_page("SKILL.md", run, tmp_path)
    assert len(found) == 7
    for words, said in found:
        assert said.code == 0, (words, said.err)
    assert (tmp_path / "recommend.yaml").exists()
    assert (tmp_path / "run" / "train.sh").exists()
    assert "p5.48xlarge may not be rented." in found[3][1].out  # of A10Gs alone


def test_every_command_of_running_a_plan_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOMMEND_GPU", "A100")  # A10Gs of AWS take longer than its deadline
    found = run_page("docs/export.md", run, tmp_path)
    assert len(found) == 3
    for words, said in found:
        assert said.code == 0, (words, said.err)
    assert (tmp_path / "run" / "train.yaml").exists()


def test_every_command_of_the_first_two_minutes_runs(run: Run, tmp_path: Path) -> None:
    found = run_page("docs/index.md", run, tmp_path)
    assert len(found) == 4
    for words, said in found:
        assert said.code in ((0, 3) if "--budget" in words else (0,)), (words, said.err)
    assert (tmp_path / "answer.html").exists()


def test_the_skill_has_a_name_and_says_when_it_is_of_use() -> None:
    head = (ROOT / "SKILL.md").read_text("utf-8").split("---")[1]
    assert "\nname: recommend\n" in head
    assert "Use when" in head
