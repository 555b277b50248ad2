"""What the GPUs of a layout of model parallelism send each other, in seconds.

All-reduces of tensor parallelism, activations between stages, keys and values of shared sequences,
the exchange of experts, and gradients or sharded weights of the replicas.

Experts. e GPUs divide the experts of each layer, each with samples of its own; everything else of a
layer is the same on all of them. A token goes to its k experts and back in the forward pass, its
gradient in the backward pass (GShard, arXiv 2006.16668, 2020): four trips, six where the layer is
recomputed.

If the e GPUs are those of m machines, libraries of recipes send a token once to each machine that
holds some of its experts, and the links of that machine pass it on (DeepEP, deepseek-ai/DeepEP,
2025-02; NVIDIA's Hybrid-EP, 2026-02). Experts that are equally likely lie in other machines

    D = (m - 1) · (1 - (1 - 1/m)^k)

of them on average. A router may be limited to G groups of experts per token, which lie in as many
machines (four of eight for DeepSeek-V3, arXiv 2412.19437, section 2.1.2): D is then at most
G · (1 - 1/m). Scripts send every copy through the network: D = k · (1 - 1/m).

Recipes run an exchange between machines while another micro-batch computes. Two production runs of
Qwen3-Next hid 73 % of an exchange of 31 % of the step, and 26 % of one of 53 % (Tessera, figure 10,
2026), each a quarter of the time in which their GPUs computed. Inside a machine they do not
(`moe_a2a_overlap` of Megatron-Bridge's recipes for B200 and B300 with 8 GPUs, 2026), nor with
recomputation of all layers (Megatron Bridge, "Communication Overlap", 2026).
"""

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import Job
from recommender.performance.clusters import Clusters
from recommender.performance.layouts import Layouts
from recommender.performance.memory import Bytes
from recommender.performance.strategy import BUCKET_BYTES

TRIPS = 4.0  # of a token to an expert or back, in each layer and micro-batch
TRIPS_WITH_RECOMPUTE = 6.0
# Share of the arithmetic that hides the exchange: 22.4 of 83 % and 13.7 of 55 % of a step (the runs
# above; what remains of the step after exposed exchange and, for the first, idle stages of 8.5 %).
HIDDEN = 0.26
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


def expert_machines(fleet: Clusters, layouts: Layouts) -> Floats:
    """m, the number of machines among which the experts of a layer are divided."""
    return np.maximum(layouts.experts / fleet.gpus_per_machine, 1.0)


def other_machines(job: Job, machines: Floats) -> Floats:
    """D, how many times the network of one of m machines carries a token, on average."""
    alone = 1.0 - 1.0 / machines
    if job.stack != "tuned":
        return job.token_experts * alone
    found = (machines - 1.0) * (1.0 - alone**job.token_experts)
    return np.asarray(np.minimum(found, job.expert_groups * alone) if job.expert_groups else found)


def hidden_share(job: Job) -> float:
    """The share of a step's arithmetic that hides the exchange, at most."""
    return HIDDEN if job.family == "moe" and job.stack == "tuned" else 0.0


def exchange_s(
    job: Job, fleet: Clusters, layouts: Layouts, again: Floats, sent: Floats, busy_s: Floats
) -> tuple[Floats, Floats, Floats]:
    """Seconds per sample on the links and on the network, and per micro-batch on the network.

    `sent` are the bytes of a sample between two layers, `again` the share of recomputed layers,
    `busy_s` the arithmetic of a sample that may hide some of it. The links pass tokens on while
    others arrive, so the network takes what it needs longer than they and than what is hidden.
    """
    each, machines = layouts.experts, expert_machines(fleet, layouts)
    calls = (TRIPS + again * (TRIPS_WITH_RECOMPUTE - TRIPS)) * (job.layers / layouts.stages)
    calls = calls * (each > 1)
    near = np.minimum(each, fleet.gpus_per_machine)
    inside = calls * job.token_experts * sent * ((near - 1.0) / near) / fleet.intra_bytes_per_s
    across = machines > 1
    rate = np.where(across, fleet.network_bytes_per_s, np.inf)
    between = calls * other_machines(job, machines) * sent * fleet.gpus_per_machine / rate
    waits = calls * (fleet.network_half_bytes / rate + across * fleet.network_latency_s)
    hidden = hidden_share(job) * busy_s * (again < 1.0)
    return inside, np.maximum(between - inside - hidden, 0.0), waits


def key_width(job: Job) -> int:
    """Width of the keys, and of the values, that GPUs which share a sequence exchange."""
    return min(job.hidden, KEY_WIDTH) if job.stack == "tuned" else job.hidden


def communication_s(
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
    reduced = _all_reduces(job, again) * (2.0 * sent)
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


def link_waits_s(job: Job, layouts: Layouts, again: Floats, wait_s: float) -> Floats:
    """Seconds of a micro-batch before data flow in the all-reduces of shared layers.

    2·(t - 1)/t · `wait_s` for each of them (`overheads.link_wait_s`).
    """
    t, p = layouts.tensor, layouts.stages
    return _all_reduces(job, again) / p * (2.0 * (t - 1.0) / t) * wait_s


def _all_reduces(job: Job, again: Floats) -> Floats:
    """All-reduces of shared layers in a micro-batch, in all layers together."""
    return np.asarray((REDUCED + again * (REDUCED_WITH_RECOMPUTE - REDUCED)) * job.layers)


def _sequences(
    job: Job, fleet: Clusters, layouts: Layouts, again: Floats, wide: float
) -> tuple[Floats, Floats, Floats]:
    """What GPUs that share a sequence add to `communication_s`: keys and values of a layer.

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


def states_s(
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
