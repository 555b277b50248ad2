"""The table of the study counts what its rows say."""

from tests.research.mixes.questions import Question
from tests.research.program_order import LAST, Row, table


def test_the_table_counts_places_and_shares() -> None:
    question = Question("bert-large-pretrain", "24h", "none", "default")
    rows = [
        Row(question, 3, True, 0.9, 0.01, 1.0, 0.9),
        Row(question, LAST, True, 0.0, 0.03, 0.2, 0.2),
    ]
    lines = list(table(rows))
    assert lines[2] == "| 24h | 2 | 1 | 1 | 2 | 1 | 1 | 5.0 points | 2.0% |"
    assert lines[3].startswith("| all | 2 | 1 | 1 |")
