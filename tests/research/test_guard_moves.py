"""True moves of the price histories against the guards of the refresh."""

import os
from pathlib import Path

import pytest

from tests.research.guard_moves import measured, replay

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
PLACE = ("a2-highgpu-1g", "us-central1")


def test_a_price_that_stays_held_back_is_one_move() -> None:
    nights = {day: {PLACE: 1.0 if day < 2 else 2.0} for day in range(5)}
    found = replay("made up", nights, lambda now, good, ages: {p for p in ages if now[p] > 1.5})
    assert (found.nights, found.read, found.moved, found.held) == (5, 5, 1, 1)
    assert found.let_through == 0.0


# Least share of moves let through, as docs/refresh.md tells them.
LEAST = {
    "AWS spot 2020": 1.0,
    "GCP spot": 0.99,
    "GCP on-demand": 0.76,
    "Azure spot": 0.90,
    "Azure on-demand": 0.59,
}


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE, reason="RECOMMEND_REFERENCE_DATA is not set")
def test_true_moves_are_let_through_as_often_as_the_page_says() -> None:
    found = {each.history: each.let_through for each in measured(Path(REFERENCE))}
    assert found.keys() == LEAST.keys()
    assert {name: share for name, share in found.items() if share < LEAST[name]} == {}
