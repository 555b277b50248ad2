"""Model parallelism (tensor, context and pipeline): the step time of each layout of `layouts.py`.

A replica of the network uses t·c·p GPUs: each layer on t GPUs of one machine, each sequence on c
such groups, the layers in p stages. Weights and gradients are divided by t·p and optimizer states
by all GPUs; or everything by all GPUs (FSDP), which then gather each layer in every micro-batch.

A stage needs X seconds for all samples of a replica and Y for each micro-batch, so r micro-batches
through p stages take (r + p - 1)·(X/r + Y): the bubble is (p - 1)/(r + p - 1) of it (GPipe, arXiv
1811.06965; 1F1B, arXiv 2104.04473). r is the best whole number that fits the memory: more
micro-batches shorten the bubble, fewer waste less. Vendors' recipes interleave: each GPU holds v
chunks of layers, which divides the bubble by v and sends activations v times as often (arXiv
2104.04473, section 2.2). Then a replica has at least p micro-batches and stores 1 + (p - 1)/(p·v)
times the activations. If p does not divide the layers, the pipeline runs at the pace of the stage
with one more layer. None, all, or as few layers of a stage as let one sample fit are recomputed
(Megatron-LM's --recompute-num-layers).

GPUs that divide experts each hold the rest of a layer (`expert_parallel.py`). GPUs that share a
sequence gather its keys and values in each layer, once in each direction, and sum their gradients
(Llama 3, arXiv 2407.21783, section 3.3.2); this is not hidden.
"""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job, Sharding
from recommender.performance.clusters import Clusters, Steps
from recommender.performance.expert_parallel import exchange_s, expert_machines, hidden_share
from recommender.performance.layouts import (
    MAX_TENSOR,
    MIN_TOKENS,
    Layouts,
    has_layouts,
    layouts_of,
    most_context,
)
from recommender.performance.memory import Bytes, extra_gathered_bytes, gib_lines
from recommender.performance.priors import REFERENCE_WIDTH, Prior
from recommender.performance.stages import MAX_UNEVEN, head_layers, longest_share
from recommender.performance.strategy import (
    BACKWARD,
    BUCKET_BYTES,
    STRAGGLERS,
    LayoutReport,
    StepTerms,
    Strategy,
)

REDUCED = 4.0  # all-reduces per layer and micro-batch, two each way (Megatron-LM, 1909.08053)
REDUCED_WITH_RECOMPUTE = 6.0  # with the forward pass done twice
# Exchanges of keys and values in each layer: gathered in both passes, their gradients summed.
EXCHANGED = 3.0
# Width of keys and of values at most: eight heads of 128 (Llama 3, Qwen 3, Mistral: config.json).
# Scripts repeat them for every head before their fused attention, which sends them on (`repeat_kv`
# of torchtitan's Llama and of transformers, 2024-12).
KEY_WIDTH = 1024
# Parameters whose gradients Megatron-LM's optimizer sums in one call: 40 million, and 1 million
# for each replica if that is more (DistributedDataParallelConfig.bucket_size of Megatron Core).
BUCKET_PARAMETERS = 4e7
REPLICA_PARAMETERS = 1e6
# Chunks of layers on each GPU of a pipeline: up to 4, and up to 8 where that is faster. Llama 3.1
# 405B has 7 in NVIDIA's recipe (NeMo, llama31_405b, 2024), one layer a chunk in Meta's own run
# (arXiv 2407.21783, section 3.3); GPT-3 has 6 in MLPerf's (v3.1).
CHUNKS = ((2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0))


def lost_share(job: Job, tensor: Floats) -> Floats:
    """The share of b0, the penalty of a micro-batch with whole layers, on one of t GPUs.

    It is 1/t while a t-th of a layer is as wide as the networks that b0 was fitted on, and more if
    it is narrower, because its kernels are too small.
    """
    return np.maximum(1.0 / tensor, min(1.0, REFERENCE_WIDTH / job.hidden))


def key_width(job: Job) -> int:
    """Width of the keys, and of the values, that GPUs which share a sequence exchange."""
    return min(job.hidden, KEY_WIDTH) if job.stack == "tuned" else job.hidden


