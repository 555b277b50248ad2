"""JSON, CSV, Markdown and the launch line hold for hostile and unknown values."""

import csv
import io
import json
import math
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from recommender.cli.banner import folded
from recommender.export.start import usual_target
from recommender.export.targets import export_files
from recommender.report import (
    answer_table,
    cells,
    explain,
    json_output,
)
from recommender.report import formatting as fmt
from recommender.report.answer_page import Shown, answer_page
from recommender.report.formats import written
from recommender.report.html.short_table import short_table
from recommender.report.launch import launch_line, run_of, write_sentence
from recommender.report.layout import drawn
from recommender.report.short_answer import ShortPlan
from recommender.report.short_forms import short_blocks, short_form, short_text
from tests.recommender.answers import (
    ANSWER,
    AWS_H100,
    AZURE,
    GCP,
    HURT,
    INFEASIBLE,
    ON_DEMAND,
    QUESTION,
    TWO_MACHINES,
    machines,
)
from tests.recommender.report.answer_schema import build

HOSTILE = "=cmd|'/c calc'!A1\x1b[31m[link=http://x]; rm -rf ~ `id` $(id) |\n# <b>"
SCHEMAS = Path(__file__).parents[3] / "recommender" / "report" / "schema"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(json_output.schema_text()))


def hostile_answer() -> object:
    bad = machines(HOSTILE, HOSTILE, "aws:us-east-1", provider="aws", region=HOSTILE)
    plan = replace(AWS_H100, machines=(bad,), sites=(), labels=(HOSTILE,), notes=(HOSTILE,))
    return replace(ANSWER, plans=(plan,), assumptions=(HOSTILE,), warnings=(HOSTILE,))


def test_the_shipped_schema_is_that_of_the_types() -> None:
    built = build()
    if os.environ.get("RECOMMEND_UPDATE_GOLDEN"):
        (SCHEMAS / json_output.SCHEMA_FILE).write_text(built, encoding="utf-8")
    assert json_output.schema_text() == built


@pytest.mark.parametrize(("answer", "plan_request"), [(ANSWER, QUESTION), (INFEASIBLE, HURT)])
def test_answers_keep_the_schema(answer: object, plan_request: object) -> None:
    made = json_output.dumps(json_output.document(answer, plan_request))  # type: ignore[arg-type]
    VALIDATOR.validate(json.loads(made))


def test_errors_keep_the_schema() -> None:
    VALIDATOR.validate(json_output.error_document("USAGE", 2, ["--deadline 24 has no unit"]))


def test_unknown_figures_are_null_and_others_have_six_digits() -> None:
    estimate = replace(GCP.estimate, speed_sigma=math.nan, price_sigma=math.inf, chance=1 / 3)
    answer = replace(ANSWER, plans=(replace(GCP, estimate=estimate),))
    made = json.loads(json_output.dumps(json_output.document(answer, QUESTION)))
    VALIDATOR.validate(made)
    given = made["plans"][0]["estimate"]
    assert given["speed_sigma"] is None
    assert given["price_sigma"] is None
    assert given["chance"] == 0.333333


def test_what_costs_more_than_on_demand_has_no_saving() -> None:
    found = [
        json_output.plan_object(replace(AWS_H100, saving=share)) for share in (0.25, -13.1, None)
    ]
    assert [each["saving"] for each in found] == [0.25, None, None]


def test_json_does_not_depend_on_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    first = json_output.dumps(json_output.document(ANSWER, QUESTION))
    monkeypatch.setenv("RECOMMEND_NOW", "2031-01-01T00:00Z")
    assert json_output.dumps(json_output.document(ANSWER, QUESTION)) == first


def test_csv_is_rfc_4180_and_holds_no_formula() -> None:
    made = written(answer_page(hostile_answer(), QUESTION), "csv")  # type: ignore[arg-type]
    assert made.count("\r\n") == 2
    rows = list(csv.reader(io.StringIO(made, newline=""), strict=True))
    assert len(rows[0]) == len(rows[1])
    assert not [cell for cell in rows[1] if cell.startswith(("=", "+", "@"))]


def test_hostile_words_reach_no_terminal_and_no_markup() -> None:
    answer = hostile_answer()
    for made in (
        drawn(answer_table.render(answer, QUESTION, 80), 80),  # type: ignore[arg-type]
        drawn(explain.render(answer, QUESTION, 1, 80), 80),  # type: ignore[arg-type]
        short_text(answer, QUESTION),  # type: ignore[arg-type]
    ):
        assert "\x1b" not in made
    for every in (False, True):
        prose = written(answer_page(answer, QUESTION, Shown(table=every)), "markdown")  # type: ignore[arg-type]
        assert "\x1b" not in prose
        assert not re.search(r"(?<!\\)<b>", prose)
    assert "<b>" not in short_table(answer, QUESTION)  # type: ignore[arg-type]


def test_every_form_lists_every_plan_with_its_cost() -> None:
    forms = [drawn(answer_table.render(ANSWER, QUESTION, width), width) for width in (60, 80, 140)]
    forms.append(
        written(answer_page(ANSWER, QUESTION, Shown(table=True)), "markdown").replace("\\", "")
    )
    for made in forms:
        for plan in ANSWER.plans:
            assert plan.machines[0].instance_type in made
            assert fmt.usd(plan.estimate.cost.mean) in made


EXPORT = "recommend export ANSWER.json --plan 3 -o run"
MIXED = replace(GCP, machines=(GCP.machines[0], ON_DEMAND.machines[0]), fallback=None)
OWN = replace(GCP, machines=(replace(GCP.machines[0], provider="own"),), fallback=None)


