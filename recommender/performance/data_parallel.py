"""Data parallelism, where every GPU runs the whole network: DDP, HSDP and FSDP.

The strategies differ in how they divide the states (weights, gradients, optimizer) among GPUs, in
their traffic, and in the arithmetic that hides it; the rest of the step is shared. Each has two
rows of every array of shape (rows, clusters): without recomputation, and with full recomputation.
`docs/models.md`, "Throughput", derives the formulas.
"""

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.job.job import SHARDINGS, Job, Sharding
from recommender.performance.clusters import Clusters, Steps
from recommender.performance.memory import (
    Bytes,
    extra_gathered_bytes,
    gib_lines,
    largest_micro_batch,
    layer_excess_bytes,
    per_sample,
)
from recommender.performance.parameter_server import alone_s, service_of, updates_per_s
from recommender.performance.priors import Prior
from recommender.performance.strategy import (
    BACKWARD,
    BUCKET_BYTES,
    STRAGGLERS,
    LayoutReport,
    StepTerms,
    Strategy,
)

# What DeepSpeed's stages hold in an update, in copies of the weights: 32-bit gradients, and two of
# what lies between under PyTorch's AdamW. ZeRO-3 does so for a group at a time (`sub_group_size`:
# 1e9; docs of DeepSpeed, read 2026-11-29). Fitted: 2 are 12 % too few for Qwen 1.8B, Qwen2.5 7B and
# DeepSeek Coder 33B (docs/research/memory.md), DeepSpeed's own fused AdamW needs 1.
ZERO_COPIES = 3.0
GROUP_PARAMETERS = 1e9


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a strategy sends in one step, before the ring's (n - 1)/n; shape (2, clusters)."""

    inside_bytes: Floats | float  # of a GPU, on the links of its machine
    network_bytes: Floats | float  # of a machine
    message_bytes: float  # of one call between machines
    calls: Floats | float  # between machines


class DataParallel(Strategy):
    """A strategy in which every GPU runs the whole network on its own samples."""

    name: ClassVar[Sharding]
    whole_network = True

    @abstractmethod
    def shards(self, fleet: Clusters) -> Floats:
        """The number of parts into which the states are divided; (clusters,)."""

    @abstractmethod
    def traffic(self, job: Job, needs: Bytes, rounds: Floats | float) -> Traffic:
        """The traffic of a step with so many micro-batches."""

    @abstractmethod
    def exposed_s(self, inside: Floats, between: Floats, last: Floats, all_of_it: Floats) -> Floats:
        """Seconds of communication that are not hidden; negative if all are.

        `last` is what the last backward pass hides, `all_of_it` what the whole compute hides.
        """

    def updated(self, fleet: Clusters) -> Floats:
        """The number of parts in which the optimizer updates the weights; (clusters,)."""
        return self.shards(fleet)

    def held_bytes(self, needs: Bytes, fleet: Clusters) -> Floats:
        """Bytes of states on a GPU, including gathered ones; (clusters,)."""
        shards = np.maximum(self.shards(fleet), 1.0)
        return needs.states / shards + extra_gathered_bytes(needs, shards)

    def updating_bytes(self, needs: Bytes, fleet: Clusters) -> Floats:
        """Bytes of states on a GPU during an update, and what it holds besides; (clusters,)."""
        shards = np.maximum(self.shards(fleet), 1.0)
        return (needs.states + needs.update) / shards

    def held_parts(self, needs: Bytes, fleet: Clusters) -> tuple[Floats, Floats, Floats]:
        """Weights, gradients and optimizer states on a GPU; (clusters,) each."""
        shards = np.maximum(self.shards(fleet), 1.0)
        weights = needs.weights / shards + extra_gathered_bytes(needs, shards)
        return weights, needs.gradients / shards, needs.optimizer / shards

    def suits(self, fleet: Clusters) -> Bools:
        """Whether the strategy is useful on each cluster; (clusters,)."""
        return np.ones(len(fleet), dtype=bool)

    def allowed(self, job: Job) -> bool:
        """Whether the user leaves the choice or requests this strategy."""
        return job.sharding in ("auto", self.name)

    def layout(self, needs: Bytes, one: Clusters, step: Steps) -> LayoutReport:
        """The strategy's name, and the memory of a GPU."""
        weights, gradients, optimizer = (float(part[0]) for part in self.held_parts(needs, one))
        micro, again = float(step.micro_batch[0]), bool(step.recompute_s[0] > 0)
        kept = needs.inputs + layer_excess_bytes(needs) if again else needs.activations
        activations, logits = micro * kept, micro * needs.logits
        held = weights, gradients, optimizer, activations, logits, needs.context
        more = float(self.updating_bytes(needs, one)[0]) + needs.context - sum(held)
        return LayoutReport(self.name, gib_lines(*held, update=max(more, 0.0)))

    def min_memory_bytes(self, job: Job, needs: Bytes, one: Clusters) -> list[float]:
        """Memory without and with full recomputation."""
        if not self.allowed(job) or not job.may_have(one.gpus)[0]:
            return []
        held, updating = (
            float(each(needs, one)[0]) for each in (self.held_bytes, self.updating_bytes)
        )
        trains = (held + per_sample(needs, again) for again in (False, True))
        return [needs.context + max(each, updating) for each in trains]

    def why_none(self, job: Job, one: Clusters) -> str:
        """The reason: fewer samples than GPUs, or a larger batch than allowed."""
        gpus = int(one.gpus[0])
        if job.batch_per_gpu:
            has, most = float(job.batch_on(gpus)), job.max_global_batch or math.inf
            return f"{gpus} GPUs make a global batch of {has:,.0f}; it may be {most:,.0f} at most"
        return f"{gpus} GPUs share a batch of {job.global_batch}: less than one sample each"


