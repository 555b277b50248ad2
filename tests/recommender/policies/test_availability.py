"""The availability model: a proper chain, and fits that find back what made a series."""

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.policies.availability import EDGES_H, Availability, chain
from recommender.policies.availability_fit import ages, counts, mixture, of_zone, zone_class
from tests.recommender.policies.laws import HEAVY, STEADY, memoryless
from tests.recommender.policies.markets import simulated

TICK = 300.0


@pytest.mark.parametrize("tick_s", [60.0, 195.0, 600.0, 3600.0])
def test_rows_of_the_chain_are_probabilities(tick_s):
    both = mixture([HEAVY, STEADY], np.array([0.3, 0.7]))
    for law in (HEAVY, STEADY, both):
        process = chain(law, tick_s)
        np.testing.assert_allclose(process.step.sum(axis=1), 1.0, atol=1e-12)
        assert (process.step >= 0.0).all()
        np.testing.assert_allclose(process.usual @ process.step, process.usual, atol=1e-9)


def test_a_memoryless_chain_has_the_availability_of_its_rates():
    assert chain(STEADY, 60.0).share_up == pytest.approx(2.0 / 3.0, abs=2e-3)
    same = memoryless(HEAVY, share_up=0.4, mean_run_h=2.0)
    assert chain(same, 60.0).share_up == pytest.approx(0.4, abs=5e-3)


def test_the_mean_time_in_a_bucket_does_not_depend_on_the_tick():
    shares = [chain(HEAVY, tick_s).share_up for tick_s in (60.0, 120.0, 360.0)]
    assert max(shares) - min(shares) < 0.03


def test_regimes_hold_their_share_of_the_time():
    good, bad = Availability(EDGES_H, 1e-6 + 0.0 * HEAVY.exits_per_hour, np.zeros((1, 1))), HEAVY
    process = chain(mixture([good, bad], np.array([0.2, 0.8])), TICK)
    half = len(process.usual) // 2
    assert process.usual[:half].sum() == pytest.approx(0.2, abs=1e-3)


def test_ages_count_from_the_last_change():
    series = np.array([True, True, False, False, False, True])
    assert list(ages(series)) == [1, 2, 1, 2, 3, 1]


def test_exits_and_hours_are_counted_by_age():
    series = np.repeat([True, False, True], [3, 12, 5])
    seen = counts(series, 0.1 * 3600.0)
    assert 1.5 < seen.hours.sum() < 1.9  # the last tick's end is not seen
    assert seen.exits[1].sum() == seen.exits[0].sum() == 1
    assert seen.exits[1, 1] == 1  # the run ended at an age of 0.3 h
    assert seen.exits[0, 3] == 1  # the outage at 1.2 h


def test_a_fit_finds_the_rates_that_made_a_series():
    series = simulated(HEAVY, TICK, 400_000, seed=2)
    kind = zone_class([series], TICK)
    found, true = kind.pooled.exits_per_hour[0], HEAVY.exits_per_hour[0]
    np.testing.assert_allclose(found[:, 1:], true[:, 1:], rtol=0.2)


def test_a_zone_watched_for_long_has_its_own_law_and_one_watched_briefly_that_of_its_class():
    kind = zone_class([simulated(HEAVY, TICK, 20_000, seed) for seed in range(3)], TICK)
    long = of_zone(simulated(STEADY, TICK, 200_000, 9), TICK, kind).exits_per_hour[0]
    brief = of_zone(simulated(STEADY, TICK, 3, 9), TICK, kind).exits_per_hour[0]
    np.testing.assert_allclose(long[1, 2:], STEADY.exits_per_hour[0, 1, 2:], rtol=0.15)
    np.testing.assert_allclose(brief[:, 2:], kind.pooled.exits_per_hour[0][:, 2:], rtol=0.2)


def test_of_a_class_of_few_zones_others_are_taken_to_differ_as_zones_do():
    few, many = (
        zone_class([simulated(HEAVY, TICK, 20_000, seed) for seed in range(count)], TICK)
        for count in (2, 3)
    )
    assert many.unwatched is many.qualities
    poor, usual, good = few.unwatched.exits_per_hour
    np.testing.assert_allclose(usual, few.pooled.exits_per_hour[0])
    np.testing.assert_allclose(good[0] / usual[0], usual[0] / poor[0])
    assert (good[0] > poor[0]).all()
    assert (good[1] == poor[1]).all()  # outages differ, runs do not


def test_a_zone_that_never_changed_can_be_fitted():
    kind = zone_class([np.ones(500, dtype=bool), simulated(HEAVY, TICK, 5_000, 1)], TICK)
    law = of_zone(np.ones(500, dtype=bool), TICK, kind)
    assert np.isfinite(law.exits_per_hour).all()
    assert (law.exits_per_hour > 0.0).all()


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(UsageError, match="at least one zone"):
        zone_class([], TICK)
    with pytest.raises(UsageError, match="at least 2"):
        counts(np.array([True]), TICK)
    with pytest.raises(UsageError, match="rates must be"):
        Availability((1.0,), np.zeros((1, 2, 3)), np.zeros((1, 1)))
