"""Model parallelism, tensor and pipeline: ways to cut a network, and the step of each.

A replica of the network lies on t·p GPUs: each layer on t GPUs of one machine, the layers in p
stages. Weights and gradients are divided by t·p, optimizer states by all GPUs.

A stage needs X seconds for all samples of a replica and Y for each micro-batch, so r
micro-batches through p stages take (r + p - 1)·(X/r + Y): the bubble is (p - 1)/(r + p - 1) of
it (GPipe, arXiv 1811.06965; 1F1B, arXiv 2104.04473). r is the best whole number that fits the
memory: more micro-batches shorten the bubble, fewer waste less. Vendors' recipes interleave: each
GPU holds v chunks of layers, which divides the bubble by v and hands activations on v times as
often (arXiv 2104.04473, section 2.2); then a replica has p micro-batches at least, and keeps
1 + (p - 1)/(p·v) times the activations. Where p does not divide the layers, the pipeline runs at
the pace of the stage that has one more. Of the layers of a stage none, all, or as few are computed
again as let one sample fit (Megatron-LM's --recompute-num-layers).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job, Sharding
from recommender.performance.clusters import Clusters, Steps
from recommender.performance.memory import Bytes, gib_lines
from recommender.performance.priors import REFERENCE_WIDTH, Prior
from recommender.performance.strategy import (
    BACKWARD,
    BUCKET_BYTES,
    RECOMPUTED,
    STRAGGLERS,
    Layout,
    StepTerms,
    Strategy,
)

MOST_TENSOR = 8  # GPUs that share a layer: all of a machine, eight at most
DEGREES = (1, 2, 4, 8)
# Whether a machine's GPUs share each layer, and stages; 0: all machines are one pipeline. The
# stages of a pipeline over several machines are then 2, 4, 8, 16 or all of them.
WAYS: tuple[tuple[bool, int], ...] = (
    (True, 1),
    (False, 2),
    (False, 4),
    (False, 8),
    (True, 2),
    (True, 4),
    (True, 8),
    (True, 16),
    (True, 0),
)
STAGES = (1, 2, 4, 8, 16)
MOST_UNEVEN = 1.04  # layers of the longest stage over the mean: 126 layers in 16 stages are 1.016
# Below, `auto` looks at data parallelism only: a GPU holds the network, or scripts shard it. From
# 30 B on scripts take Megatron-LM's layers as well (GPT-NeoX, BLOOM, OPT: 20 to 176 B, 2022).
LEAST_PARAMETERS = {"tuned": 1e9, "typical": 3e10}


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

    Under `auto` large networks in a tuned stack (Megatron-LM, NeMo, torchtitan) are, the largest
    in scripts of the typical stack too, which shard the weights of others.
    """
    if job.hidden < 1 or job.layers < 1 or job.sync != "allreduce":
        return False
    if job.sharding == "auto":
        return job.parameters >= LEAST_PARAMETERS[job.stack]
    return job.sharding in ("tensor", "pipeline")


def lost_share(job: Job, tensor: Floats) -> Floats:
    """What of b0, a micro-batch's loss on a GPU with whole layers, is lost on one of t GPUs.

    1/t as long as a t-th of a layer is as wide as the networks that b0 was fitted on, more
    where it is narrower: its kernels do too little work.
    """
    return np.maximum(1.0 / tensor, min(1.0, REFERENCE_WIDTH / job.hidden))


def splits_of(job: Job, fleet: Clusters, held: float = 0.0) -> Splits:
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

    t divides the width and each of p stages has a layer; a replica is part of a machine that
    divides it, or whole machines that divide the cluster.
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
    good &= (
        np.isin(tensor, DEGREES)
        & (hidden % tensor == 0)
        & (np.ceil(layers / stages) * stages <= MOST_UNEVEN * layers)
    )
    # Every cut once: a layer shared by one GPU, or all machines where they are 2, 4, 8 or 16.
    once = (tensor > 1) | ~shared | ((fixed == max(STAGES)) & (g == 1))
    good &= np.where(fixed > 0, once, (tensor == g) & ~np.isin(n, STAGES))
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


def kept_bytes(needs: Bytes, again: Floats | float) -> Floats:
    """Activations of a sample where a share of the layers is computed again."""
    return np.asarray((1.0 - again) * needs.activations + again * needs.recomputed)


