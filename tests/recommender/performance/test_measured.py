"""A user's timings: reproduced exactly where they were taken, carried over elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import Timing
from recommender.performance.machines import machine_columns
from recommender.performance.priors import load_gpu_factors
from recommender.performance.step import steps
from tests.recommender.performance.parts import (
    ACHIEVED,
    G5X8,
    G6,
    GPUS,
    P3,
    P4DE,
    P5,
    clusters,
    columns,
    llama,
    resnet,
)

# Images/s of g4dn.xlarge over 1 ... 32 machines, ResNet-18 on CIFAR-10 (DeepVM, figure 5, 2024)
DEEPVM = {1: 2452.6, 2: 2540.7, 4: 3409.9, 8: 5576.2, 16: 9179.9, 32: 12875.5}


def rates(job, types, *counts):
    found = columns(job, types)
    return job.global_batch / steps(job, found, clusters(found, *counts)).step_s


def test_one_timing_is_reproduced():
    job = resnet(timings=(Timing("V100", 1, 1, 400.0),))
    assert rates(job, (P3,), {0: 1})[0] == pytest.approx(400.0, rel=1e-6)


def test_a_timing_of_several_machines_is_reproduced_at_that_shape():
    job = llama(timings=(Timing("H100", 32, 4, 24.0),))
    assert rates(job, (P5, P4DE), {0: 4})[0] == pytest.approx(24.0, rel=1e-6)


def test_a_timing_holds_for_other_shapes_of_the_same_gpu():
    free = rates(resnet(), (P5,), {0: 1})[0]
    job = resnet(timings=(Timing("H100", 8, 1, free / 2),))
    found = columns(job, (P5,))
    assert found.speed_sigma[0] < columns(resnet(), (P5,)).speed_sigma[0]
    assert rates(job, (P5,), {0: 1})[0] == pytest.approx(free / 2, rel=1e-6)
    assert rates(job, (P5,), {0: 2})[0] < free


def test_a_timing_carries_over_to_other_gpus_by_prior_and_gpu_factors():
    job = resnet(stack="tuned")  # typical scripts are predicted with the factors themselves
    free = columns(job, (P3, P5))
    slow = replace(job, timings=(Timing("V100", 1, 1, 0.5 * rates(job, (P3,), {0: 1})[0]),))
    found = columns(slow, (P3, P5))
    each = free.compute_per_s / free.gpus
    factors = load_gpu_factors()
    between = factors["H100", "bf16", "cnn"] / factors["V100", "bf16", "cnn"]
    carried, moved = np.log(0.5 * between), np.log(found.compute_per_s[1] / 8 / each[1])
    # 0.10, 0.14 and three generations of 0.12; two sds of one GPU's part may be lost on the way
    related = np.sqrt(0.10**2 + 0.14**2 + 3 * 0.12**2)
    assert carried < moved < carried + 2.001 * related / np.sqrt(2) < 0.0
    assert found.speed_sigma[0] < found.speed_sigma[1] <= free.speed_sigma[1]


def test_readings_at_every_size_come_back_exactly():
    timings = tuple(Timing("V100", n, n, rate) for n, rate in DEEPVM.items())
    job = resnet(timings=timings, global_batch=4096)
    found = rates(job, (P3,), *({0: n} for n in DEEPVM))
    assert found.tolist() == pytest.approx(list(DEEPVM.values()), rel=1e-5)


def test_between_sizes_the_rate_lies_between():
    timings = tuple(Timing("V100", n, n, rate) for n, rate in DEEPVM.items())
    job = resnet(timings=timings, global_batch=4096)
    found = rates(job, (P3,), {0: 8}, {0: 11}, {0: 16})
    assert found[0] < found[1] < found[2]


def test_readings_faster_than_the_network_raise_the_network():
    free = rates(resnet(), (G6,), {0: 1}, {0: 8})
    assert free[1] < 5 * free[0]
    timings = (Timing("L4", 1, 1, free[0]), Timing("L4", 8, 8, 7.5 * free[0]))
    found = rates(resnet(timings=timings), (G6,), {0: 1}, {0: 8})
    assert found.tolist() == pytest.approx([free[0], 7.5 * free[0]], rel=1e-5)


def test_calibrated_rates_never_pass_the_compute_rate():
    timings = tuple(Timing("V100", n, n, rate) for n, rate in DEEPVM.items())
    job = resnet(timings=timings, global_batch=4096)
    found = columns(job, (P3,))
    fleet = clusters(found, *({0: n} for n in range(1, 40)))
    assert (steps(job, found, fleet).step_s >= job.global_batch / fleet.compute_per_s).all()


def test_a_timing_of_one_instance_type_is_its_own():
    job = resnet(timings=(Timing("H100", 8, 1, 9000.0, "p5.48xlarge"),))
    assert rates(job, (P5, P3), {0: 1})[0] == pytest.approx(9000.0, rel=1e-6)


def test_a_timing_on_an_unknown_gpu_changes_nothing():
    job = resnet(timings=(Timing("Z9000", 8, 1, 9000.0),))
    assert columns(job, (P5,)).compute_per_s == pytest.approx(
        columns(resnet(), (P5,)).compute_per_s
    )


def test_a_timing_that_the_model_cannot_place_does_no_harm():
    """More GPUs than samples, or a network that cannot fit: the prior stays."""
    job = llama(global_batch=4, timings=(Timing("H100", 8, 1, 2.0), Timing("H100", 16, 2, 3.0)))
    assert columns(job, (P5,)).compute_per_s[0] > 0


def test_a_timing_on_too_many_gpus_for_the_batch_leaves_the_step_of_fewer():
    """Sixteen GPUs cannot share a batch of eight; there is no reading to interpolate."""
    job = resnet(global_batch=8, stack="tuned")  # scripts start kernels in a time that is timed
    timed = replace(job, timings=(Timing("A10G", 16, 2, 50.0),))
    assert rates(timed, (G5X8,), {0: 1}) == pytest.approx(rates(job, (G5X8,), {0: 1}))


def test_a_timing_on_a_gpu_that_may_not_be_rented_says_of_others_what_it_would_if_it_might():
    job = llama(timings=(Timing("H100", 8, 1, 4.0),))
    both = machine_columns(job, (P4DE, P5), GPUS, ACHIEVED)
    alone = machine_columns(job, (P4DE,), GPUS, ACHIEVED, known=(P3, P4DE, P5))
    assert alone.names == both.names[:1]
    assert alone.compute_per_s == pytest.approx(both.compute_per_s[:1])
    assert alone.speed_sigma == pytest.approx(both.speed_sigma[:1])
    assert alone.measured == ()
    free = machine_columns(llama(), (P4DE,), GPUS, ACHIEVED)
    assert alone.compute_per_s[0] != pytest.approx(free.compute_per_s[0], rel=0.05)