def _gathered_bytes(needs: Bytes, rounds: Floats | float) -> Floats | float:
    """Two gathers and one reduction of every micro-batch."""
    return rounds * (2.0 * needs.gathered + needs.reduced)


def _layer_bytes(job: Job, needs: Bytes) -> float:
    return needs.gathered / job.layers if job.layers else BUCKET_BYTES


class Ddp(DataParallel):
    """Every GPU holds all states; gradients are summed once per step during the last backward pass.

    2(n-1)/n·G between machines and 2(g-1)/g·G inside.
    """

    name: ClassVar[Sharding] = "ddp"
    words: ClassVar[tuple[Sharding, ...]] = ("ddp",)

    def shards(self, fleet: Clusters) -> Floats:
        """One: the states are not divided."""
        return np.ones_like(fleet.gpus)

    def traffic(self, job: Job, needs: Bytes, rounds: Floats | float) -> Traffic:
        """An all-reduce of the gradients in buckets."""
        reduced = 2.0 * needs.reduced
        return Traffic(reduced, reduced, min(BUCKET_BYTES, needs.reduced), 1.0)

    def exposed_s(self, inside: Floats, between: Floats, last: Floats, all_of_it: Floats) -> Floats:
        """The part that the last backward pass does not hide."""
        return inside + between - last


class Zero1(Ddp):
    """DDP whose optimizer states are divided among all GPUs (ZeRO-1, arXiv 1910.02054).

    Gradients are reduced once per step and the new weights are gathered, as many bytes together.
    """

    name: ClassVar[Sharding] = "zero1"
    words: ClassVar[tuple[Sharding, ...]] = ("zero1",)

    def updating_bytes(self, needs: Bytes, fleet: Clusters) -> Floats:
        """Whole weights, and a share of the rest, of 32-bit gradients and of what is between."""
        shared = needs.gradients + needs.optimizer + ZERO_COPIES * needs.update
        return needs.weights + shared / np.maximum(fleet.gpus, 1.0)

    def updated(self, fleet: Clusters) -> Floats:
        """The number of GPUs of the cluster."""
        return fleet.gpus

    def held_parts(self, needs: Bytes, fleet: Clusters) -> tuple[Floats, Floats, Floats]:
        """Whole weights and gradients, a share of the optimizer states."""
        whole, shards = np.ones_like(fleet.gpus), np.maximum(fleet.gpus, 1.0)
        return needs.weights * whole, needs.gradients * whole, needs.optimizer / shards

    def held_bytes(self, needs: Bytes, fleet: Clusters) -> Floats:
        """The sum of its parts."""
        weights, gradients, optimizer = self.held_parts(needs, fleet)
        return weights + gradients + optimizer

    def traffic(self, job: Job, needs: Bytes, rounds: Floats | float) -> Traffic:
        """One reduction of the gradients, one gather of the weights."""
        sent = needs.reduced + needs.gathered
        return Traffic(sent, sent, min(BUCKET_BYTES, needs.reduced), 2.0)


