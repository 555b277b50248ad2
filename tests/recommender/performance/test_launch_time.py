"""Small micro-batches of eager scripts take the time that it takes to start their kernels."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.overheads import (
    link_wait_s,
    min_launch_s,
    min_model_parallel_launch_s,
)
from recommender.performance.priors import prior_of
from recommender.performance.step import steps
from tests.shipped import snapshot

MACHINE = ("aws", "p6-b300.48xlarge")


def step_s(job, machines: int, faster: float = 1.0) -> float:
    """Seconds of a step on machines of eight B300."""
    catalog = snapshot()
    found = machine_columns(job, (catalog.instance_types[MACHINE],), catalog.gpus, catalog.achieved)
    found = replace(found, compute_per_s=found.compute_per_s * faster)
    return float(steps(job, found, clusters_of(found, np.array([[machines]]))).step_s[0])


def test_an_eager_fine_tuning_with_adapters_takes_more_than_its_arithmetic_on_the_newest_gpus():
    """32 layers, forward and backward at 1.2 ms each: 77 ms a step, not 27."""
    job = find_job("llama3-8b-lora").as_script
    assert prior_of(job).launch_s == min_launch_s(job) == pytest.approx(2 * 32 * 1.2e-3)
    assert step_s(job, 8) > 0.077
    assert step_s(job, 8, faster=100.0) > 0.077  # no GPU helps
    assert step_s(job, 1, faster=100.0) == pytest.approx(step_s(job, 1, faster=200.0), rel=0.2)


def test_large_micro_batches_hide_it():
    job = find_job("llama3-8b-pretrain")
    catalog = snapshot()
    types = (catalog.instance_types["aws", "p5.48xlarge"],)
    found = machine_columns(job, types, catalog.gpus, catalog.achieved)
    one = steps(job, found, clusters_of(found, np.array([[1]])))
    assert one.compute_s[0] > 3.0 * one.accumulation[0] * min_launch_s(job)


def test_pictures_of_a_thumb_take_as_long_as_their_kernels_take_to_start():
    """DeepVM: 128 pictures of CIFAR-10 through ResNet-18 take 26 ms on an A10G, start-up included
    (4,837 images/s); 62 tensors at 0.17 ms are 10.5, arithmetic 1."""
    job, catalog = find_job("resnet18-cifar10").as_script, snapshot()
    types = tuple(catalog.instance_types["aws", name] for name in ("g5.xlarge", "p5.4xlarge"))
    found = machine_columns(job, types, catalog.gpus, catalog.achieved)
    each = steps(job, found, clusters_of(found, np.eye(2, dtype=int))).step_s
    assert each.min() == pytest.approx(62 * 0.17e-3)
    assert each[0] < 128 / 4837


def test_networks_of_tables_have_none():
    assert min_launch_s(find_job("dlrm")) == 0.0


def test_vendors_recipes_and_own_timings_have_none():
    job = find_job("llama3-8b-lora")
    assert min_launch_s(replace(job, stack="tuned")) == 0.0
    assert min_model_parallel_launch_s(replace(job, stack="tuned")) == pytest.approx(
        2 * 32 * 0.26e-3
    )
    assert min_model_parallel_launch_s(job) == min_launch_s(job) > 0.0


def test_scripts_that_share_layers_launch_the_kernels_of_a_simple_implementation():
    """sailor's OPT of 350 M on four GH200: a micro-batch of one sample takes 71 to 74 ms."""
    job = replace(find_job("llama3-8b-pretrain"), stack="typical")
    assert min_model_parallel_launch_s(job) == pytest.approx(2 * 32 * 1.2e-3)
    assert min_model_parallel_launch_s(job) > min_launch_s(job)
    assert 0.5 < min_model_parallel_launch_s(replace(job, layers=24)) / 0.071 < 1.0


def test_an_all_reduce_of_scripts_waits_as_long_as_three_machines_show():
    """16 MiB over eight GPUs, GB/s measured and at large messages; twice 7/8 of the bytes pass."""
    moved = 2**24 / 1e9
    shown = [(236.82, 450), (219.89, 450), (254.96, 840)]
    waits = [moved / measured - moved / rate for measured, rate in shown]
    job = replace(find_job("llama3-8b-pretrain"), stack="typical")
    assert link_wait_s(job) == pytest.approx(np.prod(waits) ** (1 / 3), rel=0.01)
    assert link_wait_s(replace(job, stack="tuned")) == 0.0