def least_again(needs: Bytes, room: Floats, tensor: Floats, stages: Floats, layers: int) -> Floats:
    """The least share of its layers that a stage computes again so that one sample fits `room`.

    Whole layers; 1 where even that is not enough.
    """
    all_of_it = room * tensor
    last = (all_of_it - needs.logits) * stages
    most = np.where(stages > 1, np.minimum(all_of_it, last), all_of_it - needs.logits)
    spared = max(needs.activations - needs.recomputed, 1e-9)
    each = np.ceil(layers / stages)
    return np.clip(np.ceil((needs.activations - most) / spared * each) / each, 0.0, 1.0)


def sample_bytes(needs: Bytes, again: Floats | float, tensor: Floats, stages: Floats) -> Floats:
    """Bytes that each sample of a micro-batch takes on the GPU that holds most.

    With sequence parallelism all activations are divided by t (arXiv 2205.05198, 2022). The
    first stage keeps p micro-batches of a p-th of the layers, the last one of them and logits.
    `again` is the share of the layers that are computed again.
    """
    kept = kept_bytes(needs, again)
    most = np.maximum(kept, kept / stages + needs.logits) / tensor
    return np.asarray(np.where(stages > 1, most, (kept + needs.logits) / tensor))


def cut_parts_gib(
    needs: Bytes, gpus: float, tensor: float, stages: float, micro_batch: float, again: float
) -> tuple[tuple[str, float], ...]:
    """The memory of the GPU that holds most line by line, in GiB."""
    cut, kept = tensor * stages, float(kept_bytes(needs, again))
    last = stages == 1 or kept / stages + needs.logits > kept
    return gib_lines(
        weights=needs.weights / cut,
        gradients=needs.gradients / cut,
        optimizer=needs.optimizer / gpus,
        activations=micro_batch * kept / tensor / (stages if last else 1.0),
        logits=micro_batch * needs.logits / tensor * last,
        context=needs.context,
    )


REDUCED = 4.0  # all-reduces per layer and micro-batch, two each way (Megatron-LM, 1909.08053)
REDUCED_AGAIN = 6.0  # with the forward pass done twice
# Chunks of layers on each GPU of a pipeline: up to 4, and up to 8 where that is faster. Llama 3.1
# 405B has 7 in NVIDIA's recipe (NeMo, llama31_405b, 2024), one layer a chunk in Meta's own run
# (arXiv 2407.21783, section 3.3); GPT-3 has 6 in MLPerf's (v3.1).
CHUNKS = ((2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0))


@dataclass(frozen=True, slots=True)
class _Turns:
    """What the terms of some cuts follow from; shape (3, cuts), or (cuts,) where all agree.

    Rows: no layer computed again, all of them, and as few as let one sample fit.
    """

    step_s: Floats
    batch: Floats  # samples of a replica
    rounds: Floats  # its micro-batches
    grown_s: Floats  # arithmetic without recomputation
    again: Floats  # share of the layers that are computed again
    launch_s: Floats  # of the gradient tensors and of kernels that start late, per micro-batch
    turns_s: Floats  # all micro-batches through one stage
    waits_s: Floats  # for the gradients of the replicas
    outside_s: Floats  # of the communication, on the network
    inside_s: Floats  # on the links
    feed_s: Floats  # of the input pipeline
    tensor: Floats
    stages: Floats
    waiting: Floats  # turns in which a GPU of the pipeline has nothing to do

    def take(self, again: Ints, cut: Ints) -> "_Turns":
        """Some cuts, each with or without recomputation; (cuts,)."""
        each = (getattr(self, name) for name in self.__slots__)
        return _Turns(*(x[cut] if x.ndim == 1 else x[again, cut] for x in each))


def best_cuts(job: Job, prior: Prior, fleet: Clusters, needs: Bytes) -> StepTerms:
    """The fastest cut of the network on each cluster, one row; inf where there is none."""
    splits = splits_of(job, fleet, needs.states)
    memory, gpus = fleet.memory_bytes[splits.cluster], fleet.gpus[splits.cluster]
    least = sample_bytes(needs, 1.0, splits.tensor, splits.stages) + needs.context
    splits = splits.take(memory >= least + held_bytes(needs, gpus, splits.tensor, splits.stages))
    turns = _turns(job, prior, fleet.take(splits.cluster), needs, splits)
    again = turns.step_s.argmin(axis=0)
    number = np.zeros((len(WAYS), len(fleet)), dtype=np.int64)
    step = np.full(number.shape, np.inf)
    number[splits.way, splits.cluster] = np.arange(len(again))
    step[splits.way, splits.cluster] = turns.step_s.min(axis=0)
    way = step.argmin(axis=0)
    cluster = np.flatnonzero(np.isfinite(step.min(axis=0)))
    cut = number[way[cluster], cluster]
    found = _terms(turns.take(again[cut], cut))
    rows = {}
    for name in StepTerms.__slots__:
        rows[name] = np.full((1, len(fleet)), np.inf if name == "step_s" else 1.0)
        rows[name][0, cluster] = getattr(found, name)
    return StepTerms(**rows)