class Zero2(Zero1):
    """ZeRO-1 whose gradients are divided as well, and so reduced in every micro-batch.

    They are whole before that: DeepSpeed counts 4 bytes a parameter besides what it divides
    (`estimate_zero2_model_states_mem_needs`, read 2026-11-29).
    """

    name: ClassVar[Sharding] = "zero2"
    words: ClassVar[tuple[Sharding, ...]] = ("zero2",)

    def traffic(self, job: Job, needs: Bytes, rounds: Floats | float) -> Traffic:
        """A reduction in every micro-batch, one gather of the weights."""
        sent = rounds * needs.reduced + needs.gathered
        return Traffic(sent, sent, min(BUCKET_BYTES, needs.reduced), rounds + 1.0)


class Fsdp(DataParallel):
    """The states are divided among all GPUs of the cluster; weights are gathered layer by layer.

    Each micro-batch has two gathers and one reduction, hidden behind all of the compute.
    """

    name: ClassVar[Sharding] = "fsdp"
    words: ClassVar[tuple[Sharding, ...]] = ("fsdp",)

    def shards(self, fleet: Clusters) -> Floats:
        """The number of GPUs of the cluster."""
        return fleet.gpus

    def traffic(self, job: Job, needs: Bytes, rounds: Floats | float) -> Traffic:
        """Gathers and reductions, layer by layer, inside machines and between them."""
        gathered = _gathered_bytes(needs, rounds)
        return Traffic(gathered, gathered, _layer_bytes(job, needs), 3.0 * rounds)

    def exposed_s(self, inside: Floats, between: Floats, last: Floats, all_of_it: Floats) -> Floats:
        """The part that the whole compute does not hide."""
        return inside + between - all_of_it


class Zero3(Fsdp):
    """DeepSpeed's ZeRO-3: FSDP that updates its shard in groups, from 32-bit gradients."""

    name = "zero3"
    words = ("zero3",)

    def updating_bytes(self, needs: Bytes, fleet: Clusters) -> Floats:
        """All states, and for a group of weights 32-bit gradients and what is between."""
        shards = np.maximum(self.shards(fleet), 1.0)
        part = np.minimum(1.0 / shards, GROUP_PARAMETERS / max(needs.trained, 1.0))
        return needs.states / shards + ZERO_COPIES * needs.update * part


class Hsdp(DataParallel):
    """The states are divided among the GPUs of a machine; machines hold replicas and sum gradients.

    FSDP's traffic inside the machine, gradients between machines once per step.
    """

    name = "hsdp"
    words = ("hsdp",)

    def shards(self, fleet: Clusters) -> Floats:
        """The number of GPUs of a machine."""
        return fleet.gpus_per_machine

    def suits(self, fleet: Clusters) -> Bools:
        """Machines must have the same size, or the smallest would hold too much."""
        return np.asarray(fleet.gpus == fleet.machines * fleet.gpus_per_machine)

    def traffic(self, job: Job, needs: Bytes, rounds: Floats | float) -> Traffic:
        """Gathers inside machines, an all-reduce of the gradients between them."""
        gathered = _gathered_bytes(needs, rounds)
        return Traffic(gathered, 2.0 * needs.reduced, _layer_bytes(job, needs), 1.0)

    def exposed_s(self, inside: Floats, between: Floats, last: Floats, all_of_it: Floats) -> Floats:
        """The larger of gradients behind the last backward pass and all traffic behind compute."""
        return np.maximum(between - last, inside + between - all_of_it)


DATA_PARALLEL: tuple[DataParallel, ...] = (Ddp(), Hsdp(), Fsdp())
# DeepSpeed's stages take the rows of DDP and of FSDP where a job asks for them.
ON_REQUEST: dict[str, DataParallel] = {each.name: each for each in (Zero1(), Zero2(), Zero3())}
_ROW_OF = {"zero1": "ddp", "zero2": "ddp", "zero3": "fsdp"}
# Rows of the arrays: the strategy's name, and whether all activations are recomputed.
ROWS: tuple[tuple[str, bool], ...] = tuple(
    (strategy.name, again) for strategy in DATA_PARALLEL for again in (False, True)
)
RECOMPUTE = np.array([again for _, again in ROWS])
SHARDED = np.array([name != "ddp" for name, _ in ROWS])
ALLOWED: dict[str, Bools] = {
    word: np.array([_ROW_OF.get(word, word) in ("auto", name) for name, _ in ROWS])
    for word in SHARDINGS
}


