"""Every term of one plan."""

from recommender.plan import Answer
from recommender.report.lines import Line
from recommender.report.question import Question


def render(answer: Answer, question: Question, number: int, width: int) -> list[Line]:
    """placeholder"""
    return []
