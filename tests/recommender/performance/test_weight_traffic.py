"""Passes over the weights beside the arithmetic."""

from dataclasses import replace

import pytest

from recommender.performance.priors import prior_of
from recommender.performance.step import steps
from tests.recommender.performance.parts import P4DE, clusters, columns, llama

QLORA = llama(method="qlora", trainable_parameters=42e6, forward_passes=2.0, micro_batch=1)


def step_s(job) -> float:
    """Seconds of a step on one machine."""
    found = columns(job, (P4DE,))
    return float(steps(job, found, clusters(found, {0: 1})).step_s[0])


def test_4_bit_weights_are_unpacked_in_every_pass_of_every_micro_batch():
    """At 2,039 GB/s 8 B weights of 17.2 B take 0.0675 s, twice without recomputation."""
    one, many = replace(QLORA, global_batch=8), replace(QLORA, global_batch=64)
    for job, rounds in ((one, 1), (many, 8)):
        more = step_s(job) - step_s(replace(job, method="lora", unquantized_parameters=0.0))
        bandwidth = columns(job, (P4DE,)).device_bytes_per_s[0]
        unpacked = rounds * 2 * 17.2 * (job.parameters - job.unquantized_parameters) / bandwidth
        assert more == pytest.approx(unpacked, rel=0.1)


def test_scripts_update_what_they_train_once_a_step():
    job = llama()
    assert prior_of(job).update_bytes == 60.0 * job.trainable_parameters
    assert prior_of(replace(job, stack="tuned")).update_bytes == 0.0


def test_the_launches_of_adapters_add_to_their_arithmetic():
    """Qwen-1.8B on A100-80GB with recomputation: 0.125 s a micro-batch, of which 0.021 arithmetic.

    The same layers are launched one by one however short the sequence (QwenLM/Qwen, 2023-12)."""
    job = replace(QLORA, method="lora", global_batch=8, recomputation="full")
    slow, none = prior_of(job), replace(prior_of(job), launch_s=0.0)
    found = columns(job, (P4DE,))
    fleet = clusters(found, {0: 1})
    more = steps(job, found, fleet, slow).step_s[0] - steps(job, found, fleet, none).step_s[0]
    assert more == pytest.approx(job.layers * 3 * 1.2e-3, rel=0.02)
