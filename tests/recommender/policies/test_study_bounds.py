"""The parts of the studies of what could be closed at all, on markets whose answer is known."""

import numpy as np
import pytest

from recommender.policies.availability import chain
from tests.recommender.policies.laws import HEAVY
from tests.recommender.policies.markets import simulated
from tests.recommender.policies.study_bounds import (
    filtered,
    horizon,
    nearest,
    one_regime,
    share_ahead,
)
from tests.recommender.policies.study_zones_bounds import itself

TICK_S = 600.0


def test_the_share_ahead_by_hand():
    series = np.array([True, True, False, False, True])
    assert share_ahead(series, 2).tolist() == [0.5, 0.0, 0.5]


def test_nearest_windows_know_a_market_that_repeats_itself():
    day = np.repeat([True, False, True, False], [30, 12, 66, 36])
    past, judged, ticks = np.tile(day, 130), np.tile(day, 3), horizon(3.0, TICK_S)
    truth = share_ahead(judged, ticks)
    found = nearest(past, judged, share_ahead(past, ticks), TICK_S, np.zeros(len(truth)))
    late = slice(len(day), None)  # by then shares of the last 24 h are known
    assert np.abs(found - truth)[late].max() < 0.02


def test_the_filter_of_a_known_law_beats_the_share_of_time_up():
    past, judged = (simulated(HEAVY, TICK_S, 4_000, seed) for seed in (1, 2))
    for hours, found in zip((0.5, 1.0, 3.0), filtered(past, judged, [past], TICK_S), strict=False):
        truth = share_ahead(judged, horizon(hours, TICK_S))
        error = ((found[: len(truth)] - truth) ** 2).mean()
        assert error < 0.8 * truth.var()


def test_a_series_alone_gives_a_law_of_one_regime_near_the_one_it_was_drawn_from():
    law = one_regime(simulated(HEAVY, TICK_S, 60_000, 3), TICK_S)
    assert law.exits_per_hour.shape == (1, 2, 6)
    drawn, fitted = chain(HEAVY, TICK_S), chain(law, TICK_S)
    assert fitted.share_up == pytest.approx(drawn.share_up, abs=0.05)


def test_without_aggregation_every_state_that_occurs_is_kept():
    law = chain(HEAVY, TICK_S)
    own = itself(law)
    states = own.member.argmax(axis=0)
    assert own.step == pytest.approx(law.step[np.ix_(states, states)], abs=1e-9)
    assert (own.up == law.up[states]).all()
    assert law.usual[states].sum() == pytest.approx(1.0)
