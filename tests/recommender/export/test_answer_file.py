"""Answers are read back as they were written."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.export.answer_file import answer_of, read_answer
from recommender.plan.answer import Pick, Trio
from recommender.report.json_output import document, plan_object
from tests.recommender import answers


def written() -> dict[str, object]:
    pick = Pick("sensible", 1, answers.GCP)
    trio = Trio(pick, Pick("cheapest", 1, answers.GCP), Pick("safest", 5, answers.ON_DEMAND))
    made: dict[str, object] = json.loads(
        json.dumps(document(replace(answers.ANSWER, trio=trio), answers.QUESTION))
    )
    return made


def test_every_plan_comes_back_as_it_was():
    made = written()
    found = answer_of(made)
    again = [{"rank": each.rank, **plan_object(each.plan, each.rank)} for each in found.plans]
    assert again == made["plans"]
    assert found.job == answers.JOB
    assert found.limits == answers.QUESTION.limits
    assert found.catalog == "2026-11"


def test_a_plan_is_named_by_its_number_or_its_role():
    found = answer_of(written())
    assert found.named("1").plan == found.named("sensible").plan == found.named("cheapest").plan
    assert found.named("safest").plan.machines == answers.ON_DEMAND.machines
    assert found.described(found.named("safest")).which == "plan 5"
    with pytest.raises(UsageError, match="the answer has plans 1, 2, 3, 4, 5, sensible"):
        found.named("6")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("plans", 0, "machines", 0, "count"), "two", r"plans\[0\].machines\[0\].count cannot be"),
        (("plans", 0, "machines"), None, r"plans\[0\].machines cannot be None"),
        (("plans", 1, "estimate", "chance"), True, "chance cannot be True"),
        (("inputs", "limits", "objective"), "best", "inputs.limits.objective cannot be best"),
        (("plans", 0, "machines"), [], r"plans\[0\].machines .*cannot be \[\]"),
        (("plans", 0, "fallback", "machines"), [], r"plans\[0\].machines .*cannot be \[\]"),
        (("plans", 0, "usd_per_hour"), math.inf, "usd_per_hour cannot be inf"),
        (("plans", 0, "machines", 0, "count"), math.inf, "count cannot be inf"),
        (("plans", 0, "sites", 0, "zone"), 'a}"b', r"sites\[0\].zone cannot be a"),
        (("plans", 0, "sites", 0, "region"), "x\u2028y", r"sites\[0\].region cannot be x"),
        (("plans", 0, "machines", 0, "instance_type"), "a\x1b[0m", "instance_type cannot be a"),
        (("plans", 0, "machines", 0, "zone"), "`id`", "zone cannot be `id`"),
    ],
)
def test_what_cannot_be_read_is_named(path: tuple[object, ...], value: object, said: str):
    made = written()
    at: object = made
    for key in path[:-1]:
        at = at[key]  # type: ignore[index]
    at[path[-1]] = value  # type: ignore[index]
    with pytest.raises(UsageError, match=said):
        answer_of(made)


def test_what_is_missing_is_named():
    made = written()
    del made["inputs"]["limits"]  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="has no limits; write it again"):
        answer_of(made)
    made = written()
    del made["plans"][0]["usd_per_hour"]  # type: ignore[index]
    with pytest.raises(UsageError, match="lacks fields of a Plan"):
        answer_of(made)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "recommend.error/v1"}', "[" * 9999, "[" + "9" * 5000 + "]"]
)
def test_a_file_that_is_no_answer_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "answer.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="write it again with recommend"):
        read_answer(path)
