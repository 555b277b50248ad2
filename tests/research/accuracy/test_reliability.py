"""The data behind the reliability plot."""

from pathlib import Path

import numpy as np
import pytest

from tests.catalogs.facts_data import reference
from tests.research.accuracy.reliability import (
    Reliability,
    brier,
    jobs_table,
    lifetime_reliability,
    product_limit,
    spot_reliability,
)


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


@pytest.mark.slow
@pytest.mark.reference
def test_points_are_chances():
    curves = spot_reliability(reference())
    assert len(curves) == 7
    for curve in curves:
        assert curve.predicted.shape == curve.measured.shape
        assert ((curve.predicted >= 0) & (curve.predicted <= 1)).all()
        assert ((curve.measured >= 0) & (curve.measured <= 1)).all()


def test_a_brier_score_by_hand():
    """Told 0.8 and 0.2, happened 0.5 and 0: (0.09 + 0.25 + 0.04 + 0)/2, base rate 0.25."""
    found = brier(Reliability("two", np.array([0.8, 0.2]), np.array([0.5, 0.0])))
    assert found.score == pytest.approx(0.19)
    assert found.unreliable == pytest.approx(0.065)
    assert found.of_base_rate == pytest.approx(0.25 * 0.75)


@pytest.mark.slow
@pytest.mark.reference
def test_the_table_of_the_page_is_what_the_forecasts_give():
    page = Path(__file__).parents[3] / "docs" / "research" / "risk.md"
    assert jobs_table(reference()) in page.read_text(encoding="utf-8")