def chunks_of(job: Job, stages: Floats, counts: Sequence[float]) -> Floats:
    """The most of some numbers of chunks that leave all nearly as many layers; 1: none does.

    Only vendors' recipes interleave (Megatron-LM's virtual stages).
    """
    found = np.ones_like(stages)
    for chunks in counts if job.stack == "tuned" else ():
        longest = np.ceil(job.layers / (stages * chunks)) * stages * chunks
        alike = (longest <= MOST_UNEVEN * job.layers) & (stages > 1)
        found = np.where(alike, chunks, found)
    return found


def cut_terms(job: Job, prior: Prior, fleet: Clusters, needs: Bytes, splits: Splits) -> StepTerms:
    """Every term of some cuts; the fleet has one row per cut.

    Per stage: arithmetic (b/t + r·b0·φ)·N/R/p, φ of `lost_share`, and r·β·k/p; all-reduces of
    b·s·h bytes in each of L/p layers over the links; activations handed on and gradients back,
    over the links or the network; after the pipeline the replicas' gradients, hidden only
    where p = 1. Interleaved where that is faster.
    """
    return _terms(_turns(job, prior, fleet, needs, splits))


def _turns(job: Job, prior: Prior, fleet: Clusters, needs: Bytes, splits: Splits) -> _Turns:
    """The fastest of a plain pipeline and of interleaved ones."""
    best = _turns_of(job, prior, fleet, needs, splits, np.ones_like(splits.stages))
    for counts in CHUNKS:
        chunks = chunks_of(job, splits.stages, counts)
        if (chunks > 1).any():
            other = _turns_of(job, prior, fleet, needs, splits, chunks)
            faster = other.step_s < best.step_s
            best = _Turns(*(_either(faster, other, best, name) for name in _Turns.__slots__))
    return best


def _either(chosen: Bools, one: _Turns, other: _Turns, name: str) -> Floats:
    """A field of one where it is chosen, else of the other."""
    a, b = getattr(one, name), getattr(other, name)
    return np.asarray(a if a is b or a.ndim == 1 else np.where(chosen, a, b))


def _turns_of(
    job: Job, prior: Prior, fleet: Clusters, needs: Bytes, splits: Splits, chunks: Floats
) -> _Turns:
    t, p = splits.tensor, splits.stages
    batch = np.ceil(job.global_batch * t * p / fleet.gpus)
    parts = p * chunks
    uneven = np.ceil(job.layers / parts) * parts / job.layers  # the longest one sets the pace
    kept = 1.0 + np.where(chunks > 1, (p - 1.0) / (p * chunks), 0.0)
    room = fleet.memory_bytes - needs.context - held_bytes(needs, fleet.gpus, t, p)
    some = least_again(needs, room / kept, t, p, job.layers)
    again = np.stack([np.zeros_like(some), np.ones_like(some), some])
    sample = sample_bytes(needs, again, t, p) * kept
    fits = np.floor(room / np.maximum(sample, 1e-9))
    runs = (fits >= 1) & (fleet.gpus <= t * p * job.global_batch)
    runs &= (chunks <= 1) | (batch >= p)
    least = np.ceil(batch / np.clip(fits, 1.0, batch))
    least = np.minimum(np.where(chunks > 1, np.maximum(least, p), least), batch)
    sample_s = uneven * fleet.gpus / (fleet.compute_per_s * t * p)
    times = 1.0 + RECOMPUTED * again
    launch = prior.tensor_s * job.gradient_tensors / p
    lost = prior.batch_penalty * t * lost_share(job, t)  # samples of a replica
    inside, between, each = _talk(job, fleet, splits, chunks, again)
    all_s = batch * (sample_s * times + inside + between)
    each_s = lost * sample_s * times + launch + each
    waiting = (p - 1.0) / chunks  # turns that the pipeline takes to fill and to empty
    rounds = _best_rounds(all_s, each_s, least, batch, waiting)
    started_s = prior.cut_launch_s / p
    rounds = _eager_rounds(rounds, all_s, each_s, least, waiting, started_s)
    late = 1.0 + STRAGGLERS * np.log2(fleet.gpus)
    grown = (batch + rounds * lost) * sample_s
    idle = np.maximum(rounds * started_s - all_s - rounds * each_s, 0.0)  # kernels start too late
    turns = (all_s + rounds * each_s + idle) * late
    near, far = _gradients(fleet, needs, splits)
    busy = grown * times + rounds * launch
    hidden = np.where(p > 1, 0.0, prior.overlap * BACKWARD * busy / rounds)
    waits = np.maximum(near + far - hidden, 0.0)
    feed = job.global_batch / np.minimum(fleet.prepare_per_s, fleet.fetch_per_s)
    step = np.maximum(turns * (1.0 + waiting / rounds) + waits, feed)
    return _Turns(
        step_s=np.where(runs, step, np.inf),
        batch=batch,
        rounds=rounds,
        grown_s=grown,
        again=again,
        launch_s=launch + idle / rounds,
        turns_s=turns,
        waits_s=waits,
        outside_s=batch * between + rounds * each + far,
        inside_s=batch * inside + near,
        feed_s=feed,
        tensor=t,
        stages=p,
        waiting=np.broadcast_to(waiting, rounds.shape),
    )


