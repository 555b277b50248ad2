"""The law of fine-tuning follows from the published steps."""

import numpy as np
import pytest

from recommender.performance.speed_spread import ADAPTERS
from tests.research.accuracy.finetuning import added_sd, fitted, tunings


def test_the_constants_that_ship_are_those_of_all_sources():
    """Gathers and unpacking."""
    assert fitted(tunings()) == pytest.approx(1.0, abs=0.2)


def test_the_spread_that_ships_is_that_of_sources_left_out():
    assert round(added_sd(), 2) == ADAPTERS


def test_half_of_the_steps_are_within_a_sixth():
    missed = [run.predicted_s(np.ones(3)) / run.seconds - 1.0 for run in tunings()]
    assert np.median(np.abs(missed)) < 1 / 6
