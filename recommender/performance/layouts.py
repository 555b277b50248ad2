"""Layouts of model parallelism: degrees of tensor, context and pipeline parallelism.

A replica of the network uses t·c·p GPUs: each layer on t GPUs of one machine (tensor parallelism),
each sequence on c groups of them (context parallelism, arXiv 2310.01889; Llama 3, arXiv 2407.21783,
section 3.3.2), the layers in p stages. Weights are stored once by each group of GPUs that share a
layer or, if sharded, once by the whole cluster (FSDP + TP: torchtitan, arXiv 2410.06511).

Stages have whole layers, and the last one also has the output layer, whose product with the
vocabulary takes as long as some layers: 0.3 of GPT-3, 0.6 of Llama 3.1 405B, 2.1 of Llama 3 8B,
4.9 of GPT-2 124M. So it has fewer others where that makes the longest stage shorter. Llama 3.1 405B
has 126 layers for 128 places for this reason (arXiv 2407.21783, section 3.3.2), and NVIDIA's
recipes for DeepSeek-V3 count the output as layers (`pp_layout` of Megatron-Bridge, 2026).
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.job.derive import TOKEN_FAMILIES
from recommender.job.job import Job
from recommender.performance.clusters import Clusters
from recommender.performance.gpu_speed import sequences
from recommender.performance.memory import expert_share

MAX_UNEVEN = 1.04  # layers of the longest stage over the mean: 126 layers in 16 stages are 1.016
MAX_TENSOR = 8  # GPUs that share a layer: all of a machine, eight at most
# Or a part of them: NVIDIA trains Llama 3 70B and GPT-3 with four of eight (NeMo's performance
# summary, 2024; MLPerf Training v3.1), Llama 3.1 405B with four of 64 (Megatron-Bridge, 2025).
# Mixtures divide experts instead: "Prefer EP over TP for the expert layer" (Megatron Core, README
# of its MoE, read 2026-11).
PARTS = (2, 4)
DEGREES = (1, 2, 4, 8)
# GPUs that divide experts: those of several machines (32 on B200, 64 on H100 for DeepSeek-V3), all
# of a machine, or some or all of a link domain (32 and 64 of an NVL72: Megatron-Bridge, performance
# summary, 2025-09 to 2026-08); their number divides that of the experts.
EXPERT_GPUS = (2, 4, 8, 16, 32, 64)
MIN_EXPERT_GPUS = 8  # of those of a machine or link domain with more, the fewest that are tried
MIN_EXPERTS = 8  # of a layer: Mixtral's
# Experts that each token passes, to estimate how many a layer has: fewer than `job.token_experts`,
# which counts shared experts as well. With those (1.7 to 9.9 of the known mixtures) the estimate
# is nearer, but 64 GPUs would divide the 60 experts of Qwen1.5-MoE; with 3 it is never too high.
TOKEN_EXPERTS = 3.0
STAGES = (1, 2, 4, 8, 16)
# NVIDIA trains Llama 3.1 405B in 9 stages on 576 GPUs (NeMo's performance summary, 2024-2025),
# BLOOM had 12 (arXiv 2211.05100); 3 and 6 divide the same machines.
MORE_STAGES = (3, 6, 9, 12)
CONTEXTS = (2, 4, 8, 16)  # Llama 3 405B: 16 for sequences of 131,072 (arXiv 2407.21783, table 4)
# Tokens of a sequence that each of c GPUs keeps at least: NVIDIA's recipes share 8,192 among two
# (Megatron-Bridge, performance summary, Llama 3.1 405B; NeMo 24.07, Llama 3 70B).
MIN_TOKENS = 4096
# Below, `auto` looks at data parallelism only: a GPU holds the network, or scripts shard it. From
# 30 B on scripts take Megatron-LM's layers as well (GPT-NeoX, BLOOM, OPT: 20 to 176 B, 2022).
MIN_PARAMETERS = {"tuned": 1e9, "typical": 3e10}


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout, independent of the machines."""

    tensor: int  # GPUs that share each layer; 0: all of a machine
    stages: int  # 0: all machines are one pipeline
    context: int = 1  # groups of GPUs that share a sequence
    sharded: bool = False  # whether all GPUs of the cluster divide the weights as well
    experts: int = 1  # GPUs that divide the experts of each layer


# The stages of a pipeline over several machines are 2, 4, 8, 16, `MORE_STAGES`, or all of them.
LAYOUTS: tuple[Layout, ...] = (
    Layout(0, 1),
    *(Layout(1, stages) for stages in (2, 4, 8)),
    *(Layout(0, stages) for stages in (2, 4, 8, 16, 0)),
    Layout(0, 1, sharded=True),
    *(Layout(0, stages, context) for stages in STAGES for context in CONTEXTS),
    *(Layout(0, 1, context, sharded=True) for context in CONTEXTS),
    *(Layout(1, 1, context, sharded) for sharded in (False, True) for context in CONTEXTS),
    *(Layout(1, stages, experts=gpus) for stages in STAGES for gpus in EXPERT_GPUS),
    *(Layout(0, stages) for stages in MORE_STAGES),
    *(Layout(0, stages, context) for stages in MORE_STAGES for context in CONTEXTS),
    *(Layout(tensor, stages) for tensor in PARTS for stages in (*STAGES, *MORE_STAGES)),
)
_TENSOR, _STAGES, _CONTEXT, _SHARDED, _EXPERTS = (
    np.array([getattr(layout, name) for layout in LAYOUTS])[:, None, None]
    for name in Layout.__slots__
)