def test_a_launch_line_writes_the_files_that_it_starts() -> None:
    for plan in (GCP, ON_DEMAND):
        export, start = str(launch_line(plan, 3)).split(" && ")
        assert export == EXPORT
        run = run_of(plan, QUESTION)
        names = {f"run/{each.name}" for each in export_files(run, usual_target(plan), "run")}
        assert shlex.split(start)[-1] in names


def test_training_is_started_on_the_machines_and_not_where_the_line_is_typed() -> None:
    for plan, where in ((MIXED, "on each machine"), (OWN, "on the machine")):
        assert launch_line(plan, 3) == EXPORT
        assert write_sentence(plan, QUESTION) == (
            f"add --write run --to torchrun to this call, then, {where}, bash run/train.sh (it "
            "runs your train.py)"
        )
        written = replace(QUESTION, folder="there")
        assert write_sentence(plan, written) == (
            f"{where}, bash there/train.sh (it runs your train.py)"
        )


def test_a_plan_that_is_none_of_the_table_has_no_launch_line() -> None:
    confidential = replace(AZURE, machines=(replace(AZURE.machines[0], confidential=True),))
    for plan in (GCP, MIXED, confidential):
        assert launch_line(plan, None) is None
    made = json.loads(json_output.dumps(json_output.document(ANSWER, QUESTION)))
    assert {plan["launch"] for plan in made["baselines"]} == {None}


def test_files_that_are_written_already_are_only_started() -> None:
    start = "CHECKPOINT_BUCKET=YOUR-BUCKET bash {}/launch.sh (it runs your train.py)"
    assert write_sentence(GCP, QUESTION) == (
        f"add --write run to this call, then {start.format('run')}"
    )
    written = replace(QUESTION, folder="there")
    assert write_sentence(GCP, written) == start.format("there")
    slurm = write_sentence(GCP, replace(written, target="slurm"))
    assert slurm == "sbatch there/train.sbatch (it runs your train.py)"


@pytest.mark.parametrize("width", [30, 50, 69, 200])
def test_a_folded_call_means_the_same(width: int) -> None:
    call = str(launch_line(TWO_MACHINES, 1))
    joined = "\n".join(folded(call.split(), width, "  ")).replace("\\\n", " ")
    assert shlex.split(joined) == shlex.split(call)


def test_explaining_the_last_plan_needs_no_next_one() -> None:
    said = drawn(explain.render(ANSWER, QUESTION, 5, 80), 80)
    assert "against it" not in said


def test_an_answer_without_limits_and_plans_says_so() -> None:
    empty = replace(INFEASIBLE, infeasible=None)
    unlimited = replace(QUESTION, limits=type(QUESTION.limits)())
    text = drawn(short_blocks(empty, unlimited, 80, every=True), 80)
    assert "No plan can run this job on the offers that are allowed." in text.splitlines()


@pytest.mark.parametrize(
    ("saving", "words"), [(0.74, "74 %"), (-0.12, "12 % more"), (-11.06, "12.1× the cost")]
)
def test_what_costs_more_is_not_called_a_saving(saving: float, words: str) -> None:
    assert cells.saving_cell(replace(ON_DEMAND, saving=saving)) == (words,)


def ends(answer: object) -> dict[str, ShortPlan]:
    """The rows of a refusal by their roles."""
    return {row.role: row for row in short_form(answer, HURT, every=True).plans}  # type: ignore[arg-type]


def test_no_plan_in_the_refusal_has_a_shorter_time_than_the_fastest() -> None:
    """Plans are ordered by a mean, and people compare the medians that are printed."""
    why = INFEASIBLE.infeasible
    assert why is not None
    slow = replace(why.relaxed[0].plan or GCP, estimate=ANSWER.plans[-1].estimate)
    found = ends(replace(INFEASIBLE, infeasible=replace(why, fastest=slow)))["fastest"]
    listed = (step.plan for step in why.relaxed if step.plan)
    assert found.plan == min(listed, key=lambda p: p.estimate.time.p50)


def test_a_refusal_says_why_a_plan_that_it_names_is_cheaper_than_the_cheapest() -> None:
    """The cheapest without limits ends within a month; one within a larger budget need not."""
    why = INFEASIBLE.infeasible
    assert why is not None
    assert why.fastest is not None
    listed = [step.plan for step in why.relaxed if step.plan is not None]
    assert min(p.estimate.cost.mean for p in listed) < why.fastest.estimate.cost.mean
    found = ends(replace(INFEASIBLE, infeasible=replace(why, cheapest=why.fastest)))["cheapest"]
    assert found.plan == why.fastest
    assert found.where.startswith("ends within a month")


def test_a_plan_of_larger_quotas_is_not_the_fastest_that_a_refusal_names() -> None:
    why = INFEASIBLE.infeasible
    assert why is not None
    step = why.relaxed[0]
    plan = step.plan or GCP
    minute = replace(plan.estimate.time, p50=60.0)
    fast = replace(plan, estimate=replace(plan.estimate, time=minute))
    wider = replace(step, change="larger quotas", plan=fast, offers=True)
    asked = replace(INFEASIBLE, infeasible=replace(why, relaxed=(wider,), fastest=plan))
    assert ends(asked)["fastest"].plan == plan


def test_a_refusal_in_full_has_every_change_and_every_reason() -> None:
    why = INFEASIBLE.infeasible
    assert why is not None
    text = " ".join(drawn(short_blocks(INFEASIBLE, HURT, 200, every=True), 200).split())
    for step in why.relaxed:
        assert step.change in text
        assert step.plan is not None or step.effect in text
    assert all(reason in text for reason in why.binding)
