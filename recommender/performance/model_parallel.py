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

GPUs that divide experts each hold the rest of a layer (`layout_traffic.py`). GPUs that share a
sequence gather its keys and values in each layer, once in each direction, and sum their gradients
(Llama 3, arXiv 2407.21783, section 3.3.2); this is not hidden.
"""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job
from recommender.performance.clusters import Clusters, Steps
from recommender.performance.layout_traffic import (
    communication_s,
    expert_machines,
    hidden_share,
    link_waits_s,
    states_s,
)
from recommender.performance.layouts import (
    MAX_UNEVEN,
    MIN_TOKENS,
    Layouts,
    has_layouts,
    head_layers,
    layouts_of,
    longest_share,
    most_context,
    used,
)
from recommender.performance.memory import (
    Bytes,
    Degrees,
    held_bytes,
    layout_memory_gib,
    min_recomputed_share,
    sample_bytes,
)
from recommender.performance.priors import REFERENCE_WIDTH, Prior
from recommender.performance.strategy import (
    BACKWARD,
    STRAGGLERS,
    LayoutReport,
    StepTerms,
    Strategy,
)

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
    launch_s: (
        Floats  # of gradient tensors, unpacked weights and kernels that start late, per micro-batch
    )
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
    """The fastest layout of the network on each cluster, one row; inf if there is none.

    Where no layout divides the machines, some of them are idle. Batches that grow with the GPUs
    are of all of them, so there none may be.
    """
    best = _fastest_layouts(job, prior, fleet, needs, spare=False)
    left = np.flatnonzero(np.isinf(best.step_s[0]) & (fleet.machines > 1))
    if len(left) and not job.batch_per_gpu:
        found = _fastest_layouts(job, prior, fleet.take(left), needs, spare=True)
        for name in StepTerms.__slots__:
            getattr(best, name)[0, left] = getattr(found, name)[0]
    return best


def _fastest_layouts(
    job: Job, prior: Prior, fleet: Clusters, needs: Bytes, *, spare: bool
) -> StepTerms:
    layouts = layouts_of(job, fleet, needs.states, spare=spare)
    busy = used(fleet.take(layouts.cluster), layouts)
    least = sample_bytes(needs, 1.0, layouts.parts, layouts.stages) + needs.context
    degrees = layouts.tensor, layouts.stages, layouts.sharded, layouts.experts
    least = least + held_bytes(needs, busy.gpus, *degrees)
    least_bytes = np.full((1, len(fleet)), np.inf)
    np.minimum.at(least_bytes[0], layouts.cluster, least)
    rows = np.flatnonzero(busy.memory_bytes >= least)
    layouts = layouts.take(rows)
    turns = _pipeline_times(job, prior, busy.take(rows), needs, layouts)
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
    return StepTerms(**terms | {"least_bytes": least_bytes})


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

    Per stage: arithmetic (b/t + r·b0·φ)·N/R/p, φ of `lost_share`, r·β·k/p and the unpacking of a
    part of the 4-bit weights; all-reduces of
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
    fits = np.minimum(np.floor(room / np.maximum(sample, 1e-9)), needs.most_at_once)
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
    launch_s = _launch_s(job, prior, fleet, layouts, m.again)
    lost = prior.batch_penalty * layouts.tensor * lost_share(job, layouts.tensor)  # samples
    busy_s = np.where(schedule.hides, sample_s * times, 0.0)
    inside_s, between_s, latency_s = communication_s(job, fleet, layouts, chunks, m.again, busy_s)
    link_s = link_waits_s(job, layouts, m.again, prior.link_wait_s)

    all_s = m.samples * (sample_s * times + inside_s + between_s)
    each_s = lost * sample_s * times + launch_s + latency_s + link_s
    waiting, started_s = (p - 1.0) / chunks, prior.model_parallel_launch_s / p
    rounds = _best_rounds(all_s, each_s, m.fewest, m.samples, waiting)
    rounds = _eager_rounds(rounds, all_s, each_s, m.fewest, waiting, started_s)
    idle_s = np.maximum(rounds * started_s - all_s - rounds * each_s, 0.0)  # kernels start too late
    late = 1.0 + STRAGGLERS * np.log2(fleet.gpus)
    all_rounds_s = (all_s + rounds * each_s + idle_s) * late

    arithmetic_s = (m.samples + rounds * lost) * sample_s
    near_s, far_s = states_s(job, fleet, needs, layouts, rounds)
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
        inside_s=m.samples * inside_s + rounds * link_s + near_s,
        feed_s=feed_s,
        tensor=layouts.tensor,
        context=layouts.context,
        stages=p,
        sharded=layouts.sharded,
        experts=layouts.experts,
        waiting=np.broadcast_to(waiting, rounds.shape),
    )


def _launch_s(job: Job, prior: Prior, fleet: Clusters, layouts: Layouts, again: Floats) -> Floats:
    """Seconds that gradient tensors, and 4-bit weights in each pass, add to a micro-batch."""
    tensors_s = prior.tensor_s * job.gradient_tensors / layouts.stages
    parts = layouts.tensor * layouts.stages
    unpacked_s = prior.quantized_bytes / parts / fleet.device_bytes_per_s
    return np.asarray(tensors_s + (2.0 + again) * unpacked_s)


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
        least_bytes=np.full_like(c.step_s, np.inf),  # `best_layouts` has that of all
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


class ModelParallel(Strategy):
    """Tensor, context and pipeline parallelism; one row, the best layout of each cluster."""

    words = ("tensor", "pipeline", "context")
    whole_network = False

    def allowed(self, job: Job) -> bool:
        """Whether the network may be divided."""
        return has_layouts(job)

    def layout(self, needs: Bytes, one: Clusters, step: Steps) -> LayoutReport:
        """The degrees of the layout, and the memory of the GPU with the most."""
        sharded = bool(step.sharded[0])
        t, c, p = (float(each[0]) for each in (step.tensor, step.context, step.stages))
        replica = max(t * c * p * float(step.experts[0]), float(one.gpus_per_machine[0]))
        gpus = float(one.gpus[0]) // replica * replica
        idle = f", idle {one.gpus[0] - gpus:.0f}" if gpus < one.gpus[0] else ""
        degrees = Degrees(t, c, p, sharded, float(step.experts[0]))
        micro, again = float(step.micro_batch[0]), float(step.again[0])
        memory = layout_memory_gib(needs, gpus, degrees, micro, again)
        return LayoutReport(degrees.label(gpus) + idle, memory)

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


MODEL_PARALLEL = ModelParallel()
