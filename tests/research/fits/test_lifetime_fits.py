"""Fits to ends known between two hours: hand calculations, planted laws, published fits."""

import math

import numpy as np
import pytest

from tests.research.accuracy import lifetimes as recorded_lifetimes
from tests.research.fits.lifetimes import (
    EarlyDeaths,
    Ends,
    Lognormal,
    Weibull,
    drawn,
    fit_early_deaths,
    fit_exponential,
    fit_lognormal,
    fit_weibull,
    log_likelihood,
    recorded,
    simplex,
)


def ends(*rows: tuple[float, float, float]) -> Ends:
    return Ends(*(np.array(column) for column in zip(*rows, strict=True)))


def hourly(law, servers: int = 20_000, limit: int = 24) -> Ends:
    """What a law's servers look like when somebody looks once an hour for a day."""
    lives = drawn(law, (np.arange(servers) + 0.5) / servers)
    counts, _ = np.histogram(lives, bins=np.arange(limit + 1.0))
    rows = [(float(h), h + 1.0, float(n)) for h, n in enumerate(counts)]
    return ends(*rows, (float(limit), math.inf, float((lives >= limit).sum())))


def test_likelihood_by_hand():
    # Two of five died in the first hour, one between 2 and 4, two were alive after 4 hours.
    seen = ends((0.0, 1.0, 2.0), (2.0, 4.0, 1.0), (4.0, math.inf, 2.0))
    s = {t: math.exp(-t / 5.0) for t in (1, 2, 4)}
    by_hand = 2 * math.log(1 - s[1]) + math.log(s[2] - s[4]) + 2 * math.log(s[4])
    assert log_likelihood(Weibull(5.0, 1.0), seen) == pytest.approx(by_hand)


def test_exponential_fit_by_hand():
    # One interval only: the most likely hazard makes the share dead at 2 hours one quarter.
    seen = ends((0.0, 2.0, 25.0), (2.0, math.inf, 75.0))
    assert fit_exponential(seen).scale_h == pytest.approx(2.0 / math.log(4 / 3), rel=1e-3)


@pytest.mark.parametrize(("scale", "shape"), [(110.0, 0.33), (12.0, 0.8), (20.0, 2.0)])
def test_planted_weibull_laws_come_back(scale, shape):
    found = fit_weibull(hourly(Weibull(scale, shape)))
    assert found.scale_h == pytest.approx(scale, rel=0.02)
    assert found.shape == pytest.approx(shape, rel=0.02)


@pytest.mark.parametrize(("median", "sigma"), [(6.0, 1.0), (30.0, 2.5)])
def test_planted_lognormal_laws_come_back(median, sigma):
    found = fit_lognormal(hourly(Lognormal(median, sigma)))
    assert found.median_h == pytest.approx(median, rel=0.02)
    assert found.sigma == pytest.approx(sigma, rel=0.02)


def test_planted_early_deaths_come_back():
    planted = EarlyDeaths(0.3, 1.5, Weibull(60.0, 1.2))
    found = fit_early_deaths(hourly(planted))
    assert found.share == pytest.approx(0.3, abs=0.01)
    assert found.early_h == pytest.approx(1.5, rel=0.03)
    assert found.late.scale_h == pytest.approx(60.0, rel=0.03)
    assert found.late.shape == pytest.approx(1.2, rel=0.03)


def test_weights_are_servers():
    twice = ends((0.0, 1.0, 1.0), (0.0, 1.0, 1.0), (1.0, math.inf, 3.0))
    once = ends((0.0, 1.0, 2.0), (1.0, math.inf, 3.0))
    law = Weibull(4.0, 0.7)
    assert log_likelihood(law, twice) == pytest.approx(log_likelihood(law, once))


def test_recorded_shares_are_those_counted():
    law = recorded(ends((0.0, 1.0, 2.0), (3.0, 4.0, 3.0), (24.0, math.inf, 5.0)))
    assert law.hours == (1.0, 4.0)
    assert law.alive == pytest.approx((0.8, 0.5))


def test_the_simplex_finds_the_bottom_of_a_valley():
    # Rosenbrock's function (1960), least at (1, 1).
    found = simplex(
        lambda x: float(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2), np.array([-1.2, 1.0])
    )
    np.testing.assert_allclose(found, 1.0, atol=1e-2)


@pytest.mark.parametrize(
    ("gpu", "scale", "shape", "largest"),
    # Re-fits of CM-DARE's lifetimes, 2026-08: Weibull scale and shape, largest error by hour.
    [("K80", 110.6, 0.325, 0.051), ("P100", 40.3, 0.419, 0.064), ("V100", 42.2, 0.242, 0.068)],
)
def test_published_weibull_fits_are_reproduced(gpu, scale, shape, largest):
    cells = [c for c in recorded_lifetimes.cells() if c.gpu == gpu]
    found = fit_weibull(recorded_lifetimes.together(cells, alike=False))
    assert found.scale_h == pytest.approx(scale, rel=5e-3)
    assert found.shape == pytest.approx(shape, rel=5e-3)
    error = recorded_lifetimes.fitted_shares(gpu, fit_weibull).error
    assert error.max() == pytest.approx(largest, abs=1e-3)
