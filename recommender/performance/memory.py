"""Memory of a GPU: weights, gradients, optimizer, activations, logits, context.

Of layouts of model parallelism: weights and gradients are divided by t·p, optimizer states by all
GPUs; or everything by all GPUs (FSDP), which gather each layer. Activations are divided by t
(sequence parallelism) and by c.
"""

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.job.activations import logit_bytes
from recommender.job.job import Job, moment_bytes
from recommender.performance.priors import Prior
from recommender.risk.normal_law import normal_cdf, normal_quantile

GIB = 2.0**30
LINES = ("weights", "gradients", "optimizer", "activations", "logits", "context", "update")
CONTEXT_BYTES = 1.5e9  # CUDA context, NCCL buffers, fragmentation; assumed (2026-11)
# Per frozen weight; 4 bits and the fp32 scale of each 64 for qlora (Dettmers et al., arXiv
# 2305.14314, 2023), whose embeddings, head and norms PEFT holds in fp32
FROZEN_BYTES = {"lora": 2.0, "qlora": 0.5 + 4 / 64}
UNQUANTIZED_BYTES = 4.0
# Per parameter that full training counts as not trainable: rows of embedding tables, updated
# sparsely in fp32 without state by plain SGD (DLRM, arXiv 1906.00091; DeepLearningExamples)
TABLE_BYTES = 4.0
# Copies of the weights that an update holds while activations are gone: "~ sizeof(params) more peak
# memory ... due to the intermediates being a tensorlist" (PyTorch, AdamW: foreach, the default;
# docs of 2.9, read 2026-11-29). Optimizers that update weight by weight, and fused ones, hold none.
FOREACH = ("adamw",)


# Sd of ln (needed / predicted): 0.07 of 28 readings of full or divided training and 0.06 of 59 of
# adapters on one GPU that have no other cause (docs/research/memory.md); the user's own assumed.
_SD, _ADAPTERS_SD, _MEASURED_SD = 0.08, 0.06, 0.03
# What programs see of a GPU's memory, over what a plan fills at most: 79.1 of 80 GiB (A100), 23.7
# of 24 (RTX 3090), 31.7 of 32 (V100), 39.4 of 40, 22.1 of 22.5 (A10G); PyTorch's messages.
VISIBLE = 0.98 / 0.92
SURE = 0.99  # chance from which on a setting counts as sure to fit


@dataclass(frozen=True, slots=True)
class Bytes:
    """Memory of one replica and one sample, and their traffic.

    The states (weights, gradients, optimizer) are divided over the shards; frozen weights are part
    of `weights`. `gathered` is sent at every all-gather, `reduced` at every reduction.
    """

    weights: float
    gradients: float
    optimizer: float
    context: float
    activations: float  # per sample of a micro-batch, everything kept
    recomputed: float  # per sample, with full recomputation: all inputs, and one whole layer
    logits: float  # per sample
    gathered: float
    reduced: float
    routed: float = 0.0  # share of weights and gradients that lies in experts
    layer: float = 0.0  # of `recomputed`, what one layer holds: not at once with the logits
    most_at_once: float = np.inf  # samples of a micro-batch, where the user states how many
    update: float = 0.0  # besides the states during an update, divided like them
    trained: float = 0.0  # parameters
    whole: float = 0.0  # weights and gradients that are in one piece where the states are divided

    @property
    def inputs(self) -> float:
        """Bytes per sample that remain with full recomputation."""
        return self.recomputed - self.layer

    @property
    def states(self) -> float:
        """Bytes that sharding divides."""
        return self.weights + self.gradients + self.optimizer