def held_bytes(
    needs: Bytes,
    gpus: Floats | float,
    tensor: Floats,
    stages: Floats,
    sharded: Floats | float = 0.0,
    experts: Floats | float = 1.0,
) -> Floats:
    """States on a GPU; the optimizer's are also divided among the replicas.

    This is ZeRO stage 1, as in Megatron-LM's distributed optimizer (arXiv 1910.02054, 2019). With
    sharding, all states are divided and gathered by layers; each of `experts` GPUs holds its part
    of the experts.
    """
    part = held_share(needs, experts) / np.where(sharded, gpus, tensor * stages)
    held = (needs.weights + needs.gradients) * part + needs.optimizer / gpus
    return np.asarray(held + np.where(sharded, _gathered(needs, gpus, tensor, experts), 0.0))


def _gathered(
    needs: Bytes, gpus: Floats | float, tensor: Floats | float, experts: Floats | float
) -> Floats:
    each = extra_gathered_bytes(needs, np.maximum(gpus / tensor, 1.0))
    return np.asarray(each / tensor * held_share(needs, experts))


def held_share(needs: Bytes, experts: Floats | float) -> Floats:
    """The share of its layers' weights on a GPU that divides the experts with others."""
    return np.asarray(1.0 - needs.routed + needs.routed / experts)


def kept_bytes(needs: Bytes, again: Floats | float) -> Floats:
    """Stored activations of a sample if a share of the layers is recomputed."""
    return np.asarray((1.0 - again) * needs.activations + again * needs.inputs)


def min_recomputed_share(
    needs: Bytes, room: Floats, parts: Floats, stages: Floats, layers: int
) -> Floats:
    """The smallest share of a stage's layers to recompute so that one sample fits `room`.

    Whole layers; 1 even if that is not enough.
    """
    each = np.ceil(layers / stages)
    none = _most_kept(needs, room * parts, stages, 0.0) >= needs.activations
    most = _most_kept(needs, room * parts, stages, needs.layer)
    spared = max(needs.activations - needs.inputs, 1e-9)
    share = np.clip(np.ceil((needs.activations - most) / spared * each) / each, 1.0 / each, 1.0)
    return np.where(none, 0.0, share)


def _most_kept(needs: Bytes, room: Floats, stages: Floats, layer: float) -> Floats:
    """Bytes of a sample that fit next to `layer` bytes of a recomputed layer."""
    last = (room - max(layer, needs.logits)) * stages
    return np.where(stages > 1, np.minimum(room - layer, last), last)


def sample_bytes(needs: Bytes, again: Floats | float, parts: Floats, stages: Floats) -> Floats:
    """Bytes per sample of a micro-batch on the GPU with the most.

    Sequence parallelism divides all activations by t (arXiv 2205.05198, 2022), context parallelism
    by c: `parts` is t·c. The first stage stores p micro-batches of a p-th of the layers, the last
    one of them and logits. `again` is the share of recomputed layers, one at a time.
    """
    kept, layer = kept_bytes(needs, again), np.where(np.asarray(again) > 0, needs.layer, 0.0)
    last = kept / stages + np.maximum(layer, needs.logits)
    most = np.where(stages > 1, np.maximum(kept + layer, last), last)
    return np.asarray(most / parts)


@dataclass(frozen=True, slots=True)
class Degrees:
    """The degrees of parallelism of one layout."""

    tensor: float
    context: float
    stages: float
    sharded: bool
    experts: float = 1.0

    def label(self, gpus: float) -> str:
        """ "TP 8 × PP 4 × DP 2", "TP 8 × FSDP 4"; "FSDP 8, CP 2": pairs of the eight share a
        sequence.
        """
        shares, alike = gpus / self.tensor, gpus / (self.tensor * self.context * self.stages)
        plain = (("TP", self.tensor), ("CP", self.context), ("PP", self.stages), ("DP", alike))
        degrees = (plain[0], ("FSDP", shares)) if self.sharded else plain
        label = " × ".join(f"{name} {degree:.0f}" for name, degree in degrees if degree > 1)
        if self.experts > 1:
            return f"{label}, EP {self.experts:.0f}"
        return f"{label}, CP {self.context:.0f}" if self.sharded and self.context > 1 else label


