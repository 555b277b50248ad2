"""Targets that ask for least figures, and errors of shares."""

import numpy as np
import pytest

from recommender.accuracy.study import Held, Score, Target, share_score


def gained(mean: float) -> Score:
    return Score(points=1, mean=mean, median=mean, p90=mean, bias=None, unit="nats")


def test_a_gain_must_be_large():
    assert Target(mean_at_least=0.5).met_by(gained(0.5))
    assert not Target(mean_at_least=0.5).met_by(gained(0.49))


def test_share_errors_are_differences():
    found = share_score(Held(("a", "b"), np.array([0.5, 0.2]), np.array([0.4, 0.5])))
    assert (found.mean, found.unit) == (pytest.approx(0.2), "share")
    assert found.bias == pytest.approx(-0.1)
