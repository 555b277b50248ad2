"""The page of first answers holds every question, what is answered today, and two verdicts."""

import pytest

from tests.research.first_answers.answers import FirstAnswer, Question, ask, questions
from tests.research.first_answers.page import PAGE, printed, row_of, rows, verdicts
from tests.shipped import every_cloud

TEXT = PAGE.read_text("utf-8")
WORDS = {"yes", "almost", "no"}


def test_the_page_has_every_question_with_the_verdicts_of_two_readers() -> None:
    wanted = [(each.section, each.name) for each in questions()]
    assert [(row.section, row.question) for row in rows()] == wanted
    said = verdicts()
    assert set(said) == set(wanted)
    for row in rows():
        verdict = said[row.section, row.question]
        assert {verdict.engineer, verdict.platform} <= WORDS
        assert printed(row, verdict) in TEXT


def test_the_counts_of_the_page_are_those_of_its_verdicts() -> None:
    words = [word for each in verdicts().values() for word in (each.engineer, each.platform)]
    counted = ", ".join(f"{words.count(word)} {word}" for word in ("yes", "almost", "no"))
    assert counted in TEXT


@pytest.mark.parametrize("question", [*questions(("resnet18-cifar10",))], ids=lambda q: q.name)
def test_a_row_of_the_page_is_what_is_answered(question: Question) -> None:
    """All of them take minutes: one job stands for the others."""
    found = FirstAnswer(question, ask(question, every_cloud()))
    assert row_of(found) in rows()