def layout_memory_gib(
    needs: Bytes, gpus: float, degrees: Degrees, micro_batch: float, again: float
) -> tuple[tuple[str, float], ...]:
    """The memory of the GPU with the most, line by line, in GiB."""
    each, kept = degrees.tensor * degrees.stages, float(kept_bytes(needs, again))
    layer = needs.layer if again > 0 else 0.0
    shares, parts = gpus if degrees.sharded else each, degrees.tensor * degrees.context
    part = float(held_share(needs, degrees.experts))
    after = kept / degrees.stages + max(layer - needs.logits, 0.0)
    last = degrees.stages == 1 or after + needs.logits > kept + layer
    gathered = float(_gathered(needs, gpus, degrees.tensor, degrees.experts))
    gathered = gathered if degrees.sharded else 0.0
    return gib_lines(
        weights=needs.weights * part / shares + gathered,
        gradients=needs.gradients * part / shares,
        optimizer=needs.optimizer / gpus,
        activations=micro_batch * (after if last else kept + layer) / parts,
        logits=micro_batch * needs.logits / parts * last,
        context=needs.context,
    )


@dataclass(frozen=True, slots=True)
class _PipelineTimes:
    """What the terms of some layouts follow from; shape (3, layouts), or (layouts,) if all agree.

    Rows: no layer computed again, all of them, and as few as let one sample fit.
    """

    step_s: Floats
    batch: Floats  # samples of a replica
    rounds: Floats  # its micro-batches
    arithmetic_s: Floats  # arithmetic without recomputation
    again: Floats  # share of the layers that are computed again
    recomputed_share: Floats  # of the arithmetic, if all are
    launch_s: Floats  # of the gradient tensors and of kernels that start late, per micro-batch
    all_rounds_s: Floats  # all micro-batches through one stage
    waits_s: Floats  # for the gradients of the replicas
    outside_s: Floats  # of the communication, on the network
    inside_s: Floats  # on the links
    feed_s: Floats  # of the input pipeline
    tensor: Floats
    context: Floats
    stages: Floats
    sharded: Floats
    experts: Floats
    waiting: Floats  # turns in which a GPU of the pipeline has nothing to do

    def take(self, again: Ints, rows: Ints) -> "_PipelineTimes":
        """Some layouts, each with or without recomputation; (layouts,)."""
        each = (getattr(self, name) for name in self.__slots__)
        return _PipelineTimes(*(x[rows] if x.ndim == 1 else x[again, rows] for x in each))


def best_layouts(job: Job, prior: Prior, fleet: Clusters, needs: Bytes) -> StepTerms:
    """The fastest layout of the network on each cluster, one row; inf if there is none."""
    layouts = layouts_of(job, fleet, needs.states)
    memory, gpus = fleet.memory_bytes[layouts.cluster], fleet.gpus[layouts.cluster]
    least = sample_bytes(needs, 1.0, layouts.parts, layouts.stages) + needs.context
    held = held_bytes(needs, gpus, layouts.tensor, layouts.stages, layouts.sharded, layouts.experts)
    layouts = layouts.take(memory >= least + held)
    turns = _pipeline_times(job, prior, fleet.take(layouts.cluster), needs, layouts)
    again, step_s = turns.step_s.argmin(axis=0), turns.step_s.min(axis=0)
    order = np.lexsort((layouts.layout, step_s, layouts.cluster))
    order = order[np.isfinite(step_s[order])]
    cluster, first = np.unique(layouts.cluster[order], return_index=True)
    rows = order[first]
    found = _terms(turns.take(again[rows], rows))
    terms = {}
    for name in StepTerms.__slots__:
        terms[name] = np.full((1, len(fleet)), np.inf if name == "step_s" else 1.0)
        terms[name][0, cluster] = getattr(found, name)
    return StepTerms(**terms)


def chunks_of(job: Job, stages: Floats, counts: Sequence[float]) -> Floats:
    """The largest of some numbers of chunks with nearly equal layers each; 1 if none has.

    Only vendors' recipes interleave (Megatron-LM's virtual stages).
    """
    found = np.ones_like(stages)
    for chunks in counts if job.stack == "tuned" else ():
        parts = stages * chunks
        longest = np.ceil(job.layers / parts) * parts
        alike = (longest <= MAX_UNEVEN * (job.layers + head_layers(job))) & (stages > 1)
        alike &= parts <= job.layers
        found = np.where(alike, chunks, found)
    return found