def _terms(c: _Turns) -> StepTerms:
    """The parts of the steps of some cuts."""
    compute = c.grown_s + c.rounds * c.launch_s
    again = RECOMPUTED * c.again * c.grown_s
    bubble = c.waiting / c.rounds * c.turns_s
    talked = np.maximum(c.outside_s + c.inside_s, 1e-30)
    return StepTerms(
        step_s=c.step_s,
        compute_s=compute,
        recompute_s=again,
        exposed_s=c.turns_s - compute - again + c.waits_s,
        bubble_s=bubble,
        input_s=np.maximum(c.feed_s - c.turns_s - bubble - c.waits_s, 0.0),
        network_share=c.outside_s / talked,
        micro_batch=np.ceil(c.batch / c.rounds),
        accumulation=c.rounds,
        tensor=c.tensor,
        stages=c.stages,
        again=c.again,
    )


def _best_rounds(
    all_s: Floats, each_s: Floats, least: Floats, most: Floats, waiting: Floats
) -> Floats:
    """The whole number r from `least` to `most` that minimises (r + w)·(X/r + Y), w turns waiting.

    The sum is convex in r with its least at sqrt(w·X/Y).
    """
    waste = waiting * all_s
    below = np.clip(np.floor(np.sqrt(waste / np.maximum(each_s, 1e-300))), least, most)
    above = np.minimum(below + 1.0, most)
    later = waste / above + above * each_s < waste / below + below * each_s
    return np.where(later, above, below)


def _eager_rounds(
    rounds: Floats,
    all_s: Floats,
    each_s: Floats,
    least: Floats,
    waiting: Floats,
    started_s: Floats,
) -> Floats:
    """Fewer micro-batches where a program cannot start the kernels of so many in time.

    The least of (r + w)·max(X/r + Y, λ): up to r = X/(λ - Y) the first term counts, then the
    second, which only grows.
    """
    bend = np.floor(all_s / np.maximum(started_s - each_s, 1e-300))
    below = np.maximum(np.minimum(rounds, bend), least)
    above = np.maximum(np.minimum(rounds, bend + 1.0), least)

    def turns_s(r: Floats) -> Floats:
        return np.asarray((r + waiting) * np.maximum(all_s / r + each_s, started_s))

    return np.where(turns_s(above) < turns_s(below), above, below)


def _talk(
    job: Job, fleet: Clusters, splits: Splits, chunks: Floats, again: Floats
) -> tuple[Floats, Floats, Floats]:
    """Seconds per sample on the links and on the network, and per micro-batch on the network.

    A stage sends each sample's activations on and their gradients back, once for each chunk of
    its layers and each of its t GPUs a t-th; a machine's network carries them where the replica
    spans machines.
    """
    t, p = splits.tensor, splits.stages
    wide = 4.0 if job.precision in ("fp32", "tf32") else 2.0
    sent = float(job.tokens_per_sample) * job.hidden * wide
    across = t * p > fleet.gpus_per_machine
    handed = 2.0 * sent * (p > 1) * chunks
    reduced = (REDUCED + again * (REDUCED_AGAIN - REDUCED)) * (job.layers * 2.0 * sent)
    local = np.where(across, 0.0, handed / t)
    inside = (reduced * ((t - 1.0) / (t * p)) + local) / fleet.intra_bytes_per_s
    rate = np.where(across, fleet.network_bytes_per_s, np.inf)
    each = 2.0 * chunks * (fleet.network_half_bytes / rate + across * fleet.network_latency_s)
    return inside, handed / rate, each


