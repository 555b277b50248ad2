"""Forms, colours, widths and exit codes."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.main import get_command

from recommender.cli.app import app
from recommender.cli.screen import screen, write_text
from recommender.report.json_output import schema_text
from tests.recommender.cli.conftest import Planner, Run

JOB = "resnet50-imagenet"


def test_an_answer_is_exit_0_and_a_table(run: Run) -> None:
    result = run("--deadline", "24h", JOB)
    assert (result.code, result.err) == (0, "")
    assert "rent  1× a3-highgpu-8g spot" in result.out


def test_no_plan_is_an_answer_on_stdout_with_exit_3(run: Run) -> None:
    result = run("--hourly", "1", JOB)
    assert (result.code, result.err) == (3, "")
    assert "No plan meets the limit with 95 % chance." in result.out.splitlines()
    made = run("--hourly", "1", JOB, "--json")
    assert made.code == 3
    assert json.loads(made.out)["status"] == "infeasible"


def test_json_validates_and_repeats_byte_for_byte(run: Run) -> None:
    first, second = (run(JOB, "--deadline", "24h", "-o", "json") for _ in range(2))
    assert first.out == second.out
    jsonschema.validate(json.loads(first.out), json.loads(schema_text()))


def test_csv_and_markdown(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run(JOB, "-o", "csv").out)))
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert run(JOB, "-o", "markdown").out.startswith("**resnet50-imagenet")


def test_explain_prints_every_term(run: Run) -> None:
    out = run(JOB, "--explain", "1").out
    assert "Memory of one GPU" in out
    assert run(JOB, "--explain", "9").code == 2


@pytest.mark.parametrize(
    ("words", "env", "coloured"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], env: dict[str, str], coloured: bool
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run(JOB, *words).out) is coloured


def test_a_dumb_terminal_gets_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert screen("auto", Terminal()).colour
    monkeypatch.setenv("TERM", "dumb")
    assert not screen("auto", Terminal()).colour


def test_colour_changes_nothing_but_colour(run: Run) -> None:
    """But for the frame around the plans, which only a terminal shows."""
    painted = re.sub(r"\x1b\[[0-9;]*m", "", run(JOB, "--color", "always").out)
    unframed = re.sub(r"[╭╰]─+[╮╯]\n|^│ |│$", "", painted, flags=re.MULTILINE)
    assert re.sub(r" *(?=\n)", "", unframed) == run(JOB).out


@pytest.mark.parametrize(("columns", "widest"), [("", 80), ("60", 60), ("140", 140), ("x", 80)])
def test_width_without_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str, widest: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(JOB).out.splitlines()
    assert widest - 5 <= max(map(len, lines)) <= widest


def test_a_stream_of_few_characters_gets_simpler_ones() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_text("1× a3 · ≥ 8 … é\n", stream)
    stream.flush()
    assert raw.getvalue() == b"1x a3 - >= 8 ... ?\n"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "RECOMMEND_NOW": "2026-11-20T12:00Z",
        "R": f"{sys.executable} -m recommender",
    }
    return subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("words", ["jobs list", "catalog show --top 9999"])
def test_a_reader_that_goes_away_is_no_error(words: str) -> None:
    done = shell(f"set -o pipefail; $R {words} | {{ exec <&-; sleep 1; }}")
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


def test_a_closed_or_full_standard_output() -> None:
    closed = shell("$R jobs list >&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    full = shell("$R jobs list >/dev/full")
    assert full.returncode == 1
    assert full.stderr == "error: standard output: No space left on device\n"


def test_landing_page(run: Run) -> None:
    result = run()
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) <= 14
    assert all(len(line) <= 80 for line in result.out.splitlines())
    assert "recommend --deadline 24h llama3-8b-pretrain    cheapest plans in time" in result.out


def test_version(run: Run) -> None:
    lines = run("--version").out.splitlines()
    assert lines[0].startswith("recommend ")
    assert "AWS 20" in lines[1]
    assert "GPU clouds 20" in " ".join(" ".join(lines).split())
    assert lines[-1].split() == ["schema", "recommend.plan/v1"]


def test_schema_is_printed_as_shipped(run: Run) -> None:
    assert run("schema").out == schema_text()


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("plan", "-h"), ("simulate", "--help")])
def test_help_fits_one_screen_and_names_where_all_of_it_is(
    run: Run, words: tuple[str, ...]
) -> None:
    out = run(*words).out
    assert 20 <= len(out.splitlines()) <= 40
    assert f"{' '.join(('recommend', *words[:-1]))} --help-all)" in out


@pytest.mark.parametrize("command", [(), ("plan",), ("simulate",)])
def test_help_all_shows_every_flag(run: Run, command: tuple[str, ...]) -> None:
    found: Any = get_command(app).get_command(None, command[0] if command else "plan")  # type: ignore[attr-defined]
    out = run(*command, "--help-all").out
    flags = [name for param in found.params for name in param.opts if name.startswith("-")]
    assert len(flags) > 50
    assert [flag for flag in flags if not re.search(rf"{flag}\b", out)] == []


def test_an_interrupted_call_is_exit_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["recommender.planner.recommend"], "recommend", interrupt)
    result = run(JOB)
    assert (result.code, result.out, result.err) == (130, "", "")


def test_with_json_in_the_settings_file_errors_are_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "recommend.toml").write_text('output = "json"\n')
    result = run("--deadline", "24hh", "resnet50-imagenet")
    assert (result.code, result.out) == (2, "")
    assert json.loads(result.err)["code"] == "USAGE"


def test_all_assumptions_reach_markdown_however_many(run: Run, planner: Planner) -> None:
    many = tuple(f"assumption {number} of a long list of them" for number in range(20))
    planner.answer = replace(planner.answer, assumptions=many)
    out = run("--deadline", "24h", JOB, "-o", "markdown", "--table").out
    assert all(each in out for each in many)
