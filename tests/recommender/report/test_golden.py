"""The forms of an answer as they stand in tests/golden_answers/rendered."""

from dataclasses import replace

import pytest

from recommender.plan.limits import Limits
from recommender.report import answer_table, csv_markdown, explain, json_output
from recommender.report.layout import drawn
from tests.recommender import golden
from tests.recommender.answers import ANSWER, GCP, HURT, INFEASIBLE, QUESTION, TWO_MACHINES

WIDTHS = (40, 60, 80, 140)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_answer(width: int) -> None:
    golden.check(f"answer-{width}.txt", drawn(answer_table.render(ANSWER, QUESTION, width), width))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_plan(width: int) -> None:
    golden.check(
        f"infeasible-{width}.txt", drawn(answer_table.render(INFEASIBLE, HURT, width), width)
    )


@pytest.mark.parametrize("width", [60, 80])
def test_explanation(width: int) -> None:
    golden.check(f"explain-{width}.txt", drawn(explain.render(ANSWER, QUESTION, 1, width), width))


def test_other_forms() -> None:
    golden.check("answer.json", json_output.dumps(json_output.document(ANSWER, QUESTION)))
    golden.check("infeasible.json", json_output.dumps(json_output.document(INFEASIBLE, HURT)))
    golden.check("answer.csv", csv_markdown.render_csv(ANSWER))
    golden.check("answer.md", csv_markdown.render_markdown(ANSWER, QUESTION))
    golden.check("infeasible.md", csv_markdown.render_markdown(INFEASIBLE, HURT))


def test_fastest_plans_with_a_comparison_and_a_knee() -> None:
    request = replace(QUESTION, limits=Limits(budget_usd=300, hourly_usd=40))
    knee = replace(GCP, labels=("knee",))
    answer = replace(ANSWER, goal="time", plans=(TWO_MACHINES, knee), compared=ANSWER.plans[4])
    golden.check("fastest-80.txt", drawn(answer_table.render(answer, request, 80), 80))


def test_the_same_answer_gives_the_same_bytes() -> None:
    first = [drawn(answer_table.render(ANSWER, QUESTION, width), width) for width in WIDTHS]
    assert first == [drawn(answer_table.render(ANSWER, QUESTION, width), width) for width in WIDTHS]
