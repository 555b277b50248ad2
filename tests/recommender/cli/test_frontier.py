"""`recommend frontier`: one curve as plot, table, CSV and JSON."""

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest

from recommender.cli import main, planner_inputs
from recommender.plan.answer import Answer
from recommender.plan.limits import Limits
from recommender.report.json_output import schema_text
from tests.recommender.planning import small

Call = tuple[int, str, str]
LIMIT = ("--deadline", "24h")


ANSWERS: dict[Limits, Answer] = {}


def planned(ready: planner_inputs.PlannerInputs) -> Answer:
    """Plan each question once."""
    assert ready.options.simulated_plans
    limits = ready.request.limits
    if limits not in ANSWERS:
        ANSWERS[limits] = RUN(ready)
    return ANSWERS[limits]


RUN = planner_inputs.run_planner


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run `recommend frontier` on the small catalog in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("RECOMMEND_NOW", "2026-09-01T00:00Z")
    monkeypatch.setattr("recommender.cli.planner_inputs.load_catalog", lambda given: small())
    monkeypatch.setattr("recommender.cli.planner_inputs.run_planner", planned)

    def run(*words: str) -> Call:
        code = main(("frontier", "resnet50-imagenet", *words))
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_forms_hold_the_same_plans(call):
    code, out, _ = call(*LIMIT, "-o", "json")
    reported = json.loads(out)
    jsonschema.validate(reported, json.loads(schema_text()))
    points = reported["frontier"]["points"]
    assert code == 0
    assert points
    rows = list(csv.DictReader(io.StringIO(call(*LIMIT, "-o", "csv")[1], newline="")))
    assert [float(row["mean_usd"]) for row in rows] == [
        p["cost"]["mean_of_all_runs"] for p in points
    ]
    assert [float(row["chance"]) for row in rows] == [p["chance"] for p in points]
    code, out, _ = call(*LIMIT)
    assert code == 0
    # Points less than 2 % apart are left out of the table, and it says so.
    first = [each["machines"][0] for each in points[:10]]
    assert any(f"{each['count']}× {each['instance_type']}" in out for each in first)


def test_the_plot_marks_the_frontier_others_and_the_limit(call):
    _, out, _ = call(*LIMIT)
    plot = [line.partition("│")[2] for line in out.splitlines() if "│" in line]
    assert len(plot) == 14
    assert sum(line.count("●") for line in plot) >= 2
    assert any("·" in line for line in plot)
    (column,) = {line.index("┊") for line in plot if "┊" in line}
    marked = [line.rindex("●") for line in plot if "●" in line]
    assert max(marked) <= column  # what takes longer than the deadline is no part of it


def test_figures_of_the_plot_are_under_their_ticks(call):
    lines = call(*LIMIT)[1].splitlines()
    (at,) = (i for i, line in enumerate(lines) if "└" in line)
    found = list(re.finditer(r"[\d.,]+", lines[at + 1]))
    assert len(found) >= 3
    assert all(lines[at][m.start() + len(m[0]) // 2] == "┬" for m in found)
    figures = [float(m[0].replace(",", "")) for m in found]
    assert figures == sorted(figures)


def test_each_plan_is_more_expensive_and_faster_than_the_one_before(call):
    points = json.loads(call("-o", "json")[1])["frontier"]["points"]
    costs = [p["cost"]["mean_of_all_runs"] for p in points]
    times = [p["time"]["median"] for p in points]
    assert costs == sorted(costs)
    assert times == sorted(times, reverse=True)


def test_where_no_plan_meets_the_limits_the_code_says_so(call):
    code, out, _ = call("--deadline", "10m")
    assert code == 3
    assert "No simulated plan meets the limits" in out


def test_a_picture_needs_a_name_that_says_its_form(call):
    code, _, err = call("--plot", "frontier.pdf")
    assert code == 2
    assert "--plot frontier.pdf: pictures end in .svg or .png" in err


def test_a_picture_is_drawn_or_what_is_missing_is_named(call, tmp_path: Path):
    code, _, err = call(*LIMIT, "--plot", "frontier.svg")
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        assert code == 2
        assert "pip install vl-convert-python" in err
    else:
        text = (tmp_path / "frontier.svg").read_text("utf-8")
        assert text.startswith("<svg")
        assert "cost, USD" in text


def test_the_table_lists_no_two_plans_that_are_one_choice_and_counts_the_others(call):
    """Two rows of one figure, 33 USD and 39 min, are no choice; programs get all points."""
    points = list(csv.DictReader(io.StringIO(call("-o", "csv")[1], newline="")))
    _, out, _ = call()
    listed = len(re.findall(r"^\d+× .* (?:spot|on-demand) ", out, re.MULTILINE))
    left_out = re.search(r"(\d+) more plans? less than 2 % cheaper or faster", out)
    assert listed + (int(left_out.group(1)) if left_out else 0) == len(points)
    assert left_out
    times = [float(row["median_s"]) for row in points]
    assert any(late * 0.98 < soon for late, soon in pairwise(times))


def test_without_a_limit_no_chance_and_no_mark_of_one_is_shown(call):
    _, out, _ = call()
    assert "chance" not in out
    assert "deadline" not in out
    assert "┊ deadline" in call(*LIMIT)[1]
