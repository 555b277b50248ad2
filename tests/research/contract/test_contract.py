"""The contract asks what it says, and counts what differs."""

from dataclasses import replace
from pathlib import Path

from recommender.inputs.quota_file import read_quotas
from tests.recommender.answers import ANSWER, INFEASIBLE, QUESTION
from tests.research.contract.ask import Row, row_of
from tests.research.contract.compare import Pair, broken, report
from tests.research.contract.questions import HERE, KINDS, Question, questions

ROW = row_of(Question("deadline", "--deadline 24h gpt2-xl"), ANSWER, QUESTION)


def worse(**changes: str) -> float:
    return Pair(ROW, replace(ROW, **changes), 0.0, 0.0).worse


def test_there_are_more_than_a_thousand_different_questions_of_every_class() -> None:
    asked = questions()
    known = {each.words for each in asked}
    assert len(known) == len(asked) > 1_000
    assert {each.kind for each in asked} == set(KINDS)
    assert all({each.wider, each.narrower} <= known | {""} for each in asked)


def test_every_nth_question_of_a_class_is_one_of_all() -> None:
    some = questions(("hourly", "edge"), 7)
    assert {each.kind for each in some} == {"hourly", "edge"}
    assert set(some) < set(questions(("hourly", "edge")))
    assert 7 * len(some) < 8 * len(questions(("hourly", "edge")))


def test_a_quota_file_holds_what_the_sweep_of_mixes_asked() -> None:
    amounts = {limit.amount for limit in read_quotas(HERE / "quotas" / "192.csv")}
    assert amounts == {192.0, 16.0}


def test_the_cost_of_a_plan_under_a_deadline_is_compared() -> None:
    assert worse(usd=f"{1.02 * float(ROW.usd)}", hours="1") - 0.02 < 1e-5
    assert worse(usd=f"{0.9 * float(ROW.usd)}") < -0.09
    assert worse(chance="0.9", usd="1") == float("inf")
    assert worse(answer="refusal") == float("inf")


def test_of_refusals_the_nearest_limit_is_compared() -> None:
    none = row_of(Question("refusal", "--deadline 1h gpt2-xl"), INFEASIBLE, QUESTION)
    assert none.answer == "refusal"
    later = replace(none, nearest="--deadline 9h", hours_p95="11")
    pair = Pair(replace(later, hours_p95="10"), later, 0.0, 0.0)
    assert abs(pair.worse - 0.1) < 1e-9
    assert Pair(none, ROW, 0.0, 0.0).worse < 0.0


def test_a_table_counts_and_names_the_worst(tmp_path: Path) -> None:
    files = []
    for name, usd in (("before", 100.0), ("after", 100.5)):
        files.append(tmp_path / f"{name}.csv")
        row = replace(ROW, usd=f"{usd:.6g}")
        lines = (",".join(Row.__dataclass_fields__), ",".join(map(quoted, row_cells(row))))
        files[-1].write_text("\n".join(lines) + "\n", "utf-8")
    said = "\n".join(report(*files))
    assert "| deadline | 1 | 0.0% | 0 | 0 | 1 | 0 | 0 | +0.50% | 100.0% | 0 | 0 |" in said
    assert "+0.50% --deadline 24h gpt2-xl" in said


def quoted(cell: str) -> str:
    return f'"{cell}"'


def row_cells(row: Row) -> list[str]:
    return [getattr(row, name) for name in Row.__dataclass_fields__]


def test_a_question_that_allows_more_has_no_worse_plan() -> None:
    wide = replace(ROW, words="--deadline 72h gpt2-xl", usd="120")
    narrow = replace(ROW, usd="100", chance="0.96")
    found = list(broken({row.words: row for row in (wide, narrow)}))
    assert found[0] == "+20.00% --deadline 72h gpt2-xl"
    assert not list(broken({row.words: row for row in (replace(wide, usd="90"), narrow)}))