def data_parallel(job: Job) -> tuple[DataParallel, ...]:
    """The strategies of the rows for a job."""
    row = _ROW_OF.get(job.sharding)
    return tuple(ON_REQUEST[job.sharding] if each.name == row else each for each in DATA_PARALLEL)


def data_parallel_terms(job: Job, prior: Prior, fleet: Clusters, needs: Bytes) -> StepTerms:
    """Every term of every row on every cluster.

    step = max(compute + recompute + exposed, input), all per GPU, with compute = max((b +
    ga·b0)·N/R, ga·λ) + ga·β·k for b = ceil(B/N) samples in ga = ceil(b/m) micro-batches, whose
    sizes differ by at most one; with adapters the sum of both, and the passes over the weights of
    `overheads.py`. The step never gets shorter when compute, memory, network or links inside
    the machine get slower, and is never below B/R.
    """
    each = data_parallel(job)
    held = np.repeat(np.stack([s.held_bytes(needs, fleet) for s in each]), 2, axis=0)
    updating = np.repeat(np.stack([s.updating_bytes(needs, fleet) for s in each]), 2, axis=0)
    shards = np.maximum(np.repeat(np.stack([s.updated(fleet) for s in each]), 2, axis=0), 1.0)
    micro = largest_micro_batch(needs, fleet.memory_bytes, held, RECOMPUTE, updating)
    batch = np.ceil(job.batch_on(fleet.gpus) / np.maximum(fleet.gpus, 1.0))
    possible = (micro >= 1) & _runnable(job, fleet)
    micro = np.clip(micro, 1.0, batch)
    rounds = np.ceil(batch / micro)
    with np.errstate(divide="ignore", invalid="ignore"):
        sample_s = np.where(fleet.compute_per_s > 0, fleet.gpus / fleet.compute_per_s, np.inf)
        arithmetic = (batch + rounds * prior.batch_penalty) * sample_s
        starts = rounds * (prior.launch_s + SHARDED[:, None] * prior.gathered_launch_s)
        unpacked = rounds * prior.quantized_bytes / fleet.device_bytes_per_s  # of one pass
        updated = prior.update_bytes / shards / fleet.device_bytes_per_s
        compute = _started(prior, arithmetic, starts) + 2.0 * unpacked + updated
        compute = compute + rounds * prior.tensor_s * job.gradient_tensors
        again = _started(prior, job.recomputed_share * arithmetic, starts / 2.0) + unpacked
        again = np.where(RECOMPUTE[:, None], again, 0.0)
        busy = compute + again
        exposed, network = _exposed(job, prior, fleet, needs, rounds, busy)
        feed = job.batch_on(fleet.gpus) / np.minimum(fleet.prepare_per_s, fleet.fetch_per_s)
        waiting = np.maximum(feed - busy - exposed, 0.0)
        step = np.where(possible, busy + exposed + waiting, np.inf)
    return StepTerms(
        step_s=np.where(np.isnan(step), np.inf, step),
        compute_s=compute,
        recompute_s=again,
        exposed_s=exposed,
        bubble_s=np.zeros(step.shape),
        input_s=waiting,
        network_share=network,
        micro_batch=np.ceil(batch / rounds),
        accumulation=rounds,
        tensor=(whole := np.ones(step.shape)),
        context=whole,
        stages=whole,
        sharded=np.zeros(step.shape),
        experts=whole,
        again=np.broadcast_to(RECOMPUTE[:, None].astype(np.float64), step.shape),
        least_bytes=needs.context + np.maximum(held + per_sample(needs, True), updating),
    )


def _started(prior: Prior, arithmetic: Floats, starts: Floats) -> Floats:
    """Seconds of some arithmetic and of starting its kernels, which adapters do not hide."""
    return arithmetic + starts if prior.adapters else np.maximum(arithmetic, starts)


