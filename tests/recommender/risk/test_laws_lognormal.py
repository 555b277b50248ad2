"""The lognormal law against the exact normal distribution and plain integration."""

import math

import numpy as np
import pytest

from recommender.risk.laws import lognormal_excess, lognormal_survival, normal_cdf


def exact(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def test_the_normal_law_is_within_1e_7():
    x = np.linspace(-8, 8, 2001)
    np.testing.assert_allclose(normal_cdf(x), [exact(v) for v in x], atol=1.1e-7)


def test_survival_at_the_median_is_a_half():
    mean, sigma = np.array([3600.0]), np.array([1.2])
    median = mean * np.exp(-0.5 * sigma**2)
    assert lognormal_survival(median, mean, sigma)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("t", [0.0, 600.0, 20_000.0])
def test_excess_is_the_integral_of_survival(sigma, t):
    mean, spread = np.array([3600.0]), np.array([sigma])
    grid = np.concatenate([[t], t + np.geomspace(1e-3, 1e8, 200_001)])
    area = np.trapezoid(lognormal_survival(grid, mean, spread), grid)
    found = lognormal_excess(np.array([t]), mean, spread)[0]
    assert found == pytest.approx(area, rel=1e-3, abs=1e-4)
