"""The data behind the reliability plot."""

import numpy as np
import pytest

from recommender.accuracy.reliability import (
    lifetime_reliability,
    product_limit,
    spot_reliability,
)
from tests.catalogs.facts_data import reference


def test_without_cut_runs_it_is_the_share_counted():
    ended = np.array([0.1, 0.2, 0.2, 0.9])
    found = product_limit(ended, np.zeros(0), np.array([0.05, 0.1, 0.5, 1.0]))
    np.testing.assert_allclose(found, [0.0, 0.25, 0.75, 1.0])


def test_a_cut_run_counts_until_it_is_cut():
    # By hand: 1/3 end at 0.2; the one cut at 0.5 is gone; the last of one ends at 0.8.
    found = product_limit(np.array([0.2, 0.8]), np.array([0.5]), np.array([0.3, 0.7, 0.9]))
    np.testing.assert_allclose(found, [1 / 3, 1 / 3, 1.0])


def test_every_region_has_a_rising_curve():
    curves = lifetime_reliability()
    assert len(curves) == 12
    for curve in curves:
        assert (np.diff(curve.predicted) >= 0).all()
        assert (np.diff(curve.measured) >= 0).all()


@pytest.mark.reference
def test_points_are_chances():
    curves = spot_reliability(reference())
    assert len(curves) == 7
    for curve in curves:
        assert curve.predicted.shape == curve.measured.shape
        assert ((curve.predicted >= 0) & (curve.predicted <= 1)).all()
        assert ((curve.measured >= 0) & (curve.measured <= 1)).all()
