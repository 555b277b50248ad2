"""Laws of lifetimes against closed forms, hand calculations and each other."""

import math

import numpy as np
import pytest

from tests.research.fits.lifetimes import (
    EarlyDeaths,
    Lognormal,
    Recorded,
    Weibull,
    drawn,
)

LAWS = [
    Weibull(10.0, 1.0),
    Weibull(40.0, 0.4),
    Lognormal(8.0, 2.0),
    EarlyDeaths(0.3, 1.5, Weibull(100.0, 0.7)),
    Recorded((1.0, 6.0, 24.0), (0.8, 0.7, 0.4)),
]


def test_a_weibull_of_shape_one_is_exponential():
    found = Weibull(5.0, 1.0).survival(np.array([0.0, 5.0, 10.0]))
    np.testing.assert_allclose(found, [1.0, math.exp(-1), math.exp(-2)])


def test_a_weibull_keeps_one_in_e_to_its_scale():
    assert Weibull(7.0, 0.3).survival(np.array([7.0]))[0] == pytest.approx(math.exp(-1))


def test_half_live_longer_than_the_median_of_a_lognormal():
    found = Lognormal(3.0, 1.5).survival(np.array([3.0, 3.0 * math.exp(1.5)]))
    np.testing.assert_allclose(found, [0.5, 0.158655], atol=1e-6)


def test_early_deaths_are_the_sum_of_two_laws():
    law = EarlyDeaths(0.25, 2.0, Weibull(30.0, 1.0))
    expected = 0.25 * math.exp(-1.5) + 0.75 * math.exp(-0.1)
    assert law.survival(np.array([3.0]))[0] == pytest.approx(expected)


def test_a_recorded_law_goes_through_its_points():
    law = Recorded((1.0, 6.0), (0.8, 0.4))
    found = law.survival(np.array([0.0, 0.5, 1.0, 3.5, 6.0, 99.0]))
    np.testing.assert_allclose(found, [1.0, 0.9, 0.8, 0.6, 0.4, 0.4])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_survival_starts_at_one_and_never_rises(law):
    found = law.survival(np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 200)]))
    assert found[0] == pytest.approx(1.0)
    assert (np.diff(found) <= 1e-12).all()
    assert (found >= 0).all()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_drawn_lifetimes_survive_as_the_law_says(law):
    uniforms = (np.arange(20_000) + 0.5) / 20_000
    lives = drawn(law, uniforms)
    for hours in (0.5, 2.0, 12.0, 23.0):
        expected = law.survival(np.array([hours]))[0]
        assert (lives > hours).mean() == pytest.approx(expected, abs=1e-3)


def test_better_laws_draw_longer_lives_from_the_same_uniforms():
    uniforms = np.linspace(0.01, 0.99, 99)
    assert (drawn(Weibull(20.0, 0.5), uniforms) > drawn(Weibull(10.0, 0.5), uniforms)).all()
