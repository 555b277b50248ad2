"""The extra cost of attention: long sequences, masks, and kernels that are not fused.

Fused kernels (FlashAttention, arXiv 2205.14135) keep the score matrices of a sample on the chip.
Plain kernels write and read them, a heads·s² matrix in each layer, and compute the half that a
causal mask discards:

    32 B · heads · L · s² / BW  +  6 · h · L · s² / rate     per sample, in 16 bits

Of the 32 bytes per element 13 belong to the forward pass (scores out; softmax in and out; dropout
in, out and its mask; in again for the values) and 19 to the backward pass. Which kernels software
runs by default is in `inputs/training_software.csv`, and for networks of transformers in the column
`sdpa` of `networks/conventions.csv`. For stored bytes per element see `Scores` in
`job/activations.py`.

PyTorch's fused kernels take a causal mask, but no other. Where padding, or a window, is masked,
transformers' sdpa goes to a kernel that computes the whole square, at a lower rate: Mistral 7B with
adapters falls from 3,247 to 2,483 tokens/s at 4,096 tokens and from 3,083 to 1,918 at 8,192 (A100;
huggingface/transformers, issue 30461, 2024-04), which are 0.40 and 0.38 of the layers' speed.
"""

from recommender.job.derive import TOKEN_FAMILIES
from recommender.job.job import Job

# Attention's share of what the layers' products reach, and the sequence up to which the constants
# hold it: 64 MPT runs of 4,096 to 65,536 tokens on A100 and H100 (llm-foundry, 2023); of 0.3 to 1.
ATTENTION = 0.7
USUAL_TOKENS = 2048.0
MASKED = 0.39  # the share of the same that a kernel with a mask reaches, of the whole square
MOVED_BYTES = 32.0  # of an element of a score matrix, forward and backward, in 16 bits


def sequences(job: Job) -> tuple[float, float]:
    """The number of sequences per sample (two for preferences), and the tokens of each."""
    count = 2.0 if job.post_training == "dpo" else 1.0
    return count, job.tokens_per_sample / count


def attention_flop(job: Job) -> float:
    """FLOP per sample in scores and their products with the values; 0 without attention."""
    if job.family not in TOKEN_FAMILIES:
        return 0.0
    count, tokens = sequences(job)
    each = 12.0 if job.family == "encoder" else 6.0  # half of the scores under a causal mask
    return count * each * job.hidden * job.layers * tokens**2


def long_attention_flop(job: Job) -> float:
    """FLOP of matrix products that take as long as the extra time of attention in long sequences.

    F_att·(1 - 2048/s)·(1/0.7 - 1): scores and their softmax reach 0.7 of the speed of the layers'
    products. The constants already include sequences of up to 2,048 tokens.
    """
    _, tokens = sequences(job)
    return attention_flop(job) * long_share(tokens)


def long_share(tokens: float) -> float:
    """The extra cost of attention in sequences of so many tokens, relative to its FLOP."""
    return max(1.0 - USUAL_TOKENS / tokens, 0.0) * (1.0 / ATTENTION - 1.0)


def extra_attention_s(job: Job, wide: float, per_flop: float, memory: float) -> float:
    """Extra seconds per sample of attention that is not fused or has a mask; 0 for other.

    `wide` is 2 in 32 bits; `per_flop` is the time of one FLOP of the layers, `memory` bytes/s.
    """
    if job.attention == "fused" or job.family not in TOKEN_FAMILIES:
        return 0.0
    count, tokens = sequences(job)
    squares = count * job.layers * tokens**2
    whole, counted = 12.0 * job.hidden * squares, attention_flop(job)
    if job.attention == "masked":
        return (whole / MASKED - counted - long_attention_flop(job)) * per_flop
    return wide * MOVED_BYTES * job.heads * squares / memory + (whole - counted) * per_flop