def layout_terms(
    job: Job, prior: Prior, fleet: Clusters, needs: Bytes, layouts: Layouts
) -> StepTerms:
    """Every term of some layouts; the fleet has one row per layout.

    Per stage: arithmetic (b/t + r·b0·φ)·N/R/p, φ of `lost_share`, and r·β·k/p; all-reduces of
    b·s·h bytes in each of L/p layers over the links; activations handed on and gradients back,
    over the links or the network; keys and values of sequences that are shared; after the
    pipeline the replicas' gradients, hidden only
    where p = 1. Sharded weights are gathered in each micro-batch behind all of the compute.
    Interleaved where that is faster.
    """
    return _terms(_pipeline_times(job, prior, fleet, needs, layouts))


def _pipeline_times(
    job: Job, prior: Prior, fleet: Clusters, needs: Bytes, layouts: Layouts
) -> _PipelineTimes:
    """The fastest of a plain pipeline, of interleaved ones, and of those that hide exchanges."""
    plain, *others = _schedules(job, fleet, layouts)
    best = _pipeline_times_of(job, prior, fleet, needs, layouts, plain)
    for schedule in others:
        other = _pipeline_times_of(job, prior, fleet, needs, layouts, schedule)
        faster = other.step_s < best.step_s
        best = _PipelineTimes(
            *(_either(faster, other, best, name) for name in _PipelineTimes.__slots__)
        )
    return best


@dataclass(frozen=True, slots=True)
class _Schedule:
    """In which order the GPUs of each layout run their micro-batches; shape (layouts,)."""

    chunks: Floats  # of layers on each GPU
    hides: Bools  # whether exchanges with experts run while another micro-batch computes


def _schedules(job: Job, fleet: Clusters, layouts: Layouts) -> list[_Schedule]:
    """The plain one, then others that some layout may have.

    A pipeline that hides exchanges is interleaved ("if PP > 1, set virtual pipeline": Megatron
    Bridge, "Expert-Parallel Overlap", 2026).
    """
    ones, never = np.ones_like(layouts.stages), np.zeros(len(layouts.stages), dtype=bool)
    found = [_Schedule(ones, never)]
    interleaved = (chunks_of(job, layouts.stages, counts) for counts in CHUNKS)
    found += [_Schedule(chunks, never) for chunks in interleaved if (chunks > 1).any()]
    if not hidden_share(job):
        return found
    spread = expert_machines(fleet, layouts) > 1
    hiding = (spread & ((layouts.stages == 1) | (each.chunks > 1)) for each in found)
    pairs = list(zip(found, hiding, strict=True))
    return found + [_Schedule(each.chunks, hides) for each, hides in pairs if hides.any()]


def _either(chosen: Bools, one: _PipelineTimes, other: _PipelineTimes, name: str) -> Floats:
    """A field of one where it is chosen, else of the other."""
    a, b = getattr(one, name), getattr(other, name)
    return np.asarray(a if a is b or a.ndim == 1 else np.where(chosen, a, b))


@dataclass(frozen=True, slots=True)
class _MicroBatches:
    """Which micro-batches the memory allows; shape (3, layouts) or (layouts,).

    Rows as in `_PipelineTimes`.
    """

    samples: Floats  # of a replica per step
    again: Floats  # share of the layers that are computed again
    fewest: Floats  # micro-batches of the most samples that fit
    runs: Bools  # whether one sample fits, and each replica has enough of them


def _micro_batches(
    job: Job, fleet: Clusters, needs: Bytes, layouts: Layouts, schedule: _Schedule
) -> _MicroBatches:
    """How few micro-batches fit the memory, without, with full and with least recomputation.

    An interleaved pipeline keeps 1 + (p - 1)/(p·v) times the activations, and needs as many
    micro-batches as it has stages. Where exchanges are hidden, one more micro-batch has its
    activations in one chunk of the layers, and there are two of them at least.
    """
    t, p, interleaved = layouts.tensor, layouts.stages, schedule.chunks > 1
    samples = np.ceil(job.batch_on(fleet.gpus) * layouts.replica / fleet.gpus)
    kept = 1.0 + np.where(interleaved, (p - 1.0) / (p * schedule.chunks), 0.0)
    kept = kept + schedule.hides / (p * schedule.chunks)
    least = np.maximum(np.where(interleaved, p, 1.0), 1.0 + schedule.hides)
    room = fleet.memory_bytes - needs.context
    room = room - held_bytes(needs, fleet.gpus, t, p, layouts.sharded, layouts.experts)
    some = min_recomputed_share(needs, room / kept, layouts.parts, p, job.layers)
    all_layers = np.ones_like(some)
    rows = [np.zeros_like(some), all_layers, some]
    again = np.stack([all_layers] * 3 if job.recomputation == "full" else rows)
    sample = sample_bytes(needs, again, layouts.parts, p) * kept
    fits = np.floor(room / np.maximum(sample, 1e-9))
    fewest = np.ceil(samples / np.clip(fits, 1.0, samples))
    return _MicroBatches(
        samples=samples,
        again=again,
        fewest=np.minimum(np.maximum(fewest, least), samples),
        runs=(fits >= 1) & job.may_have(fleet.gpus, layouts.replica) & (samples >= least),
    )


