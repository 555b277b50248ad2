"""The time of a long run is less certain than that of its steps."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import Job, Timing
from recommender.performance.long_runs import LONG_FLOP, SHORT_FLOP, SIGMA, run_sd
from tests.recommender.performance.parts import P3, P5, columns, resnet

JOB, TYPES = resnet(), (P3, P5)


def of_flop(flop: float) -> Job:
    return replace(JOB, samples=flop / JOB.flop_per_sample)


def test_only_long_runs_are_less_certain_than_their_steps():
    assert run_sd(of_flop(SHORT_FLOP)) == 0.0
    assert run_sd(of_flop(LONG_FLOP)) == run_sd(of_flop(1e25)) == SIGMA
    assert 0.0 < run_sd(of_flop(2e21)) < run_sd(of_flop(5e21)) < SIGMA


def test_a_long_run_widens_every_spread_and_changes_no_speed():
    short, long = (columns(of_flop(flop), TYPES) for flop in (1e18, 1e24))
    assert long.compute_per_s == pytest.approx(short.compute_per_s)
    for name in ("speed_sigma", "speed_sigma_several"):
        assert getattr(long, name) == pytest.approx(np.hypot(getattr(short, name), SIGMA))


def test_a_measured_step_does_not_show_what_a_long_run_loses():
    timings = (Timing("H100", 8, 1, 20_000.0),)
    short, long = (columns(replace(of_flop(flop), timings=timings), (P5,)) for flop in (1e18, 1e24))
    assert short.speed_sigma[0] < SIGMA
    assert long.speed_sigma[0] == pytest.approx(np.hypot(short.speed_sigma[0], SIGMA))
