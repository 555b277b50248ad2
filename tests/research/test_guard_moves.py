"""True moves of the price histories, and their errors, against the guards of the refresh."""

import os
from pathlib import Path

import pytest

from recommender.catalogs.refresh.reference import Key
from tests.research.guard_moves import Errors, Moves, azure_errors, measured, moves, without_doubt

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
NAME, ELSEWHERE = "a2-highgpu-1g", "us-west1"
PLACE: Key = (NAME, "us-central1", "", "on_demand")


def test_a_price_that_stays_held_back_is_one_move() -> None:
    there: Key = (NAME, ELSEWHERE, "", "on_demand")
    readings = {
        day: {PLACE: 3.6 if day < 739002 else 7.2, there: 3.6} for day in range(739000, 739005)
    }
    listed, _ = moves("made up", "gcp", readings)
    assert (listed.dates, listed.read, listed.moved, listed.held) == (5, 10, 1, 1)
    assert listed.let_through == 0.0


def test_a_price_of_neither_the_first_nor_the_last_list_is_wrong() -> None:
    rows = {1: {PLACE: 1.0}, 2: {PLACE: 1.6}, 3: {PLACE: 1.1}}
    assert azure_errors(rows, {PLACE: 1.1}) == {(2, PLACE)}


def test_a_wrong_row_hides_its_family_until_a_right_one() -> None:
    sibling: Key = ("a2-highgpu-2g", "us-central1", "", "on_demand")
    rows = {1: {PLACE: 1.0, sibling: 2.0}, 2: {PLACE: 1.6}, 3: {}, 4: {PLACE: 1.1}}
    found = without_doubt("gcp", rows, {(2, PLACE)})
    assert found == {1: rows[1], 2: {}, 3: {}, 4: {PLACE: 1.1, sibling: 2.0}}


# As in docs/research/refresh.md; Azure's on-demand prices did not move.
MOVED = {
    "AWS spot": 2364,
    "GCP on-demand": 93,
    "GCP spot": 4584,
    "Azure on-demand": 0,
    "Azure spot": 91,
}
WRONG = {"GCP": (10, 10, 0, 0), "Azure": (305, 179, 30, 0)}


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE, reason="RECOMMEND_REFERENCE_DATA is not set")
def test_true_moves_are_let_through_and_no_large_error_is() -> None:
    found = list(measured(Path(REFERENCE)))
    true = [each for each in found if isinstance(each, Moves)]
    assert {each.history: each.moved for each in true} == MOVED
    assert [each for each in true if each.let_through < 0.99] == []
    wrong = [each for each in found if isinstance(each, Errors)]
    assert {e.history: (e.wrong, e.large, e.published, e.published_large) for e in wrong} == WRONG
