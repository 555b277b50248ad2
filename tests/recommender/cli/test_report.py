"""`--report FILE` writes the answer with its pictures, next to what is printed."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.cli import main
from recommender.report.html.page import MAX_BYTES
from tests.recommender.answers import ANSWER
from tests.recommender.cli.conftest import Planner, Run
from tests.recommender.report.html.reports import facts

PAGE = Path(__file__).parents[3] / "docs" / "report.md"


def test_the_command_of_the_documentation_writes_a_report_of_the_printed_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    call, *_ = re.findall(r"^recommend (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-21T12:00Z")
    assert main(shlex.split(call)) == 0
    out, err = capsys.readouterr()
    assert "finish within 24 h with 95 % chance" in out
    assert err == "wrote report.html; open it with a browser\n"
    text = (tmp_path / "report.html").read_text("utf-8")
    assert len(text.encode()) <= MAX_BYTES
    reported = facts(text, "answer")
    assert (reported["status"], reported["inputs"]["limits"]["deadline_s"]) == ("ok", 86400)
    assert reported["plans"][0]["machines"][0]["instance_type"] in out


def test_the_data_of_a_report_are_computed_only_if_it_is_requested(run: Run, planner: Planner):
    run("--deadline", "24h", "resnet50-imagenet")
    run("--deadline", "24h", "resnet50-imagenet", "--report", "r.html")
    assert [call["options"].report for call in planner.calls] == [False, True]


def test_a_report_takes_the_place_of_an_older_one(run: Run, planner: Planner, tmp_path: Path):
    (tmp_path / "r.html").write_text("old")
    planner.answer = replace(ANSWER, report=None)
    assert run("--deadline", "24h", "resnet50-imagenet", "--report", "r.html").code == 0
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")


def test_where_no_plan_meets_the_limits_the_report_says_so(run: Run, tmp_path: Path):
    result = run("--hourly", "1", "resnet50-imagenet", "--report", "r.html")
    assert result.code == 3
    assert "No plan meets the limit" in (tmp_path / "r.html").read_text("utf-8")


def test_a_file_that_cannot_be_written_is_named(run: Run):
    result = run("--deadline", "24h", "resnet50-imagenet", "--report", "no/such/r.html")
    assert result.code == 2
    assert "--report no/such/r.html: cannot be written (No such file or directory)" in result.err