@dataclass(frozen=True, slots=True)
class Layouts(Table):
    """Layouts of the network, each on one cluster; shape (pairs,)."""

    layout: Ints  # row of LAYOUTS
    cluster: Ints
    tensor: Floats  # t, GPUs that share a layer
    stages: Floats  # p
    context: Floats  # c, groups of them that share a sequence
    sharded: Floats  # 1 where all GPUs of the cluster divide the weights, else 0
    experts: Floats  # GPUs that divide the experts of a layer

    @property
    def replica(self) -> Floats:
        """GPUs that work on the same samples."""
        return self.tensor * self.context * self.stages

    @property
    def parts(self) -> Floats:
        """GPUs among which the activations of a layer are divided."""
        return self.tensor * self.context


def has_layouts(job: Job) -> bool:
    """Whether a job may use model parallelism: a transformer whose software supports it.

    With `auto` this holds for large networks in the tuned stack (Megatron-LM, NeMo) and
    for the largest in scripts of the typical stack, which shard the weights of others. Typical
    scripts that train adapters shard weights at any size (PEFT's guides use FSDP and DeepSpeed,
    also for a 70B on 8 H100; read 2026-11).
    """
    if job.hidden < 1 or job.layers < 1 or job.sync != "allreduce":
        return False
    if job.sharding == "auto":
        shards = job.stack == "typical" and job.method != "full"
        return job.parameters >= MIN_PARAMETERS[job.stack] and not shards
    return job.sharding in ("tensor", "pipeline", "context")


def most_context(job: Job) -> int:
    """The largest number of groups of GPUs that may share a sequence; 1 if it is short."""
    if job.family not in TOKEN_FAMILIES:
        return 1
    _, tokens = sequences(job)
    return max((c for c in CONTEXTS if tokens >= c * MIN_TOKENS), default=1)


def expert_estimate(job: Job) -> float:
    """About how many experts a layer has, by the parameters that a token passes.

    13 for Mixtral 8x7B (true: 8), 47 for Qwen3 235B (128), 85 for DeepSeek-V3 (256). Rounded down
    to a power of two it is at most the true number, for each of the thirteen mixtures of the table
    of known models (2026-11).
    """
    stored = expert_share(job) * job.parameters
    passed = job.active_parameters - (job.parameters - stored)
    return max(MIN_EXPERTS, TOKEN_EXPERTS * stored / passed if passed > 0 else 0.0)


