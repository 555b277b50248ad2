"""The likelihood of recorded runs against hand calculations and drawn series."""

import math

import numpy as np
import pytest

from tests.research.accuracy.likelihood import (
    exponential_law,
    log_likelihood,
    lognormal_law,
    run_chances,
    runs_seen,
)
from tests.research.fits.spot_fit import Trace


def trace(pattern: str, tick_h: float = 0.5) -> Trace:
    return Trace("t", "c", "z", 4, tick_h, np.array([int(c) for c in pattern]))


def test_runs_and_their_censored_ends_are_distinguished():
    seen = runs_seen(trace("4400444044"), 4)
    assert seen.ticks.tolist() == [2, 3, 2]
    assert seen.began_before.tolist() == [True, False, False]
    assert seen.not_over.tolist() == [False, False, True]
    assert seen.ended == 2


def test_a_series_that_is_always_up_is_one_run_cut_at_both_ends():
    seen = runs_seen(trace("4444"), 4)
    assert (seen.ticks.tolist(), seen.ended) == ([4], 0)
    assert seen.began_before.tolist() == seen.not_over.tolist() == [True]


def test_a_smaller_gang_sees_other_runs():
    assert runs_seen(trace("0432144"), 3).ticks.tolist() == [2, 2]


def test_exponential_chances_by_hand():
    def s(hours: float) -> float:
        return math.exp(-hours / 2.0)

    # Ticks of half an hour. One cut at the beginning (a residue: the same law without memory),
    # one of a single tick, one of three ticks, one not over after two.
    found = run_chances(runs_seen(trace("44040444044"), 4), exponential_law(2.0))
    expected = [s(0.75) - s(1.25), 1.0 - s(0.75), s(1.25) - s(1.75), s(0.75)]
    np.testing.assert_allclose(found, expected)


def test_a_lognormal_residue_is_its_integrated_tail():
    mean, sigma = 2.0, 1.1
    law = lognormal_law(mean, sigma)
    rng = np.random.default_rng(3)
    runs = mean * np.exp(sigma * rng.standard_normal(400_000) - sigma**2 / 2)
    met = rng.choice(runs, 400_000, p=runs / runs.sum()) * rng.random(400_000)
    hours, residue = np.array([0.3, 1.0, 4.0]), np.ones(3, dtype=bool)
    counted = [(met > h).mean() for h in hours]
    np.testing.assert_allclose(law.beyond(hours, residue), counted, atol=5e-3)


def test_chances_of_all_lengths_add_up_to_one():
    ticks = np.arange(1, 4000)
    seen = runs_seen(trace("0" + "40"), 4)
    many = type(seen)(ticks, np.zeros(len(ticks), bool), np.zeros(len(ticks), bool), 0.25)
    for law in (exponential_law(3.0), lognormal_law(3.0, 1.2)):
        assert run_chances(many, law).sum() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("memoryless", [True, False])
def test_the_law_that_drew_the_runs_is_the_more_likely(memoryless):
    rng = np.random.default_rng(5)
    lengths = rng.exponential(2.0, 400) if memoryless else 2.0 * rng.lognormal(-0.98, 1.4, 400)
    ticks = "".join("4" * max(1, round(x / 0.1)) + "0" for x in lengths)
    seen = runs_seen(trace("0" + ticks, 0.1), 4)
    gain = log_likelihood(seen, lognormal_law(2.0, 1.4)) - log_likelihood(
        seen, exponential_law(2.0)
    )
    assert (gain < 0) == memoryless
