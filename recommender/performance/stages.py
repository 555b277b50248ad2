"""How evenly the stages of a pipeline divide a network.

Stages have whole layers, and the last one also has the output layer, whose product with the
vocabulary takes as long as some layers: 0.3 of GPT-3, 0.6 of Llama 3.1 405B, 2.1 of Llama 3 8B,
4.9 of GPT-2 124M. So it has fewer others where that makes the longest stage shorter. Llama 3.1 405B
has 126 layers for 128 places for this reason (arXiv 2407.21783, section 3.3.2), and NVIDIA's
recipes for DeepSeek-V3 count the output as layers (`pp_layout` of Megatron-Bridge, 2026).
"""

import math

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import Job

MAX_UNEVEN = 1.04  # layers of the longest stage over the mean: 126 layers in 16 stages are 1.016


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