def layouts_of(job: Job, fleet: Clusters, held: float = 0.0, *, spare: bool = False) -> Layouts:
    """Every layout of the network on every cluster whose GPUs hold so many bytes together.

    Machines must have the same size and, if there are several, a known network. With `spare`, the
    machines that no whole replica needs may be idle (`used`).
    """
    whole = np.floor(fleet.gpus_per_machine)
    fits = (fleet.gpus == fleet.machines * whole) | (spare & (fleet.kind >= 0))
    fits &= (fleet.gpus >= 2) & (fleet.compute_per_s > 0)
    fits &= (fleet.machines <= 1) | (fleet.network_bytes_per_s > 0)
    fits &= fleet.memory_bytes * fleet.gpus >= held
    rows = np.flatnonzero(fits)
    if not len(rows):
        return Layouts(rows, rows, *(np.zeros(0) for _ in range(5)))
    n, g = (fleet.gpus // whole)[rows].astype(np.int64), whole[rows].astype(np.int64)
    places = job.layers + head_layers(job)
    limits = job.hidden, job.layers, places, job.sharding, most_context(job), spare
    possible, tensor, stages = _possible(*limits, int(n.max()), int(g.max()))
    most_experts = expert_estimate(job) if job.family == "moe" else 1.0
    known = (most_context(job) >= _CONTEXT) & (most_experts >= _EXPERTS)
    tried = np.flatnonzero(known & ((_TENSOR <= 1) | (job.family != "moe")))
    layout, at = np.nonzero(possible[tried][:, n, g])
    layout = tried[layout]
    degrees, own = (layout, n[at], g[at]), (_CONTEXT, _SHARDED, _EXPERTS)
    rest = (each[layout, 0, 0].astype(np.float64) for each in own)
    return Layouts(layout, rows[at], tensor[degrees], stages[degrees], *rest)


def used(fleet: Clusters, layouts: Layouts) -> Clusters:
    """The machines of each cluster that whole replicas need, without those that are idle.

    Where machines share links, only racks as large as the largest are used.
    """
    whole = np.maximum(layouts.replica * layouts.experts / fleet.gpus_per_machine, 1.0)
    machines = fleet.gpus // fleet.gpus_per_machine // whole * whole
    gpus = machines * fleet.gpus_per_machine
    summed = ("compute_per_s", "prepare_per_s", "fetch_per_s")
    parts = {name: getattr(fleet, name) * (gpus / fleet.gpus) for name in summed}
    return replace(fleet, machines=machines, gpus=gpus, **parts)


@lru_cache(maxsize=64)
def _possible(
    hidden: int,
    layers: int,
    places: float,
    sharding: str,
    most_context: int,
    spare: bool,
    machines: int,
    gpus: int,
) -> tuple[Bools, Floats, Floats]:
    """Which layouts n machines of g GPUs allow, with their t and p; (layouts, n, g).

    t divides the width and each of p stages has a layer; `places` counts the output layer, too. A
    replica (with the GPUs that divide its experts) is part of a machine that divides it, or whole
    machines that divide the cluster, or with `spare` no more than it has.
    """
    n, g = np.arange(machines + 1)[None, :, None], np.arange(gpus + 1)[None, None, :]
    tensor = np.maximum(np.where(_TENSOR > 0, _TENSOR, np.minimum(g, MAX_TENSOR)) + 0 * n, 1)
    even = _even(np.maximum(n, 1), layers, places)
    longest = np.maximum.accumulate(np.where(even, n, 1), axis=1) if spare else n
    stages = np.maximum(np.where(_STAGES > 0, _STAGES, longest) + 0 * g, 1)
    replica, size = tensor * stages * _CONTEXT * _EXPERTS, np.maximum(g, 1)
    inside = (replica <= g) & (g % replica == 0)
    whole = np.maximum(replica // size, 1)
    across = (replica > g) & (replica % size == 0) & ((n >= whole) if spare else (n % whole == 0))
    across &= (g % _EXPERTS == 0) | (_EXPERTS % size == 0)
    good = (inside | across) & (n >= 1) & (g >= 1) & (most_context >= _CONTEXT)
    good &= (_TENSOR <= 1) | ((tensor < np.minimum(g, MAX_TENSOR)) & (g % tensor == 0))
    good &= (_EXPERTS == 1) | (np.minimum(g, MIN_EXPERT_GPUS) <= _EXPERTS)
    good &= np.isin(tensor, DEGREES) & (hidden % tensor == 0) & _even(stages, layers, places)
    listed = np.isin(longest, (*STAGES, *MORE_STAGES))
    good &= np.where(_STAGES > 0, _distinct(g), (tensor == g) & ~listed)
    good &= ~_SHARDED | (n * g > tensor)  # else there is no other replica to divide them with
    good &= (_TENSOR != 1) | (_CONTEXT == 1) | (g >= _CONTEXT) | (g == 1)
    if sharding == "tensor":
        good &= (stages == 1) & (tensor > 1) & (_CONTEXT == 1)
    elif sharding == "pipeline":
        good &= (stages > 1) & (_CONTEXT == 1)
    elif sharding == "context":
        good &= (_CONTEXT > 1) & (n >= 0)
    return good, tensor.astype(np.float64), stages.astype(np.float64)


def _even(stages: Ints, layers: int, places: float) -> Bools:
    """Whether so many stages have nearly equal layers, one at least."""
    return (stages <= layers) & (np.ceil(layers / stages) * stages <= MAX_UNEVEN * places)


def _distinct(g: Ints) -> Bools:
    """Where a layout is not the twin of another: on machines of one GPU no layer is shared.

    There, LAYOUTS that do not share layers have 2, 4 or 8 stages, and one where a sequence is
    shared.
    """
    left = np.isin(_STAGES, (max(STAGES), *MORE_STAGES)) | ((_CONTEXT > 1) & (_STAGES > 1))
    return np.asarray((g > 1) | (_TENSOR == 1) | left)


def head_layers(job: Job) -> float:
    """The number of layers that take as long as the output layer.

    By the FLOP of a sample, which count tables once that are also the output layer, and tables that
    are only looked up not at all.
    """
    if job.vocabulary < 1 or job.layers < 1 or job.tokens_per_sample <= 1:
        return 0.0
    head = 2.0 * job.vocabulary * job.hidden * job.tokens_per_sample
    forward = job.flop_per_sample / job.forward_passes
    return job.layers * head / max(forward - head, forward / 2.0)


def longest_share(job: Job, stages: Floats, chunks: Floats) -> Floats:
    """The time of the longest stage over the mean of all, with v chunks of layers per GPU.

    The last stage has what the others leave, and the output layer.
    """
    head, longest = head_layers(job), np.full_like(stages, np.inf)
    for more in range(1 + math.ceil(head)):
        others = (np.ceil(job.layers / (stages * chunks)) + more) * chunks
        last = np.maximum(job.layers - (stages - 1.0) * others, 0.0) + head
        each = np.where(stages > 1, np.maximum(others, last), last)
        longest = np.minimum(longest, each)
    return np.asarray(longest * stages / (job.layers + head))
