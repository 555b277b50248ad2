"""A speed of the user's and the factor that was fitted next to the shipped one count once."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recommender.catalogs.schema import Achieved, OwnSpeed
from recommender.errors import UsageError
from recommender.job.job import TimedRun, Timing
from recommender.performance.calibration import calibrate
from recommender.performance.gpu_speed import BETWEEN_MACHINES, adapted, gpu_speed, sample_rate
from recommender.performance.machines import machine_columns
from recommender.performance.priors import gpus_with_runs, load_gpu_factors, prior_of
from tests.recommender.performance.parts import ACHIEVED, GPUS, P3, P4DE, P5, resnet

RANGED = Achieved("H100", "bf16", 762.2, 730.0, 794.5, "measured", 1, "2026-08")
SURE = replace(RANGED, low_tflops=762.2, high_tflops=762.2)
GUESSED = replace(RANGED, low_tflops=400.0, high_tflops=1000.0, kind="fallback")


def own(tflops: float, shipped: Achieved | None, memory: float | None = None) -> OwnSpeed:
    return OwnSpeed("H100", "bf16", tflops, tflops, tflops, "measured", -1, "", shipped, memory)


def test_by_hand():
    """Range 730-794.5: e = ln(794.5 / 730) / 3.29 = 0.02573; w = e² / (e² + 0.05²) = 0.2094."""
    factor, doubt = adapted(0.9, 0.8, RANGED)
    assert factor == pytest.approx(0.9 * 0.8**-0.2094, rel=1e-4)
    assert doubt == pytest.approx(math.log(1.25) * math.sqrt(0.2094 * 0.7906), rel=1e-3)


def test_a_sure_figure_leaves_the_factor_and_a_guess_gives_it_all():
    assert adapted(0.9, 0.8, SURE) == (pytest.approx(0.9), 0.0)
    factor, doubt = adapted(0.9, 0.8, GUESSED)
    assert 0.9 / 0.8 * 0.95 < factor < 0.9 / 0.8
    assert doubt < 0.3 * math.log(1.25)


def test_the_same_speed_changes_nothing():
    assert adapted(0.9, 1.0, RANGED) == (pytest.approx(0.9), 0.0)


def test_the_score_moves_by_less_than_the_speed_and_by_as_much_as_is_stated():
    job, factors = resnet(stack="tuned"), load_gpu_factors()
    prior = prior_of(job)
    shipped = gpu_speed(job, prior, "H100", GPUS, {("H100", "bf16"): RANGED}, factors)
    half = {("H100", "bf16"): own(381.1, RANGED)}
    found = gpu_speed(job, prior, "H100", GPUS, half, factors)
    ratio = found.rate / shipped.rate
    assert 0.5 < ratio < 0.9  # the memory is as fast as before
    assert found.score / shipped.score == pytest.approx(ratio ** (1 - 0.2094), rel=1e-3)
    assert shipped.doubt == 0.0
    assert found.doubt == pytest.approx(-math.log(ratio) * math.sqrt(0.2094 * 0.7906), rel=1e-3)


def test_own_memory_is_used_and_its_error_is_shared_in_the_same_way():
    job = resnet(stack="tuned")
    prior = prior_of(job)
    slow = {("H100", "bf16"): own(762.2, RANGED, 3000.0)}
    found = gpu_speed(job, prior, "H100", GPUS, slow, load_gpu_factors())
    assert found.rate == pytest.approx(sample_rate(job, prior, "bf16", 762.2e12, 3e12))
    assert found.doubt > 0


def test_a_factor_from_the_trend_stays_as_it_is():
    """No training on that GPU stands behind it, so it holds nothing that the speed sets right."""
    assert ("L4", "bf16", "cnn") not in gpus_with_runs()
    assert ("H100", "bf16", "cnn") in gpus_with_runs()
    job = resnet()
    shipped = replace(RANGED, gpu="L4", tflops=72.6, low_tflops=60.5, high_tflops=90.8)
    mine = replace(own(60.0, shipped), gpu="L4")
    found = gpu_speed(job, prior_of(job), "L4", GPUS, {("L4", "bf16"): mine}, load_gpu_factors())
    assert found.score / found.rate == pytest.approx(load_gpu_factors()["L4", "bf16", "cnn"])
    assert found.doubt == 0.0


def test_a_timing_carried_to_a_gpu_with_an_own_speed_is_less_sure_and_counts_it_once():
    job = resnet(timings=(Timing("A100-80GB", 8, 1, 9000.0),), stack="tuned")
    known = {**ACHIEVED, ("H100", "bf16"): RANGED}
    mine = {**ACHIEVED, ("H100", "bf16"): own(600.0, RANGED)}
    before = machine_columns(job, (P4DE, P5), GPUS, known)
    after = machine_columns(job, (P4DE, P5), GPUS, mine)
    assert after.compute_per_s[0] == pytest.approx(before.compute_per_s[0])
    free = resnet(stack="tuned")
    rates = [machine_columns(free, (P5,), GPUS, each).compute_per_s[0] for each in (known, mine)]
    moved = after.compute_per_s[1] / before.compute_per_s[1]
    # A share of 0.2094 of the own speed is the shipped one's error; a timing says so too.
    assert 0.0 < np.log(moved) / np.log(rates[1] / rates[0]) < 1.0
    assert after.speed_sigma[1] > before.speed_sigma[1]
    assert after.speed_sigma[0] == before.speed_sigma[0]


def test_a_calibration_holds_for_the_speeds_it_was_fitted_on():
    """Its factor multiplies the matrix speed: another one under it would count twice."""
    job = resnet()
    runs = (TimedRun("line 2", "aws/p5.48xlarge", "H100", 8, 1, 512, 0.1),)
    mine = {("H100", "bf16"): own(600.0, RANGED)}
    before = machine_columns(job, (P5,), GPUS, {("H100", "bf16"): RANGED})
    plain = calibrate(job, runs, before, ("H100",), "2026-11-21").calibration
    with pytest.raises(
        UsageError, match="own H100 600 TFLOP/s 3350 GB/s'; run recommend calibrate"
    ):
        machine_columns(replace(job, calibration=plain), (P5,), GPUS, mine)
    after = machine_columns(job, (P5,), GPUS, mine)
    again = calibrate(job, runs, after, ("H100",), "2026-11-21")
    assert again.predicted_s[0] == pytest.approx(0.1, rel=0.03)
    known = {("H100", "bf16"): RANGED}
    with pytest.raises(UsageError, match="run recommend calibrate"):
        machine_columns(replace(job, calibration=again.calibration), (P5,), GPUS, known)
    free = machine_columns(replace(job, calibration=plain), (P3,), GPUS, ACHIEVED)
    assert free.compute_per_s[0] > 0  # other GPUs' speeds do not matter


def test_the_stated_spread_between_machines_is_small():
    assert 0.01 < BETWEEN_MACHINES < 0.1
