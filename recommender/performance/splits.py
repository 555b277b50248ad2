"""Ways to cut a network inside its layers (tensor parallelism) and between them (pipelines).

A replica of the network lies on t·p GPUs: each layer on t GPUs of one machine, the layers in p
stages. Weights and gradients are divided by t·p, optimizer states by all GPUs.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from recommender.job import Job
from recommender.performance.fleet import Fleet
from recommender.performance.memory import GIB, Bytes
from recommender.performance.priors import REFERENCE_WIDTH, Prior

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_TENSOR = 8  # GPUs that share a layer: all of a machine, eight at most
DEGREES = (1, 2, 4, 8)
# Whether a machine's GPUs share each layer, and stages; 0: all machines are one pipeline. The
# stages of a pipeline over several machines are then 2, 4, 8 or all of them.
WAYS: tuple[tuple[bool, int], ...] = (
    (True, 1),
    (False, 2),
    (False, 4),
    (False, 8),
    (True, 2),
    (True, 4),
    (True, 8),
    (True, 0),
)
LEAST_PARAMETERS = 1e9  # below, `auto` looks at data parallelism only: a GPU holds the network


@dataclass(frozen=True, slots=True)
class Splits:
    """Cuts of the network, each on one cluster; shape (pairs,)."""

    way: Ints  # row of WAYS
    cluster: Ints
    tensor: Floats  # t, GPUs that share a layer
    stages: Floats  # p

    def take(self, rows: Ints | Bools) -> "Splits":
        """Some of the cuts, in their order."""
        return Splits(*(getattr(self, name)[rows] for name in self.__slots__))


def splittable(job: Job) -> bool:
    """Whether the network of a job may be cut: a transformer whose software can, or is asked to.

    Under `auto` only large networks in a tuned stack (Megatron-LM, NeMo, torchtitan) are: scripts
    of the typical stack shard weights, but do not cut layers.
    """
    if job.hidden < 1 or job.layers < 1 or job.sync != "allreduce":
        return False
    if job.sharding == "auto":
        return job.stack == "tuned" and job.parameters >= LEAST_PARAMETERS
    return job.sharding in ("tensor", "pipeline")


def lost_share(job: Job, tensor: Floats) -> Floats:
    """What of b0, a micro-batch's loss on a GPU with whole layers, is lost on one of t GPUs.

    1/t as long as a t-th of a layer is as wide as the networks that b0 was fitted on, more
    where it is narrower: its kernels do too little work.
    """
    return np.maximum(1.0 / tensor, min(1.0, REFERENCE_WIDTH / job.hidden))


def least_penalty(job: Job, prior: Prior) -> float:
    """Samples' worth of time that a micro-batch loses at least, per GPU of the cluster.

    b0 where every GPU runs the network; its least share where layers are shared. p stages run
    at least p turns, in each of which they lose a p-th.
    """
    if not splittable(job):
        return prior.batch_penalty
    return prior.batch_penalty * float(lost_share(job, np.array([MOST_TENSOR]))[0])


def splits_of(job: Job, fleet: Fleet, held: float = 0.0) -> Splits:
    """Every way to cut the network on every cluster whose GPUs hold so many bytes together.

    Machines must be of one size and know their network where there are several.
    """
    whole = np.floor(fleet.gpus_per_machine)
    fits = (fleet.gpus == fleet.machines * whole) & (fleet.gpus >= 2) & (fleet.compute_per_s > 0)
    fits &= (fleet.machines <= 1) | (fleet.network_bytes_per_s > 0)
    fits &= fleet.memory_bytes * fleet.gpus >= held
    rows = np.flatnonzero(fits)
    if not len(rows):
        return Splits(rows, rows, np.zeros(0), np.zeros(0))
    n, g = fleet.machines[rows].astype(np.int64), whole[rows].astype(np.int64)
    possible, tensor, stages = _ways(
        job.hidden, job.layers, job.sharding, int(n.max()), int(g.max())
    )
    way, at = np.nonzero(possible[:, n, g])
    degrees = (way, n[at], g[at])
    return Splits(way, rows[at], tensor[degrees], stages[degrees])


@lru_cache(maxsize=64)
def _ways(
    hidden: int, layers: int, sharding: str, machines: int, gpus: int
) -> tuple[Bools, Floats, Floats]:
    """Which ways there are on n machines of g GPUs, with their t and p; (ways, n, g).

    t divides the width and p the layers; a replica is part of a machine that divides it, or
    whole machines that divide the cluster.
    """
    shared = np.array([way[0] for way in WAYS])[:, None, None]
    fixed = np.array([way[1] for way in WAYS])[:, None, None]
    n, g = np.arange(machines + 1)[None, :, None], np.arange(gpus + 1)[None, None, :]
    tensor = np.maximum(np.where(shared, np.minimum(g, MOST_TENSOR), 1) + 0 * n, 1)
    stages = np.maximum(np.where(fixed > 0, fixed, n) + 0 * g, 1)
    replica, size = tensor * stages, np.maximum(g, 1)
    inside = (replica <= g) & (g % replica == 0)
    across = (replica > g) & (replica % size == 0) & (n % np.maximum(replica // size, 1) == 0)
    good = (inside | across) & (n >= 1) & (g >= 1)
    good &= np.isin(tensor, DEGREES) & (hidden % tensor == 0) & (layers % stages == 0)
    # Every cut once: a layer shared by one GPU, or all machines where they are 2, 4 or 8.
    good &= np.where(fixed > 0, (tensor > 1) | ~shared, (tensor == g) & ~np.isin(n, DEGREES))
    if sharding == "tensor":
        good &= stages == 1
    elif sharding == "pipeline":
        good &= stages > 1
    return good, tensor.astype(np.float64), stages.astype(np.float64)


def held_bytes(needs: Bytes, gpus: Floats | float, tensor: Floats, stages: Floats) -> Floats:
    """States that a GPU holds: the optimizer's are divided among the replicas as well.

    ZeRO stage 1, as in Megatron-LM's distributed optimizer (arXiv 1910.02054, 2019).
    """
    return (needs.weights + needs.gradients) / (tensor * stages) + needs.optimizer / gpus


def sample_bytes(needs: Bytes, recompute: bool, tensor: Floats, stages: Floats) -> Floats:
    """Bytes that each sample of a micro-batch takes on the GPU that holds most.

    With sequence parallelism all activations are divided by t (arXiv 2205.05198, 2022). The
    first stage keeps p micro-batches of a p-th of the layers, the last one of them and logits.
    """
    kept = needs.recomputed if recompute else needs.activations
    most = np.maximum(kept, kept / stages + needs.logits) / tensor
    return np.asarray(np.where(stages > 1, most, (kept + needs.logits) / tensor))


def least_bytes(job: Job, needs: Bytes) -> Bytes:
    """Bytes of which no strategy of the job holds less on N GPUs than states/N and one sample.

    Cuts divide a sample's activations by eight at most, and leave logits to the last stage.
    """
    if not splittable(job):
        return needs
    kept, least = needs.activations / MOST_TENSOR, needs.recomputed / MOST_TENSOR
    return replace(needs, activations=kept, recomputed=least, logits=0.0)


def cut_parts_gib(
    needs: Bytes, gpus: float, tensor: float, stages: float, micro_batch: float, recompute: bool
) -> tuple[tuple[str, float], ...]:
    """The memory of the GPU that holds most line by line, in GiB."""
    cut, kept = tensor * stages, needs.recomputed if recompute else needs.activations
    last = stages == 1 or kept / stages + needs.logits > kept
    lines = (
        ("weights", needs.weights / cut),
        ("gradients", needs.gradients / cut),
        ("optimizer", needs.optimizer / gpus),
        ("activations", micro_batch * kept / tensor / (stages if last else 1.0)),
        ("logits", micro_batch * needs.logits / tensor * last),
        ("context", needs.context),
    )
    return tuple((name, value / GIB) for name, value in lines)