def _pipeline_times_of(
    job: Job, prior: Prior, fleet: Clusters, needs: Bytes, layouts: Layouts, schedule: _Schedule
) -> _PipelineTimes:
    """The step of each layout with v chunks of layers per GPU, in r micro-batches.

        turns = r·max(X/r + Y, λ)·late              all micro-batches through one stage
        step  = max(turns·(1 + w/r) + exposed, input)

    X (`all_s`) are the seconds of a replica's samples in one stage, Y (`each_s`) what each
    micro-batch adds to them, λ (`started_s`) the least of one whose kernels are launched one by
    one, w = (p - 1)/v (`waiting`) the turns in which the pipeline fills and drains; exposed is what
    is not hidden of the gradients (or of the gathers of sharded weights), late are stragglers.
    """
    p, m = layouts.stages, _micro_batches(job, fleet, needs, layouts, schedule)
    chunks = schedule.chunks
    sample_s = longest_share(job, p, chunks) * fleet.gpus / (fleet.compute_per_s * layouts.replica)
    times = 1.0 + job.recomputed_share * m.again
    launch_s = prior.tensor_s * job.gradient_tensors / p
    lost = prior.batch_penalty * layouts.tensor * lost_share(job, layouts.tensor)  # samples
    busy_s = np.where(schedule.hides, sample_s * times, 0.0)
    inside_s, between_s, latency_s = _communication_s(job, fleet, layouts, chunks, m.again, busy_s)

    all_s = m.samples * (sample_s * times + inside_s + between_s)
    each_s = lost * sample_s * times + launch_s + latency_s
    waiting, started_s = (p - 1.0) / chunks, prior.model_parallel_launch_s / p
    rounds = _best_rounds(all_s, each_s, m.fewest, m.samples, waiting)
    rounds = _eager_rounds(rounds, all_s, each_s, m.fewest, waiting, started_s)
    idle_s = np.maximum(rounds * started_s - all_s - rounds * each_s, 0.0)  # kernels start too late
    late = 1.0 + STRAGGLERS * np.log2(fleet.gpus)
    all_rounds_s = (all_s + rounds * each_s + idle_s) * late

    arithmetic_s = (m.samples + rounds * lost) * sample_s
    near_s, far_s = _states(job, fleet, needs, layouts, rounds)
    sent_s, one_s = near_s + far_s, (1.0 + lost) * sample_s * times + launch_s
    hidden_s = _hidden(prior, layouts, rounds, arithmetic_s * times + rounds * launch_s)
    waits_s = np.maximum(sent_s - hidden_s - _sent_early_s(p, chunks, one_s, sent_s), 0.0)
    feed_s = job.batch_on(fleet.gpus) / np.minimum(fleet.prepare_per_s, fleet.fetch_per_s)
    step_s = np.maximum(all_rounds_s * (1.0 + waiting / rounds) + waits_s, feed_s)
    return _PipelineTimes(
        step_s=np.where(m.runs, step_s, np.inf),
        batch=m.samples,
        rounds=rounds,
        arithmetic_s=arithmetic_s,
        again=m.again,
        recomputed_share=np.broadcast_to(job.recomputed_share, p.shape),
        launch_s=launch_s + idle_s / rounds,
        all_rounds_s=all_rounds_s,
        waits_s=waits_s,
        outside_s=m.samples * between_s + rounds * latency_s + far_s,
        inside_s=m.samples * inside_s + near_s,
        feed_s=feed_s,
        tensor=layouts.tensor,
        context=layouts.context,
        stages=p,
        sharded=layouts.sharded,
        experts=layouts.experts,
        waiting=np.broadcast_to(waiting, rounds.shape),
    )


