"""Pipelines by hand calculation."""

import numpy as np
import pytest

from tests.research.accuracy.stages import PipelineSpeed, pipeline_step_s

SPEED = PipelineSpeed(
    layer_s=0.01,
    handover_s=0.002,
    gradient_bytes=4e9,
    network_bytes_per_s=1e9,
    network_latency_s=0.001,
)


def step(micro, stages, replicas, layers=24, speed=SPEED):
    return float(
        pipeline_step_s(speed, layers, np.array([micro]), np.array([stages]), np.array([replicas]))[
            0
        ]
    )


def test_one_pipeline_has_turns_and_no_all_reduce():
    assert step(16, 4, 1) == pytest.approx((16 + 3) * (6 * 0.01 + 0.002))


def test_replicas_reduce_the_gradients_of_their_stage():
    turns = (8 + 3) * 0.062
    assert step(8, 4, 2) == pytest.approx(turns + 2 * (1 / 2) * (4e9 / 4) / 1e9 + 0.001)


def test_a_remainder_of_layers_costs_a_whole_one():
    assert step(16, 5, 1) == pytest.approx((16 + 4) * (5 * 0.01 + 0.002))
    assert step(16, 5, 1) > step(16, 6, 1)


def test_more_micro_batches_shrink_the_bubble():
    shares = [step(m, 8, 1) / m for m in (8, 16, 64)]
    assert shares[0] > shares[1] > shares[2]