def bytes_of(job: Job, prior: Prior) -> Bytes:
    """Memory and traffic of a job, per replica and per sample.

    16 B per parameter under AdamW (16-bit weights and gradients, fp32 master weights and two
    moments; in fp32 the same sum), 18 with fp32 gradients under autocast; adapters: 2 B (LoRA) or
    0.56 B (QLoRA; 4 B for embeddings and head) per frozen weight and 16 B per adapter weight. With
    method full, 4 B per parameter that is not trainable: embedding tables, whose sparse gradients
    are neither stored nor reduced. Post-training adds other networks. Activations:
    `job/activations.py`.
    """
    short = job.precision not in ("fp32", "tf32")
    moments = moment_bytes(job.optimizer, job.master_weights or not short)
    trained = job.trainable_parameters
    tables = (TABLE_BYTES if job.family == "recsys" else 2.0) * max(job.parameters - trained, 0.0)
    gradient = prior.gradient_bytes if short and job.master_weights else 2.0 if short else 4.0
    if job.offload != "none" and short and job.method == "full":
        gradient = 2.0  # ZeRO-Offload sends 16 bits to the host (arXiv 2101.06840, 2021)
    if job.method != "full":
        frozen = FROZEN_BYTES[job.method] if short or job.method == "qlora" else 4.0
        wide = min(job.unquantized_parameters, job.parameters)
        weights = frozen * (job.parameters - wide) + UNQUANTIZED_BYTES * wide + 4.0 * trained
        gathered, gradient, master = weights, 4.0, 0.0
    elif short:
        autocast = gradient == 4.0
        weights = (6.0 if autocast else 2.0) * trained + tables
        master = 0.0 if autocast or not job.master_weights else 4.0
        gathered = 2.0 * trained
    else:
        weights, master, gathered = 4.0 * trained + tables, 0.0, 4.0 * trained
    weights += job.other_network_bytes
    held = 0.0 if job.offload == "parameters" else 1.0
    # Gradients go to the optimizer's host as they come: 13 B on a V100 (arXiv 2101.06840, 2021).
    here = 1.0 if job.offload == "none" else 0.0
    plain = Bytes(
        weights=held * weights,
        gradients=here * gradient * trained * (not job.optimizer_in_backward),
        optimizer=here * (master + moments) * trained,
        context=CONTEXT_BYTES,
        activations=job.activation_bytes_per_sample,
        recomputed=job.recomputed_activation_bytes_per_sample,
        logits=logit_bytes(job.method, job.stack) * job.tokens_per_sample * job.vocabulary,
        gathered=gathered,
        reduced=gradient * trained,
        routed=expert_share(job),
        layer=min(job.layer_bytes_per_sample, job.recomputed_activation_bytes_per_sample),
        whole=_whole(job, gathered, gradient * trained),
        most_at_once=float(job.micro_batch or np.inf),
        update=_update_bytes(job),
        trained=trained,
    )
    return _as_measured(job, plain)


def memory_sd(job: Job) -> float:
    """Sd of ln (needed / predicted memory)."""
    if job.memory_gib_at_batch:
        return _MEASURED_SD
    whole = job.sharding in ("auto", "ddp") and job.offload == "none"
    return _ADAPTERS_SD if job.method != "full" and whole else _SD


def fit_chance(job: Job, needed: Floats, usable: Floats) -> Floats:
    """The chance that a prediction fits the memory of which a plan fills so much at most."""
    with np.errstate(divide="ignore"):
        room = np.log(VISIBLE * usable / np.maximum(needed, 1.0))
    return np.asarray(normal_cdf(room / memory_sd(job)))


def sure_bytes(job: Job, usable: float) -> float:
    """The largest prediction that is sure to fit."""
    return VISIBLE * usable * float(np.exp(-memory_sd(job) * normal_quantile(np.array([SURE]))[0]))


def _update_bytes(job: Job) -> float:
    """One copy of the trained weights, in the precision in which they are updated."""
    short = job.precision not in ("fp32", "tf32") and job.method == "full"
    each = 2.0 if short and not job.master_weights else 4.0
    alone = job.optimizer_in_backward or job.offload != "none" or job.stack == "tuned"
    return 0.0 if alone or job.optimizer not in FOREACH else each * job.trainable_parameters


def expert_share(job: Job) -> float:
    """Share of a mixture's parameters in experts: all but attention, 4·h² a layer, and two tables.

    Of Mixtral 8x7B 0.95 (true: 0.97), of Qwen3 235B 0.97.
    """
    if job.family != "moe":
        return 0.0
    shared = 4.0 * job.layers * float(job.hidden) ** 2 + 2.0 * job.vocabulary * job.hidden
    return max(1.0 - shared / job.parameters, 0.0)


