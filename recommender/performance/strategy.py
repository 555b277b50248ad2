"""The interface of parallelism strategies, and the terms of a step that they compute.

`step.py` lists the strategies; `data_parallel.py` holds those in which every GPU runs the
whole network, `model_parallel.py` those that divide it. `step.py` and the search use only the list,
so a new strategy is one class and one line there.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job, Sharding
from recommender.performance.clusters import Clusters, Steps
from recommender.performance.memory import Bytes

BUCKET_BYTES = 25 * 2.0**20  # torch DistributedDataParallel, bucket_cap_mb=25 (docs, 2.9)
BACKWARD = 2.0 / 3.0  # share of a step's arithmetic that is the backward pass
# Share of the compute by which the slowest of twice as many GPUs is later: 0.5 % was best in every
# one of the published sources that was left out (docs/research/accuracy-scaling.md; 2026-11).
STRAGGLERS = 0.005


@dataclass(frozen=True, slots=True)
class StepTerms:
    """Seconds of one step, part by part; shape (rows, clusters), one row per layout tried."""

    step_s: Floats  # inf where it cannot run
    compute_s: Floats
    recompute_s: Floats
    exposed_s: Floats  # communication that nothing hides
    bubble_s: Floats  # stages wait for the first and the last micro-batch
    input_s: Floats
    network_share: Floats  # of the communication, the part between machines
    micro_batch: Floats
    accumulation: Floats
    tensor: Floats  # GPUs that share a layer
    context: Floats  # groups of them that share a sequence
    stages: Floats  # of a pipeline
    sharded: Floats  # 1 where a layout divides the weights among all GPUs as well
    experts: Floats  # GPUs that divide the experts of a layer
    again: Floats  # share of the layers that are computed again in the backward pass
    least_bytes: Floats  # of memory, with one sample at once and all layers computed again


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """How the network is laid out on the GPUs, in words, and the memory of one of them."""

    label: str  # "fsdp", or degrees: "TP 8 × PP 4 × DP 2", "TP 8 × FSDP 4"
    memory_parts_gib: tuple[tuple[str, float], ...]


class Strategy(ABC):
    """One way to divide a network's training among GPUs."""

    words: ClassVar[tuple[Sharding, ...]]  # values of the job's `sharding` that ask for it
    whole_network: ClassVar[bool]  # whether every GPU runs all of it, on samples of its own

    @abstractmethod
    def allowed(self, job: Job) -> bool:
        """Whether the job may be trained this way, on any cluster."""

    @abstractmethod
    def layout(self, needs: Bytes, one: Clusters, step: Steps) -> LayoutReport:
        """The layout on one cluster with this step, and the memory of a GPU."""

    @abstractmethod
    def min_memory_bytes(self, job: Job, needs: Bytes, one: Clusters) -> list[float]:
        """Memory of a GPU of one cluster for one sample, for each possible layout."""

    @abstractmethod
    def why_none(self, job: Job, one: Clusters) -> str:
        """Why the strategy does not suit a cluster, whatever the memory."""
