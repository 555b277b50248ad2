"""Attention: what long sequences cost more than the layers' products, and unfused kernels.

Fused kernels (FlashAttention, arXiv 2205.14135) keep the score matrices of a sample on the chip.
Plain ones write and read them, a heads·s² matrix in each layer, and compute the half that a causal
mask throws away:

    32 B · heads · L · s² / BW  +  6 · h · L · s² / rate     a sample, in 16 bits

Of the 32 bytes of an element 13 are of the forward pass (scores out; softmax in and out; dropout
in, out and its mask; in again for the values) and 19 of the backward pass. Megatron-DeepSpeed and
scripts of before 2023 run so unless told otherwise (`--use-flash-attn`). What is kept of each
element: `Scores` of `job/activations.py`.
"""

from recommender.job.activations import heads_of
from recommender.job.derive import TOKEN_FAMILIES
from recommender.job.job import Job

# Attention's share of what the layers' products reach, and the sequence up to which the constants
# hold it: 64 MPT runs of 4,096 to 65,536 tokens on A100 and H100 (llm-foundry, 2023); of 0.3 to 1.
ATTENTION = 0.7
USUAL_TOKENS = 2048.0
MOVED_BYTES = 32.0  # of an element of a score matrix, forward and backward, in 16 bits


def sequences(job: Job) -> tuple[float, float]:
    """Sequences in a sample, two of preferences, and the tokens of each."""
    count = 2.0 if job.post_training == "dpo" else 1.0
    return count, job.tokens_per_sample / count


def attention_flop(job: Job) -> float:
    """FLOP of a sample in scores and their products with the values; 0 but for transformers."""
    if job.family not in TOKEN_FAMILIES:
        return 0.0
    count, tokens = sequences(job)
    each = 12.0 if job.family == "encoder" else 6.0  # half of the scores under a causal mask
    return count * each * job.hidden * job.layers * tokens**2


def long_attention_flop(job: Job) -> float:
    """FLOP of matrix products that take as long as attention's of long sequences take more.

    F_att·(1 - 2048/s)·(1/0.7 - 1): scores and their softmax reach 0.7 of what the layers' products
    do; sequences of up to 2,048 tokens are in the constants as they are.
    """
    _, tokens = sequences(job)
    return attention_flop(job) * long_share(tokens)


def long_share(tokens: float) -> float:
    """By how much attention of sequences of so many tokens counts more than its FLOP."""
    return max(1.0 - USUAL_TOKENS / tokens, 0.0) * (1.0 / ATTENTION - 1.0)


def plain_attention_s(job: Job, wide: float, per_flop: float, memory: float) -> float:
    """Seconds a sample that unfused attention adds on a GPU of `memory` bytes/s; 0 where fused.

    `wide` is 2 in 32 bits; `per_flop` the seconds of a FLOP of the layers.
    """
    if job.attention == "fused" or job.family not in TOKEN_FAMILIES:
        return 0.0
    count, tokens = sequences(job)
    squares = count * job.layers * tokens**2
    masked = 0.0 if job.family == "encoder" else 6.0 * job.hidden * squares
    return wide * MOVED_BYTES * heads_of(job.hidden) * squares / memory + masked * per_flop