def _whole(job: Job, gathered: float, reduced: float) -> float:
    """Weights of two layers and gradients of one, and the two tables at the ends.

    FSDP gathers the next layer while one is computed, and the last one's gradients wait to be
    reduced (`BackwardPrefetch.BACKWARD_PRE`, the default); what lies outside of the layers is
    not given back between the passes (`reshard_after_forward` of the outermost module). PyTorch's
    documentation of FSDP, read 2026-11-24.
    """
    if not job.layers:
        return 0.0
    tables = min(2.0 * job.vocabulary * job.hidden / job.parameters, 0.5) * gathered
    layer = (gathered - tables) / job.layers
    return tables + 2.0 * layer + min(layer, reduced / job.layers)


def extra_gathered_bytes(needs: Bytes, shards: Floats | float) -> Floats | float:
    """Bytes of gathered states in addition to a GPU's own shard."""
    return needs.whole * (1.0 - 1.0 / shards)


def per_sample(needs: Bytes, recompute: bool) -> float:
    """Bytes of each further sample of a micro-batch.

    The loss frees its memory before the first layer is recomputed.
    """
    kept = needs.inputs + layer_excess_bytes(needs) if recompute else needs.activations
    return kept + needs.logits


def layer_excess_bytes(needs: Bytes) -> float:
    """Bytes by which a recomputed layer exceeds the loss."""
    return max(needs.layer - needs.logits, 0.0)


def largest_micro_batch(
    needs: Bytes,
    memory_bytes: Floats,
    held_bytes: Floats,
    recompute: Bools,
    updating_bytes: Floats | float = 0.0,
) -> Floats:
    """The largest micro-batch that fits one GPU; 0 if not even one sample or the update does.

    `memory_bytes` (clusters,), `held_bytes` of states (rows, clusters), `recompute` (rows,),
    `updating_bytes` of states and what an update holds besides them (rows, clusters).
    """
    each = np.where(recompute, per_sample(needs, True), per_sample(needs, False))[:, None]
    room = memory_bytes - needs.context - held_bytes
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(each > 0, np.floor(room / each), np.inf)
    fits = np.where(memory_bytes - needs.context >= updating_bytes, fits, 0.0)
    return np.where(room > 0, np.clip(fits, 0.0, needs.most_at_once), 0.0)


def gib_lines(*held: float, update: float = 0.0) -> tuple[tuple[str, float], ...]:
    """The memory of one GPU line by line (`LINES`), converted from bytes to GiB."""
    return tuple((name, each / GIB) for name, each in zip(LINES, (*held, update), strict=True))


def _as_measured(job: Job, plain: Bytes) -> Bytes:
    """Let the user's own memory readings replace the formula.

    Two readings give bytes = fixed + slope·batch; one gives the slope over the states of the
    formula. Readings are of one GPU, unsharded, nothing recomputed.
    """
    readings = sorted(job.memory_gib_at_batch)
    if not readings:
        return plain
    batch = np.array([b for b, _ in readings], dtype=np.float64)
    held = np.array([gib for _, gib in readings]) * GIB
    fixed, slope = min(plain.states + plain.context, float(held[0])), 0.0
    if len(readings) > 1 and np.ptp(batch) > 0:
        slope = max(float(np.polyfit(batch, held, 1)[0]), 0.0)
        fixed = max(float(np.mean(held - slope * batch)), 0.0)
    else:
        slope = max(float(held[0] - fixed), 0.0) / float(batch[0])
    kept = per_sample(plain, True) / max(per_sample(plain, False), 1.0)
    context = min(plain.context, fixed)
    share = (fixed - context) / max(plain.states, 1.0)
    return Bytes(
        weights=plain.weights * share,
        gradients=plain.gradients * share,
        optimizer=plain.optimizer * share,
        context=context,
        activations=slope,
        recomputed=slope * min(kept, 1.0),
        logits=0.0,
        gathered=plain.gathered,
        reduced=plain.reduced,
        routed=plain.routed,
        whole=plain.whole,
    )


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
        needs.weights * part / shares + gathered,
        needs.gradients * part / shares,
        needs.optimizer / gpus,
        micro_batch * (after if last else kept + layer) / parts,
        micro_batch * needs.logits / parts * last,
        needs.context,
    )
