"""The interval follows what saves cost and how often runs end, as the plan counts it."""

import math
from pathlib import Path

import numpy as np
import pytest

from recommender.performance.checkpoint import progress
from recommender.train.ranks import OneProcess
from recommender.train.save_interval import (
    ASSUMED_RUN_S,
    SaveTimes,
    best_interval_s,
    mean_run_s,
    next_interval_s,
)
from recommender.train.save_schedule import SaveSchedule


@pytest.mark.parametrize(("stall_s", "run_s"), [(1, 3600), (30, 14_400), (300, 7200), (20, 90_000)])
def test_no_other_interval_makes_more_progress_in_exponential_runs(stall_s: float, run_s: float):
    tried = np.geomspace(stall_s / 10, 20 * run_s, 20_000)
    gained = tried / np.expm1((tried + stall_s) / run_s)  # τ·Σ exp(-j(τ+C)/M)
    best = tried[gained.argmax()]
    assert best_interval_s(stall_s, run_s) == pytest.approx(best, rel=2e-3)


def test_short_saves_give_youngs_square_root():
    assert best_interval_s(1, 1e6) == pytest.approx(math.sqrt(2e6), rel=2e-3)


@pytest.mark.parametrize(("stall_s", "run_s"), [(5.0, 7200.0), (30.0, 14_400.0), (60.0, 43_200.0)])
def test_the_plan_s_own_model_loses_little_at_this_interval(stall_s: float, run_s: float):
    def kept(interval_s: np.ndarray) -> np.ndarray:
        one = np.ones_like(interval_s)
        return progress(interval_s, run_s * one, one, 300 * one, stall_s * one, 0 * one)

    tried = np.geomspace(60, run_s, 400)
    ours = kept(np.array([best_interval_s(stall_s, run_s)]))[0]
    assert ours >= 0.99 * kept(tried).max()


def test_interruptions_shorten_the_interval_and_slow_saves_lengthen_it():
    times, calm = SaveTimes(10, 40), mean_run_s(40 * 3600, 0)
    often = mean_run_s(40 * 3600, 20)
    slow = SaveTimes(40, 40)
    assert next_interval_s(times, often, 60) < next_interval_s(times, calm, 60)
    assert next_interval_s(slow, often, 60) > next_interval_s(times, often, 60)


def test_saves_neither_overlap_nor_come_before_the_interval_ends():
    assert next_interval_s(SaveTimes(0.01, 900), ASSUMED_RUN_S, 60) == 900
    assert next_interval_s(SaveTimes(0.0001, 0.1), mean_run_s(3600, 9), 60) == 60


def test_one_run_of_assumed_length_is_counted_among_those_seen():
    assert mean_run_s(0, 0) == ASSUMED_RUN_S
    assert mean_run_s(1800, 1) == (ASSUMED_RUN_S + 1800) / 2


def test_until_an_interruption_comes_saves_are_no_more_frequent_than_the_plan_says(tmp_path: Path):
    """Machines on demand run far longer than the run of spot capacity that is assumed."""
    intervals = []
    for step in (0, 10):  # a second start is an interruption
        with SaveSchedule(tmp_path, "step", interval_s=3600.0) as schedule:
            schedule.begin(step, 100, OneProcess())
            schedule.learn(SaveTimes(stall_s=1.0, write_s=5.0))
            schedule.complete(step + 10)
            intervals.append(schedule.interval_s)
    assert intervals[0] == 3600.0
    assert 60.0 < intervals[1] < 300.0
