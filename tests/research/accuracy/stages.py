"""Pipeline parallelism: layers cut into stages, a batch into micro-batches that pass them.

GPipe's bubble (Huang et al., arXiv 1811.06965, 2018): S stages work on M micro-batches in M + S - 1
turns, each as long as the largest stage.
"""

from dataclasses import dataclass

import numpy as np

from recommender.arrays import Floats


@dataclass(frozen=True, slots=True)
class PipelineSpeed:
    """What a step of a pipeline takes its time from."""

    layer_s: float  # forward and backward of one layer on one micro-batch
    handover_s: float  # of each turn: activations to the next stage, launches
    gradient_bytes: float  # of the whole network
    network_bytes_per_s: float
    network_latency_s: float


def pipeline_step_s(
    speed: PipelineSpeed, layers: int, micro_batches: Floats, stages: Floats, replicas: Floats
) -> Floats:
    """Seconds of one step; all arrays (plans,), one stage on each machine.

    (M + S - 1)·(ceil(L/S)·layer + handover) + 2(D-1)/D·G/(S·B) + α·log2 D: a stage reduces its own
    gradients over the D replicas, after the last turn, in the all-reduce form of
    `data_parallel.py`.
    """
    turn = np.ceil(layers / stages) * speed.layer_s + speed.handover_s
    sent = 2.0 * (replicas - 1) / replicas * speed.gradient_bytes / stages
    reduce = sent / speed.network_bytes_per_s + speed.network_latency_s * np.log2(replicas)
    step: Floats = (micro_batches + stages - 1) * turn + reduce
    return step
