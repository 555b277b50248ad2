"""The standard normal law against the exact one."""

import math

import numpy as np

from recommender.risk.normal_law import normal_cdf, normal_cdf_lower_bound


def exact(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def test_the_normal_law_is_within_1e_7():
    x = np.linspace(-8, 8, 2001)
    np.testing.assert_allclose(normal_cdf(x), [exact(v) for v in x], atol=1.1e-7)


def test_the_lower_bound_of_the_normal_law_is_below_it_by_less_than_a_thousandth():
    x = np.linspace(-8, 8, 2001)
    gap = np.array([exact(v) for v in x]) - normal_cdf_lower_bound(x)
    assert (gap >= 0.0).all()
    assert (gap < 1e-3).all()
