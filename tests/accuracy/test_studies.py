"""Every study of `recommend accuracy` reaches what was asked of it, or is listed as missing it."""

import csv
import os
from pathlib import Path

import pytest

from recommender.accuracy.studies import STUDIES

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA")
# Targets that are missed, each with its reason in docs/accuracy.md.
MISSED = {
    row["key"]
    for row in csv.DictReader(
        Path(__file__).with_name("missed.csv").read_text("utf-8").splitlines()
    )
}
DOCS = Path(__file__).parents[2] / "docs" / "accuracy.md"

pytestmark = pytest.mark.accuracy


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.key)
def test_a_study_reaches_its_target_unless_it_is_listed(study):
    if study.needs_reference and not REFERENCE:
        pytest.skip("needs RECOMMEND_REFERENCE_DATA, the large reference tables")
    found = study.run(Path(REFERENCE) if study.needs_reference else None)
    assert found.points > 0
    assert found.median <= found.p90
    assert study.target.met_by(found) == (study.key not in MISSED), found


def test_every_missed_target_is_explained():
    text = DOCS.read_text(encoding="utf-8")
    assert {study.key for study in STUDIES} >= MISSED
    assert [key for key in sorted(MISSED) if f"`{key}`" not in text] == []


def test_keys_are_unique():
    keys = [study.key for study in STUDIES]
    assert len(set(keys)) == len(keys)