def _hidden(prior: Prior, layouts: Layouts, rounds: Floats, busy_s: Floats) -> Floats:
    """Seconds of the replicas' traffic that compute hides.

    Gathers of sharded weights hide behind all of it, gradients behind the last backward pass, and
    those of a plain pipeline behind nothing.
    """
    behind_last = prior.overlap * BACKWARD * busy_s / rounds
    hidden = np.where(layouts.stages > 1, 0.0, behind_last)
    return np.where(layouts.sharded, prior.overlap * busy_s, hidden)


def _sent_early_s(stages: Floats, chunks: Floats, min_s: Floats, sent_s: Floats) -> Floats:
    """Seconds of gradients that an interleaved pipeline sends before its last chunk is done.

    Each of v chunks of layers but the last sends its own while those after it go back through
    their last p micro-batches, of one sample or more (`min_s`): "the granularity of DP
    communication becomes the Transformer layers per virtual pipeline stage" (Megatron Bridge,
    "Communication Overlap", read 2026-11).
    """
    return np.asarray((1.0 - 1.0 / chunks) * np.minimum(sent_s, BACKWARD * stages * min_s))


def _terms(c: _PipelineTimes) -> StepTerms:
    """The parts of the steps of some layouts."""
    compute = c.arithmetic_s + c.rounds * c.launch_s
    again = c.recomputed_share * c.again * c.arithmetic_s
    bubble = c.waiting / c.rounds * c.all_rounds_s
    exchanged_s = np.maximum(c.outside_s + c.inside_s, 1e-30)
    return StepTerms(
        step_s=c.step_s,
        compute_s=compute,
        recompute_s=again,
        exposed_s=c.all_rounds_s - compute - again + c.waits_s,
        bubble_s=bubble,
        input_s=np.maximum(c.feed_s - c.all_rounds_s - bubble - c.waits_s, 0.0),
        network_share=c.outside_s / exchanged_s,
        micro_batch=np.ceil(c.batch / c.rounds),
        accumulation=c.rounds,
        tensor=c.tensor,
        context=c.context,
        stages=c.stages,
        sharded=c.sharded,
        experts=c.experts,
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

    def all_rounds_s(r: Floats) -> Floats:
        return np.asarray((r + waiting) * np.maximum(all_s / r + each_s, started_s))

    return np.where(all_rounds_s(above) < all_rounds_s(below), above, below)


def _communication_s(
    job: Job, fleet: Clusters, layouts: Layouts, chunks: Floats, again: Floats, busy_s: Floats
) -> tuple[Floats, Floats, Floats]:
    """Seconds per sample on the links and on the network, and per micro-batch on the network.

    A stage sends each sample's activations on and their gradients back, once for each chunk of
    its layers and each of its t·c GPUs its part. Where the replica, or what divides its experts,
    spans machines, they go over the network, of which each GPU of a machine has an equal part (its
    own adapters: 1 of 400 Gbit/s in DGX H100, 4 of 100 in p5). Arithmetic of `busy_s` per sample
    hides a part of what experts exchange.
    """
    t, c, p = layouts.tensor, layouts.context, layouts.stages
    wide = 4.0 if job.precision in ("fp32", "tf32") else 2.0
    sent = float(job.tokens_per_sample) * job.hidden * wide / c
    divided = layouts.experts > 1
    across = layouts.replica * layouts.experts > fleet.gpus_per_machine
    handed = 2.0 * sent * (p > 1) * chunks
    reduced = (REDUCED + again * (REDUCED_WITH_RECOMPUTE - REDUCED)) * (job.layers * 2.0 * sent)
    local = np.where(across, 0.0, handed / t)
    inside = (reduced * ((t - 1.0) / (t * p)) + local) / fleet.intra_bytes_per_s
    rate = np.where(across, fleet.network_bytes_per_s, np.inf)
    each = 2.0 * chunks * (fleet.network_half_bytes / rate + across * fleet.network_latency_s)
    each = each * (p > 1)
    between = handed * (fleet.gpus_per_machine / t) / rate
    if divided.any():
        near, far, waits = exchange_s(job, fleet, layouts, again, sent, busy_s)
        inside, between, each = inside + near, between + far, each + waits
    if not (c > 1).any():
        return inside, between, each
    shared = _sequences(job, fleet, layouts, again, wide)
    return inside + shared[0], between + shared[1], each + shared[2]


def _sequences(
    job: Job, fleet: Clusters, layouts: Layouts, again: Floats, wide: float
) -> tuple[Floats, Floats, Floats]:
    """What GPUs that share a sequence add to `_communication_s`: keys and values of a layer.

    The t-th part of each.

    Over the links where all of them are in a machine, else over the network, each of a machine's
    groups its own.
    """
    t, c = layouts.tensor, layouts.context
    calls = (EXCHANGED + again) * job.layers / layouts.stages * (c > 1)
    keys = 2.0 * wide * job.tokens_per_sample * key_width(job)
    sent = calls * keys * (c - 1.0) / (c * t)
    across = t * c > fleet.gpus_per_machine
    rate = np.where(across, fleet.network_bytes_per_s, np.inf)
    waits = fleet.network_half_bytes / rate + across * fleet.network_latency_s * np.log2(c)
    near = np.where(across, 0.0, sent) / fleet.intra_bytes_per_s
    return near, sent * fleet.gpus_per_machine / rate, calls * waits


def _states(
    job: Job, fleet: Clusters, needs: Bytes, layouts: Layouts, rounds: Floats
) -> tuple[Floats, Floats]:
    """Seconds on the links and on the network for gradients, or for all that is sharded."""
    near, far = _gradients(job, fleet, needs, layouts)
    if not layouts.sharded.any():
        return near, far
    gathered = [rounds * seconds for seconds in _gathers(job, fleet, needs, layouts)]
    return np.where(layouts.sharded, gathered[0], near), np.where(layouts.sharded, gathered[1], far)


def _gathers(job: Job, fleet: Clusters, needs: Bytes, layouts: Layouts) -> tuple[Floats, Floats]:
    """Seconds of a micro-batch for sharded weights, two gathers and a reduction, as under FSDP."""
    n, alike = fleet.machines, np.maximum(fleet.gpus_per_machine / layouts.tensor, 1.0)
    sent = 2.0 * needs.gathered + needs.reduced
    near = sent / layouts.tensor * (1.0 - 1.0 / alike) / fleet.intra_bytes_per_s
    message = needs.gathered / job.layers
    rate = fleet.network_bytes_per_s * message / (message + fleet.network_half_bytes)
    far = sent * (1.0 - 1.0 / n) / np.where(n > 1, rate, 1.0)
    return near, far + 3.0 * fleet.network_latency_s * np.log2(n)


def _gradients(job: Job, fleet: Clusters, needs: Bytes, layouts: Layouts) -> tuple[Floats, Floats]:
    """Seconds in which the replicas sum their gradients, on the links and on the network.

    Experts that several machines divide are summed among fewer machines than the other weights.
    """
    replica = layouts.tensor * layouts.stages * layouts.experts
    g, each, routed = fleet.gpus_per_machine, layouts.experts, needs.reduced * needs.routed
    alike = np.maximum(g / replica, 1.0)  # replicas of one machine
    near = 2.0 * needs.reduced / replica * (1.0 - 1.0 / alike)
    if not (each > 1).any():
        return near / fleet.intra_bytes_per_s, _summed_s(job, fleet, needs.reduced, replica)
    rest, stages = needs.reduced - routed, layouts.tensor * layouts.stages
    copies = np.maximum(g / stages, np.minimum(each, g))  # of them in a machine
    apart = 2.0 * routed / replica * (1.0 - 1.0 / alike)
    apart = apart + 2.0 * rest / stages * (1.0 - 1.0 / copies)
    near = np.where(each > 1, apart, near) / fleet.intra_bytes_per_s
    once = stages * np.minimum(each, g)  # GPUs that hold the other weights once
    far = _summed_s(job, fleet, rest, once) + _summed_s(job, fleet, routed, replica)
    alone = _summed_s(job, fleet, needs.reduced, once)
    return near, np.where(expert_machines(fleet, layouts) > 1, far, alone)


def _summed_s(job: Job, fleet: Clusters, reduced: float, replica: Floats) -> Floats:
    """Seconds on the network for gradients that so many GPUs hold once."""
    if reduced <= 0:
        return np.zeros_like(fleet.machines)
    share = np.minimum(fleet.gpus_per_machine / replica, 1.0)  # that a machine holds
    others = fleet.machines * share  # machines that hold the same part
    message = np.minimum(_bucket_bytes(job, fleet.gpus / replica), reduced * share)
    alone = others <= 1.0
    rate = fleet.network_bytes_per_s * message / (message + fleet.network_half_bytes)
    sent = 2.0 * reduced * share * (1.0 - 1.0 / np.maximum(others, 1.0))
    far = sent / np.where(alone, 1.0, rate)
    far = far + fleet.network_latency_s * np.log2(np.maximum(others, 1.0))
    return np.asarray(np.where(alone, 0.0, far))


def _bucket_bytes(job: Job, alike: Floats) -> Floats | float:
    """Bytes of gradients that so many replicas sum in one call."""
    if job.stack != "tuned":
        return BUCKET_BYTES
    return np.asarray(2.0 * np.maximum(BUCKET_PARAMETERS, REPLICA_PARAMETERS * alike))


class ModelParallel(Strategy):
    """Tensor, context and pipeline parallelism; one row, the best layout of each cluster."""

    words = ("tensor", "pipeline", "context")
    whole_network = False
    divides_states = True
    hidden_share = 1.0

    def allowed(self, job: Job) -> bool:
        """Whether the network may be divided."""
        return has_layouts(job)

    def most_hidden(self, job: Job, prior: Prior) -> float:
        """What sharded weights hide, or interleaved pipelines of p micro-batches, and experts."""
        early = BACKWARD * (1.0 - 1.0 / CHUNKS[-1][-1]) if job.stack == "tuned" else 0.0
        return max(super().most_hidden(job, prior), early) + hidden_share(job)

    def layout(self, needs: Bytes, one: Clusters, step: Steps) -> LayoutReport:
        """The degrees of the layout, and the memory of the GPU with the most."""
        gpus, sharded = float(one.gpus[0]), bool(step.sharded[0])
        t, c, p = (float(each[0]) for each in (step.tensor, step.context, step.stages))
        degrees = Degrees(t, c, p, sharded, float(step.experts[0]))
        micro, again = float(step.micro_batch[0]), float(step.again[0])
        memory = layout_memory_gib(needs, gpus, degrees, micro, again)
        return LayoutReport(degrees.label(gpus), memory)

    def min_memory_bytes(self, job: Job, needs: Bytes, one: Clusters) -> list[float]:
        """The memory of every layout with full recomputation."""
        if not has_layouts(job):
            return []
        layouts, gpus = layouts_of(job, one), float(one.gpus[0])
        layouts = layouts.take(job.may_have(one.gpus, layouts.replica))
        held = held_bytes(
            needs, gpus, layouts.tensor, layouts.stages, layouts.sharded, layouts.experts
        )
        held = held + needs.context + sample_bytes(needs, 1.0, layouts.parts, layouts.stages)
        least: list[float] = held.tolist()
        return least

    def why_none(self, job: Job, one: Clusters) -> str:
        """No layout is known, or none divides the cluster and the layers."""
        if not has_layouts(job):
            return f"{job.sharding} parallelism needs a transformer of known width and layers"
        if job.sharding == "context" and most_context(job) == 1:
            shared = f"shared from {2 * MIN_TOKENS:,} tokens on"
            return f"sequences of {job.tokens_per_sample:,} tokens are too short: {shared}"
        return (
            f"no {job.sharding} parallelism of 2, 4 or 8 divides {int(one.gpus[0])} GPUs on "
            f"{int(one.machines[0])} machines and {job.layers} layers"
        )

    def min_penalty(self, job: Job, prior: Prior) -> float:
        """The smallest share of b0 that is lost if layers are shared.

        p stages take at least p turns, and lose a p-th in each.
        """
        shared = float(lost_share(job, np.array([MAX_TENSOR]))[0])
        return prior.batch_penalty * shared / most_context(job)

    def min_inside_bytes(self, job: Job, needs: Bytes) -> float:
        """Almost nothing: stages with few samples."""
        return 0.0 if has_layouts(job) else np.inf

    def one_gpu_shardings(self, word: Sharding) -> tuple[Sharding, ...]:
        """The traffic of machines with one GPU that is a replica, a shard or a part."""
        return ("ddp", "fsdp") if word == "tensor" else ("ddp", "fsdp", word)


MODEL_PARALLEL = ModelParallel()
