"""The page of first answers holds every question, and what is answered today."""

import re

import pytest

from recommender.job.preset_files import presets
from tests.research.first_answers.answers import QUESTIONS, FirstAnswer, ask
from tests.research.first_answers.page import PAGE, answer_row, verdicts
from tests.shipped import snapshot

TEXT = PAGE.read_text("utf-8")


def test_the_page_has_every_preset_under_every_question() -> None:
    wanted = {(preset, question) for preset in presets() for question in QUESTIONS}
    assert set(verdicts()) == wanted
    said = re.compile(r"(yes|almost|no)\b|not read again since ")
    assert all(said.match(verdict.words) for verdict in verdicts().values())
    for preset in presets():
        section = TEXT.partition(f"### {preset}\n")[2].partition("\n#")[0]
        asked = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
        assert [each for each in asked if each in QUESTIONS] == list(QUESTIONS)
        for question in QUESTIONS:
            assert verdicts()[preset, question].words in section


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_row_of_the_page_is_what_is_answered(question: str) -> None:
    """All of them take minutes: one job stands for the others."""
    found = ask("resnet18-cifar10", question, snapshot())
    assert answer_row(FirstAnswer("resnet18-cifar10", question, found)) in TEXT
