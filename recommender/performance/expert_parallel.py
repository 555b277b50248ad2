"""Expert parallelism: tokens go to the GPUs that hold their experts, and back.

e GPUs divide the experts of each layer, each with samples of its own; everything else of a layer is
the same on all of them. A token goes to its k experts and back in the forward pass, its gradient in
the backward pass (GShard, arXiv 2006.16668, 2020): four trips, six where the layer is recomputed.

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

TRIPS = 4.0  # of a token to an expert or back, in each layer and micro-batch
TRIPS_WITH_RECOMPUTE = 6.0
# Share of the arithmetic that hides the exchange: 22.4 of 83 % and 13.7 of 55 % of a step (the runs
# above; what remains of the step after exposed exchange and, for the first, idle stages of 8.5 %).
HIDDEN = 0.26


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