def _gradients(fleet: Clusters, needs: Bytes, splits: Splits) -> tuple[Floats, Floats]:
    """Seconds in which the replicas sum their gradients, on the links and on the network."""
    replica = splits.tensor * splits.stages
    g, n = fleet.gpus_per_machine, fleet.machines
    alike = np.maximum(g / replica, 1.0)  # replicas of one machine
    share = np.minimum(g / replica, 1.0)  # of the network that a machine holds
    others = n * share  # machines that hold the same part
    near = 2.0 * needs.reduced / replica * (1.0 - 1.0 / alike) / fleet.intra_bytes_per_s
    message = np.minimum(BUCKET_BYTES, needs.reduced * share)
    alone = others <= 1.0
    rate = fleet.network_bytes_per_s * message / (message + fleet.network_half_bytes)
    sent = 2.0 * needs.reduced * share * (1.0 - 1.0 / np.maximum(others, 1.0))
    far = sent / np.where(alone, 1.0, rate)
    far = far + fleet.network_latency_s * np.log2(np.maximum(others, 1.0))
    return near, np.where(alone, 0.0, far)


class ModelParallel(Strategy):
    """Tensor and pipeline parallelism; one row, the best cut of each cluster."""

    words = ("tensor", "pipeline")
    whole_network = False
    divides_states = True
    hidden_share = 1.0

    def allowed(self, job: Job) -> bool:
        """Where the network may be cut."""
        return splittable(job)

    def layout(self, needs: Bytes, one: Clusters, step: Steps) -> Layout:
        """The degrees of the cut, and the memory of the GPU that holds most."""
        t, p, gpus = float(step.tensor[0]), float(step.stages[0]), float(one.gpus[0])
        degrees = (("TP", t), ("PP", p), ("DP", gpus / (t * p)))
        label = " × ".join(f"{name} {degree:.0f}" for name, degree in degrees if degree > 1)
        micro, again = float(step.micro_batch[0]), float(step.again[0])
        return Layout(label, cut_parts_gib(needs, gpus, t, p, micro, again))

    def least_memory_bytes(self, job: Job, needs: Bytes, one: Clusters) -> list[float]:
        """Of every cut, with everything recomputed."""
        if not splittable(job):
            return []
        cuts, gpus = splits_of(job, one), float(one.gpus[0])
        cuts = cuts.take(gpus <= cuts.tensor * cuts.stages * job.global_batch)
        held = held_bytes(needs, gpus, cuts.tensor, cuts.stages) + needs.context
        least: list[float] = (held + sample_bytes(needs, 1.0, cuts.tensor, cuts.stages)).tolist()
        return least

    def why_none(self, job: Job, one: Clusters) -> str:
        """No cut is known, or none divides the cluster and the layers."""
        if not splittable(job):
            return f"{job.sharding} parallelism needs a transformer of known width and layers"
        return (
            f"no {job.sharding} parallelism of 2, 4 or 8 divides {int(one.gpus[0])} GPUs on "
            f"{int(one.machines[0])} machines and {job.layers} layers"
        )

    def least_penalty(self, job: Job, prior: Prior) -> float:
        """The least share of b0 that is lost where layers are shared.

        p stages run at least p turns, in each of which they lose a p-th.
        """
        return prior.batch_penalty * float(lost_share(job, np.array([MOST_TENSOR]))[0])

    def least_bytes(self, needs: Bytes) -> Bytes:
        """Cuts divide a sample's activations by eight at most, and leave logits to one stage."""
        kept, least = needs.activations / MOST_TENSOR, needs.recomputed / MOST_TENSOR
        return replace(needs, activations=kept, recomputed=least, logits=0.0)

    def least_inside_bytes(self, job: Job, needs: Bytes) -> float:
        """Next to nothing: stages of few samples."""
        return 0.0 if splittable(job) else np.inf

    def one_gpu_shardings(self, word: Sharding) -> tuple[Sharding, ...]:
        """Replicas inside a machine send the gradients of a whole network, as without cuts."""
        return ("ddp",) if word == "tensor" else ("ddp", "pipeline")


MODEL_PARALLEL = ModelParallel()
