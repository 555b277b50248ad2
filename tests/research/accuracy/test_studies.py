"""Every study of `recommend accuracy` reaches what was asked of it, or is listed as missing it."""

import csv
import os
import re
from dataclasses import astuple, replace
from math import isfinite
from pathlib import Path

import pytest

from recommender.plan.accuracy import Finding, committed_findings
from tests.regenerate import accuracy
from tests.research.accuracy import plot
from tests.research.accuracy.studies import STUDIES

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA")
# Targets that are missed, each with its reason in docs/research/accuracy.md.
LIST = Path(__file__).with_name("missed.csv").read_text(encoding="utf-8")
ROWS = list(csv.DictReader(LIST.splitlines()))
MISSED = {row["key"] for row in ROWS if row["what"] == "error"}
SPANS_MISSED = {row["key"] for row in ROWS if row["what"] == "span"}
DOCS = Path(__file__).parents[3] / "docs" / "research" / "accuracy.md"

pytestmark = pytest.mark.accuracy


COMMITTED = {each.key: each for each in committed_findings()}
# Fits by the hundred: seconds to half a minute each.
HUNDREDS = ("finetuning", "deepvm-g3s", *(
    f"gavel-{gpu}{own}" for gpu in ("k80", "p100", "v100") for own in ("", "-links")
))  # fmt: skip
OWN = [
    pytest.param(study, id=study.key, marks=pytest.mark.slow if study.key in HUNDREDS else ())
    for study in STUDIES
    if not study.needs_reference
]


@pytest.mark.parametrize("study", OWN)
def test_a_study_reaches_its_target_unless_it_is_listed(study):
    made = study.finding(None)
    found = made.score
    assert found is not None
    assert found.points > 0
    assert isfinite(found.mean + (found.median or 0.0) + (found.p90 or 0.0))
    assert study.target.met_by(found) == (study.key not in MISSED), found
    assert (found.spans_met is not False) == (study.key not in SPANS_MISSED), found
    assert same(COMMITTED[study.key], made)


def same(kept: Finding, made: Finding) -> bool:
    """Whether the committed table holds what a study finds, to the digits that are printed.

    A point on the edge of its span may fall on either side of it with another processor.
    """
    words = [replace(each, score=None) for each in (kept, made)]
    if words[0] != words[1] or kept.score is None or made.score is None:
        return words[0] == words[1] and kept.score is made.score
    spans = [0.0 if each.coverage is None else each.coverage for each in (kept.score, made.score)]
    if abs(spans[0] - spans[1]) > 1.001 / made.score.points:
        return False
    figures = [
        [x for x in astuple(replace(each, coverage=None)) if isinstance(x, float)]
        for each in (kept.score, made.score)
    ]
    # Least squares stop a little earlier or later on another processor.
    return figures[0] == pytest.approx(figures[1], rel=1e-5, abs=1e-9)


def without_spans(page: str) -> str:
    """A page without the shares inside spans: the committed table holds them, `same` compares."""
    return re.sub(r"\| \d+ %( \*\*out\*\*)? \|", "| |", page)


def test_the_committed_table_lists_every_study():
    assert list(COMMITTED) == [study.key for study in STUDIES]
    assert all(each.score for each in COMMITTED.values())


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.key)
def test_the_page_says_whether_a_study_reaches_its_target(study):
    """What it says of studies on large tables is checked below, where these tables are."""
    row = next(line for line in DOCS.read_text("utf-8").splitlines() if f"| `{study.key}` " in line)
    assert ("**missed**" in row) == (study.key in MISSED)
    assert ("**out**" in row) == (study.key in SPANS_MISSED)
    assert (": met |" in row) == (bool(study.target.words) and study.key not in MISSED)


def test_every_missed_target_is_explained():
    text = DOCS.read_text(encoding="utf-8").partition("<!-- end -->")[2]
    assert {study.key for study in STUDIES} >= MISSED | SPANS_MISSED
    assert [key for key in sorted(MISSED | SPANS_MISSED) if f"`{key}`" not in text] == []


def test_keys_are_unique():
    keys = [study.key for study in STUDIES]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_the_page_and_the_committed_table_are_what_the_studies_give():
    # Those that need no table are compared with the committed ones one by one, above.
    findings = [
        study.finding(Path(REFERENCE)) if study.needs_reference else COMMITTED[study.key]
        for study in STUDIES
    ]
    assert without_spans(accuracy(findings)) == without_spans(DOCS.read_text(encoding="utf-8"))
    assert [each.key for each in findings if not same(COMMITTED[each.key], each)] == []


@pytest.mark.slow
@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_the_picture_of_the_page_is_what_the_studies_give(tmp_path, monkeypatch):
    made = tmp_path / "made.svg"
    monkeypatch.setattr("sys.argv", ["plot", "--reference", str(REFERENCE), "-o", str(made)])
    plot.main()
    assert made.read_bytes() == DOCS.with_name("accuracy.svg").read_bytes()
