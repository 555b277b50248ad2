"""A timing in another precision says of a job what the formulas carry, and less surely."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import CarriedTiming, TimedRun, Timing
from recommender.performance.calibration import calibrate
from recommender.performance.carried_precision import (
    BITS,
    FORMAT,
    HALVED,
    carries,
    in_own_precision,
    precision_sd,
)
from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.priors import prior_of
from recommender.performance.speed_spread import evidence_for
from recommender.performance.step import steps
from tests.recommender.performance.parts import llama
from tests.shipped import snapshot

CATALOG = snapshot()
P5 = CATALOG.instance_types["aws", "p5.48xlarge"]
P4D = CATALOG.instance_types["aws", "p4d.24xlarge"]
B200 = CATALOG.instance_types["aws", "p6-b200.48xlarge"]
IN_BF16 = Timing("H100", 8, 1, 8.0, precision="bf16")


def owned(job):
    return in_own_precision(job, CATALOG.instance_types.values(), CATALOG.gpus, CATALOG.achieved)


def columns(job, *types):
    return machine_columns(job, types or (P5,), CATALOG.gpus, CATALOG.achieved)


def rate(job, machine=P5):
    found = columns(job, machine)
    step_s = steps(job, found, clusters_of(found, np.array([[1]]))).step_s[0]
    return job.global_batch / float(step_s)


@pytest.mark.parametrize(
    ("timed", "planned", "sd"),
    [
        ("bf16", "bf16", 0.0),
        ("bf16", "fp8", HALVED[16]),
        ("nvfp4", "bf16", math.hypot(HALVED[16], HALVED[8])),
        ("tf32", "fp8", math.hypot(HALVED[32], HALVED[16])),
        ("fp8", "mxfp8", FORMAT),
    ],
)
def test_every_halving_of_the_bits_adds_its_variance_either_way(timed, planned, sd):
    assert precision_sd(timed, planned) == precision_sd(planned, timed) == pytest.approx(sd)


def test_products_on_other_units_carry_nothing():
    assert not any(carries("fp32", other) or carries(other, "fp32") for other in BITS)
    assert carries("fp32", "fp32")


def test_what_the_formulas_miss_of_a_timing_they_miss_in_the_other_precision():
    """True over predicted speed is the same in both."""
    free, fp8 = llama(precision="bf16"), llama(precision="fp8")
    found = owned(replace(fp8, timings=(IN_BF16,)))
    (timing,) = found.timings
    missed = IN_BF16.samples_per_s / rate(free)
    assert timing.samples_per_s / rate(fp8) == pytest.approx(missed, rel=1e-6)
    assert timing.precision == ""
    assert found.carried == CarriedTiming("bf16", HALVED[16])
    assert rate(found) == pytest.approx(timing.samples_per_s, rel=1e-3)
    assert owned(found) == found


def test_spans_are_those_of_a_timing_and_of_the_other_precision():
    fp8 = llama(precision="fp8")
    own = columns(owned(replace(fp8, timings=(replace(IN_BF16, precision=""),))), P5)
    carried = columns(owned(replace(fp8, timings=(IN_BF16,))), P5)
    assert carried.speed_sigma == pytest.approx(np.hypot(own.speed_sigma, HALVED[16]))


def test_no_carried_timing_makes_a_job_less_sure_than_none():
    fp8, types = llama(precision="fp8"), (P5, B200)
    free = columns(fp8, *types)
    for timed in ("bf16", "tf32"):
        found = columns(owned(replace(fp8, timings=(replace(IN_BF16, precision=timed),))), *types)
        assert np.all(found.speed_sigma <= free.speed_sigma + 1e-12)
        assert np.all(found.speed_sigma_several <= free.speed_sigma_several + 1e-12)
    # tf32 to fp8 is 25 %, and a B200 a generation from what was timed
    assert found.speed_sigma[1] == pytest.approx(free.speed_sigma[1])


def test_a_timing_in_the_precision_of_the_job_is_used_as_it_is():
    for word in ("", "mixed", "bf16"):
        job = llama(precision="mixed", timings=(replace(IN_BF16, precision=word),))
        found = owned(job)
        assert (found.carried, found.remarks) == (None, ())
        assert found.timings == (replace(IN_BF16, precision=""),)


def test_timings_in_the_precision_of_the_job_count_alone():
    own = Timing("H100", 16, 2, 20.0)
    found = owned(llama(precision="fp8", timings=(IN_BF16, own)))
    assert (found.timings, found.carried) == ((own,), None)
    assert found.remarks == ("the timing on 8xH100 in bf16 is not used: others are in fp8",)


@pytest.mark.parametrize(
    ("gpu", "timed", "planned"),
    [
        ("H100", "fp32", "mixed"),
        ("V100", "tf32", "mixed"),  # a V100 multiplies tf32 as fp32
        ("A100", "bf16", "fp8"),  # which an A100 lacks
    ],
)
def test_a_timing_that_says_nothing_is_named(gpu, timed, planned):
    timing = Timing(gpu, 8, 1, 1.0, precision=timed)
    found = owned(llama(precision=planned, timings=(timing,)))
    assert (found.timings, found.carried) == ((), None)
    assert found.remarks == (
        f"the timing on 8x{gpu} in {timed} is not used: it says nothing of {planned} there",
    )


@pytest.mark.parametrize(
    ("gpu", "timed", "planned", "lacks"),
    [
        ("A100", "", "fp8", "fp8"),
        ("V100", "", "bf16", "bf16"),
        ("A100", "fp8", "mixed", "fp8"),
    ],
)
def test_a_timing_in_a_format_that_the_gpu_lacks_is_not_used(gpu, timed, planned, lacks):
    found = owned(llama(precision=planned, timings=(Timing(gpu, 8, 1, 1.0, precision=timed),)))
    assert (found.timings, found.carried) == ((), None)
    stated = f" in {timed}" if timed else ""
    assert found.remarks == (f"the timing on 8x{gpu}{stated} is not used: {gpu} has no {lacks}",)
    assert owned(found).remarks == found.remarks


def test_a_timing_on_a_gpu_of_no_known_machine_is_not_used():
    job = llama(precision="fp8", timings=(replace(IN_BF16, precision=""), IN_BF16))
    found = in_own_precision(job, (P4D,), CATALOG.gpus, CATALOG.achieved)
    assert (found.timings, found.carried) == ((), None)
    assert found.remarks[0] == (
        "the timing on 8xH100 is not used: no machine of the catalog has the GPU H100"
    )


def calibrated(job, run, precision):
    """A job with a calibration on one run, that states its precision."""
    found = columns(job, P5)
    own = calibrate(job, (run,), found, ("H100",), "2026-11-20").calibration
    return replace(job, calibration=replace(own, precision=precision))


RUN = TimedRun("runs.csv, line 2", "aws/p5.48xlarge", "H100", 8, 1, 64, 6.0)


def test_a_calibration_in_another_precision_counts_only_without_a_timing_in_the_jobs():
    fitted = calibrated(llama(precision="mixed", global_batch=64), RUN, "mixed").calibration
    fp8 = llama(precision="fp8", global_batch=64, calibration=fitted)
    timing = replace(IN_BF16, precision="fp8")
    found = owned(replace(fp8, timings=(timing,)))
    assert (found.calibration, found.carried) == (None, None)
    assert found.remarks == (
        "calibration is not used: its runs are in bf16, there are timings in fp8",
    )
    alone = owned(llama(precision="fp8", global_batch=64, timings=(timing,)))
    spreads = columns(found, P5, P4D, B200).speed_sigma
    assert spreads == pytest.approx(columns(alone, P5, P4D, B200).speed_sigma)
    assert owned(fp8).carried == CarriedTiming("bf16", HALVED[16])
    assert owned(fp8).calibration == fitted
    both = owned(replace(fp8, timings=(IN_BF16,)))
    assert (both.carried, both.calibration) == (CarriedTiming("bf16", HALVED[16]), fitted)
    assert owned(both) == both


def test_mixed_precision_is_named_by_its_format_on_the_timed_gpu():
    timing = replace(IN_BF16, precision="mixed")
    found = owned(llama(precision="fp8", timings=(timing,)))
    assert found.carried == CarriedTiming("bf16", HALVED[16])


def test_the_evidence_of_a_carried_timing_is_weaker():
    job, gpu = llama(precision="fp8"), CATALOG.gpus["H100"]

    def evidence(timing):
        found = owned(replace(job, timings=(timing,)))
        return evidence_for(found, prior_of(found), gpu, "fp8", CATALOG.achieved)

    own, carried = evidence(replace(IN_BF16, precision="")), evidence(IN_BF16)
    assert (own.grade, carried.grade) == ("measured", "scaled")
    assert carried.sd == pytest.approx(math.hypot(own.sd, HALVED[16]))
