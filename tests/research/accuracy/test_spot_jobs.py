"""Replayed jobs against a walk tick by tick, and simple series by hand."""

import math

import numpy as np
import pytest

from tests.catalogs.facts_data import reference
from tests.research.accuracy.spot_jobs import Job, job_forecasts, replayed
from tests.research.accuracy.study import share_score
from tests.research.fits.spot_fit import Trace


def trace(up: np.ndarray, gap_h: float) -> Trace:
    return Trace("t", "c", "z", 1, gap_h, np.asarray(up, dtype=np.int64))


def walked(up: np.ndarray, gap_h: float, start: int, job: Job, parts: int = 10) -> float:
    """The same job, small steps at a time."""
    done = away = job.changeover_h
    done, step = 0.0, gap_h / parts
    for k in range(start * parts, len(up) * parts):
        if not up[k // parts]:
            away = job.changeover_h
        elif away > 1e-9:
            away -= step
        else:
            done += step
            if done >= job.work_h - 1e-9:
                return (k + 1) * step - start * gap_h
    return math.inf


def test_capacity_that_is_always_there_costs_one_changeover():
    found = replayed(trace(np.ones(20), 1.0), Job(1, 2.0, 0.3))
    np.testing.assert_allclose(found, 2.3)


def test_an_outage_costs_its_length_and_a_changeover():
    # Up for 2 h, away for 1 h, up again; 3 h of work.
    found = replayed(trace(np.r_[1, 1, 0, np.ones(20)], 1.0), Job(1, 3.0, 0.25))
    assert found[0] == pytest.approx(3.0 + 1.0 + 2 * 0.25)


def test_a_run_shorter_than_the_changeover_does_no_work():
    found = replayed(trace(np.r_[1, 0, np.ones(30)], 0.5), Job(1, 2.0, 0.6))
    assert found[0] == pytest.approx(1.0 + 0.6 + 2.0)


def test_jobs_that_the_series_does_not_end_are_not_done():
    found = replayed(trace(np.r_[np.ones(1), np.zeros(30)], 1.0), Job(1, 2.0, 0.1))
    assert np.isinf(found).all()


@pytest.mark.parametrize("seed", range(6))
def test_replay_is_the_walk_tick_by_tick(seed):
    rng = np.random.default_rng(seed)
    up = np.repeat(rng.random(60) < 0.6, rng.integers(1, 9, 60))
    job = Job(1, float(rng.choice([1.0, 3.0])), float(rng.choice([0.1, 0.3])))
    found = replayed(trace(up, 0.5), job)
    expected = [walked(up, 0.5, 2 * k, job) for k in range(len(found))]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.reference
def test_chances_of_jobs_are_within_five_points_nearly_everywhere():
    held = job_forecasts(reference())
    assert len(held.labels) == 168
    found = share_score(held)
    assert found.mean < 0.03
    assert found.p90 < 0.05