def _runnable(job: Job, fleet: Clusters) -> Bools:
    """Where a strategy is wanted and makes sense, regardless of memory; (rows, clusters)."""
    enough = (fleet.gpus >= 1) & job.may_have(fleet.gpus) & (fleet.compute_per_s > 0)
    linked = (fleet.machines <= 1) | (fleet.network_bytes_per_s > 0)
    fitting = np.repeat(np.stack([s.suits(fleet) for s in DATA_PARALLEL]), 2, axis=0)
    wanted = ALLOWED[job.sharding] & (RECOMPUTE | (job.recomputation == "auto"))
    return np.asarray((enough & linked) & wanted[:, None] & fitting)


def _exposed(
    job: Job, prior: Prior, fleet: Clusters, needs: Bytes, rounds: Floats, busy: Floats
) -> tuple[Floats, Floats]:
    """Communication that compute does not hide, and the network's share of all of it."""
    inside, between = _traffic_s(job, fleet, needs, rounds)
    if job.sync == "parameter_server":
        local = _exposed_s(prior, inside, np.zeros_like(inside), rounds, busy)
        local = local + _straggler_s(fleet.gpus_per_machine, busy)
        served = _served(job, prior, fleet, busy + local)
        exposed = local + served
        return exposed, np.where(exposed > 0, served / np.where(exposed > 0, exposed, 1.0), 0.0)
    both = inside + between
    share = np.where(both > 0, between / np.where(both > 0, both, 1.0), 0.0)
    exposed = _exposed_s(prior, inside, between, rounds, busy) + _straggler_s(fleet.gpus, busy)
    return exposed, share


def _straggler_s(gpus: Floats, busy: Floats) -> Floats:
    """How long GPUs that wait for each other wait for the slowest."""
    return STRAGGLERS * np.log2(np.maximum(gpus, 1.0)) * busy


def _exposed_s(
    prior: Prior, inside: Floats, between: Floats, rounds: Floats, busy: Floats
) -> Floats:
    """Seconds of communication that a synchronous step waits for; (rows, clusters)."""
    last = prior.overlap * BACKWARD * busy / rounds
    all_of_it = prior.overlap * busy
    exposed = np.empty_like(inside)
    for strategy, own in _OWN_ROWS:
        terms = inside[own], between[own], last[own], all_of_it[own]
        exposed[own] = strategy.exposed_s(*terms)
    return np.maximum(exposed, 0.0)


_OWN_ROWS = tuple((strategy, slice(2 * i, 2 * i + 2)) for i, strategy in enumerate(DATA_PARALLEL))


def _traffic_s(job: Job, fleet: Clusters, needs: Bytes, rounds: Floats) -> tuple[Floats, Floats]:
    """Seconds on the links inside machines and between them; (rows, clusters)."""
    n, g = fleet.machines, np.maximum(fleet.gpus_per_machine, 1.0)
    sent = np.empty((4, *rounds.shape))
    for strategy, (_, own) in zip(data_parallel(job), _OWN_ROWS, strict=True):
        each = strategy.traffic(job, needs, rounds[own])
        sent[0, own], sent[1, own] = each.inside_bytes, each.network_bytes
        sent[2, own], sent[3, own] = each.message_bytes, each.calls
    in_machine, on_network, message, calls = sent
    rate = fleet.network_bytes_per_s * message / (message + fleet.network_half_bytes)
    inside = in_machine * ((g - 1) / g) / fleet.intra_bytes_per_s
    latency = calls * fleet.network_latency_s * np.log2(n)
    alone = n <= 1
    network = on_network * ((n - 1) / n) / np.where(alone | (rate <= 0), 1.0, rate)
    return inside, np.where(alone, 0.0, network + latency)


def _served(job: Job, prior: Prior, fleet: Clusters, local_s: Floats) -> Floats:
    """Seconds by which asynchronous parameter servers lengthen a step; 0 without any.

    One machine needs none; runs that were timed with one say so (`serves_one_worker`).

    Each machine is a worker: its GPUs add up their gradients, then it sends one update. A
    global batch is n updates, so a step takes n/X(n).
    """
    served = service_of(job, prior, fleet).served_s
    rate = updates_per_s(fleet.machines, alone_s(job, prior, local_s), served)
    waited = fleet.machines / np.where(rate > 0, rate, 1.0) - local_s
    return np.where((fleet.machines > 1) | prior.serves_one_worker, np.maximum(waited, 0.0), 0.0)
