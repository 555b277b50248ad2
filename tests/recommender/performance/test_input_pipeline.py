"""The stall vector: what preparation and fetching cost, from differential runs."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import DataSet, TimedRun
from recommender.performance.calibration import calibrate
from recommender.performance.step import steps
from tests.recommender.performance.parts import G5X8, clusters, columns, resnet

JOB = resnet(data=DataSet(bytes_per_sample=1e5, cpu_s_per_sample=1e-4))
BATCH = 2048


def run(data, step_s, gpus=8):
    return TimedRun(
        f"{data} {gpus}", "aws/g5.48xlarge", "A10G", gpus, 1, BATCH * gpus // 8, step_s, data
    )


def vector(one, many, cached, cold):
    return (
        run("synthetic", one, gpus=1),
        run("synthetic", many),
        run("cached", cached),
        run("cold", cold),
    )


def calibration(runs):
    return calibrate(JOB, runs, columns(JOB, (G5X8,)), ("A10G",), "2026-11-21")


def test_four_runs_teach_compute_links_preparation_and_fetching():
    free = columns(JOB, (G5X8,))
    t1 = float(steps(JOB, free, clusters(free, {0: 1})).step_s[0])
    found = calibration(vector(0.98 * t1, 1.1 * t1, 2.0 * t1, 3.0 * t1))
    feed = found.calibration.feeds[0]
    assert feed.prepare_per_s == pytest.approx(BATCH / (2.0 * t1))
    assert feed.fetch_per_s == pytest.approx(BATCH / (3.0 * t1))
    assert found.predicted_s.tolist()[2:] == pytest.approx([2.0 * t1, 3.0 * t1])
    assert found.calibration.links.factor < 0.6
    assert found.calibration.links.sd < 0.65


def test_a_plan_waits_for_the_slowest_part_of_the_input():
    free = columns(JOB, (G5X8,))
    t1 = float(steps(JOB, free, clusters(free, {0: 1})).step_s[0])
    own = calibration(vector(t1, t1, 2.0 * t1, 3.0 * t1)).calibration
    job = replace(JOB, calibration=own)
    found = columns(job, (G5X8,))
    step = steps(job, found, clusters(found, {0: 1}))
    assert step.step_s[0] == pytest.approx(3.0 * t1, rel=1e-6)
    # T2 - T1 is what the input adds: preparation T3 - T1 and fetching T2 - T3
    assert step.input_s[0] == pytest.approx(2.0 * t1, rel=0.05)


def test_runs_that_wait_for_nothing_bound_the_input_from_below():
    slow = replace(JOB, data=DataSet(bytes_per_sample=1e5, cpu_s_per_sample=1.0))
    free = columns(slow, (G5X8,))
    t1 = 2.0
    runs = (run("synthetic", t1), run("cached", 1.01 * t1), run("cold", 1.02 * t1))
    own = calibrate(slow, runs, free, ("A10G",), "2026-11-21").calibration
    assert free.prepare_per_s[0] < BATCH / t1 / 10
    assert own.feeds[0].prepare_per_s == pytest.approx(BATCH / (1.01 * t1))


def test_a_cold_run_that_waits_for_its_preparation_bounds_the_fetching_from_below():
    """Cold data take as long as cached ones: what fetches is at least as fast, and no slower."""
    slow = replace(JOB, data=DataSet(bytes_per_sample=1e8, cpu_s_per_sample=1e-4))
    free = columns(slow, (G5X8,))
    runs = (run("synthetic", 2.0), run("cached", 3.0), run("cold", 3.02))
    feed = calibrate(slow, runs, free, ("A10G",), "2026-11-21").calibration.feeds[0]
    assert feed.prepare_per_s == pytest.approx(BATCH / 3.0)
    assert free.fetch_per_s[0] < BATCH / 3.0
    assert feed.fetch_per_s == pytest.approx(BATCH / 3.0)  # the fastest that was seen
    quick = calibration(runs).calibration.feeds[0]
    assert quick.fetch_per_s == columns(JOB, (G5X8,)).fetch_per_s[0] > BATCH / 3.0


def test_synthetic_runs_say_nothing_of_the_input():
    runs = (run("synthetic", 2.0), run("synthetic", 1.9, gpus=1))
    assert calibration(runs).calibration.feeds == ()


def test_a_training_run_is_not_slowed_by_an_input_that_was_fast_enough():
    slow = replace(JOB, data=DataSet(cpu_s_per_sample=1.0))
    found = calibrate(slow, (run("", 2.0),), columns(slow, (G5X8,)), ("A10G",), "2026-11-21")
    job = replace(slow, calibration=found.calibration)
    mine = columns(job, (G5X8,))
    step = steps(job, mine, clusters(mine, {0: 1})).step_s
    assert step == pytest.approx(np.array([2.0]), rel=0.02)
