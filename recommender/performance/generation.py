"""The time in which an inference engine writes the completions of a step (GRPO, PPO).

A token is written by reading all weights and the keys and values of every sequence written at
once; of many sequences the products may take longer. A copy of the network on several GPUs adds up
the outputs of its layers, in messages so small that only their latency counts. As many sequences
are written at once as their keys and values fit beside the weights. The longest completion is
waited for: while it ends, each token costs the weights alone. Prompts are read as fast as a forward
pass. The GPUs that train also generate. CUDA graphs are assumed, the default of verl since
2025-08-07: engines without them, as in runs before, also wait 0.26 ms a layer for their launches.
"""

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import Job
from recommender.performance.clusters import Clusters, MachineColumns
from recommender.performance.memory import FROZEN_BYTES
from recommender.performance.overheads import constants

# Share of the memory bandwidth that decoding reaches: 72 %, PyTorch, "Accelerating Generative AI
# with PyTorch II: GPT, Fast" (2023-11-30).
_REACHED = 0.72
_ENGINE = 0.6  # of a GPU's memory; gpu_memory_utilization of most recipes of verl (read 2026-11-29)
# Of a decoding step besides the GPU's work, for scheduling: 29 against 38 % for the GPU (vLLM,
# "v0.6.0: 2.7x Throughput", 2024-09-05), which takes "as low as ~5ms" (vLLM, "V1", 2025-01-27)
_BETWEEN_S = 3.8e-3
_MOST = 1024.0  # sequences at once: max_num_seqs of verl's engine (read 2026-11-29)


def generation_s(job: Job, columns: MachineColumns, fleet: Clusters) -> Floats:
    """Seconds of generation in each step of the clusters; 0 where timings contain it."""
    if not job.completion_tokens or job.timings or job.calibration is not None:
        return np.zeros(len(fleet))
    gpus = np.maximum(fleet.gpus, 1.0)
    weights = (2.0 if job.method != "qlora" else FROZEN_BYTES["qlora"]) * job.parameters
    room = np.maximum(_ENGINE * fleet.memory_bytes, 1.0)
    shared = np.exp2(np.ceil(np.log2(np.maximum(weights / (0.7 * room), 1.0))))
    shared = np.minimum(shared, gpus)  # GPUs of one copy of the network
    each = job.batch_on(fleet.gpus) * shared / gpus
    cache = job.cache_bytes_per_token * job.tokens_per_sample
    at_once = np.clip((room * shared - weights) / max(cache, 1.0), 1.0, _MOST)
    at_once = np.minimum(at_once, np.maximum(each, 1.0))
    rate = _REACHED * shared * _bandwidth(columns, fleet)
    launch = _BETWEEN_S + _reductions_s(job, fleet, shared)
    read = np.minimum(weights, 2.0 * job.active_parameters * at_once) / rate + launch
    context = job.tokens_per_sample - job.completion_tokens / 2.0
    cached = at_once * job.cache_bytes_per_token * context / rate
    with np.errstate(divide="ignore", invalid="ignore"):
        flop_s = fleet.compute_per_s / gpus * job.flop_per_sample * shared
        token_s = np.where(flop_s > 0, 2.0 * job.active_parameters / flop_s, 0.0)
    step = np.maximum(read + cached, at_once * token_s + launch)
    prompts = each * (job.tokens_per_sample - job.completion_tokens) * token_s
    tail = max(job.longest_completion - job.completion_tokens, 0.0) * read
    return np.asarray(each / at_once * job.completion_tokens * step + tail + prompts)


def _reductions_s(job: Job, fleet: Clusters, shared: Floats) -> Floats:
    """Seconds of a decoding step's all-reduces, two of each layer, over the GPUs of one copy."""
    inside = np.minimum(shared, np.maximum(fleet.gpus_per_machine, 1.0))
    near = 2.0 * (inside - 1.0) / inside * constants()["link_wait"]
    far = fleet.network_latency_s * np.log2(np.ceil(shared / inside))
    return np.asarray(2.0 * job.layers * (near + far))


def _bandwidth(columns: MachineColumns, fleet: Clusters) -> Floats:
    """Memory bytes/s of a GPU; of several types the slowest that may be among them."""
    each = columns.memory_bytes_per_s
    if each is None:
        raise ValueError("machine columns lack the bandwidth of memory")
    slowest = float(each[each > 0].min()) if (each > 0).any() else 1.0
    return np.where(fleet.kind >= 0, np.maximum(each[fleet.kind], slowest), slowest)
