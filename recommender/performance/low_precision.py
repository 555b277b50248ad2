"""Training in 8 and 4 bits: the share of the faster matrix products that becomes speed.

Matrix products in 8 bits run twice as fast as in 16. Casts, scales and operations that stay in 16
bits take back a part of that. A stack keeps the share φ of it, in logarithms:

    A = A16 · (A8 / A16)^φ

Attention scores stay in 16 bits (by default, Transformer Engine's `fp8_dpa` is off and torchao's
float8 leaves them). Weights, gradients, optimizer states and activations do not change: Llama 3 8B
uses 47.65 GB in bf16 and 47.77 GB in float8 (pytorch/ao, torchao/float8, README, 8 H100, 2025).

GPUs whose tensor cores scale blocks of numbers also train in MXFP8 (one scale per 32 numbers) and
NVFP4 (per 16, 4 bits each). Their rates are derived from that of FP8 with NVIDIA's tables of one
network on one cluster in all three (Megatron-Bridge, performance summary, 25.11 to 26.04): Llama 3
70B and 3.1 405B on 8 to 256 GB200 and GB300 run at 0.88 to 0.99 of FP8 in MXFP8 (twelve pairs), and
at 1.15 to 1.39 in NVFP4 (four).
"""

from collections.abc import Mapping
from dataclasses import replace

from recommender.catalogs.schema import Achieved
from recommender.performance.priors import Prior

FP8 = "fp8"
# Rate of products over FP8's, so that 405B on 256 GB200 gains what was published: 0.93 and 1.37 of
# the step's speed, which holds attention in 16 bits and communication as well.
OVER_FP8 = {FP8: 1.0, "mxfp8": 0.91, "nvfp4": 1.55}
# "B200", "GB200" and Ultra: NVIDIA Blackwell architecture, technical brief, 2024-03
SCALING_BLOCKS = frozenset({"B200", "B300", "GB200", "GB300"})
# φ of scripts: Llama 3 8B gains 25 % with one scale a tensor and 10 % with one a row on eight H100
# (pytorch/ao as above, 2025), 70B 50 % on 128 (PyTorch, "Enabling Float8 All-Gather in FSDP2",
# 2024-10): 0.55, 0.23 and 0.74 of what the formulas give 8-bit products alone; their mean.
TYPICAL = 0.51
# Vendors' recipes (Transformer Engine in NeMo, Megatron-LM, MLPerf) keep all of it: study
# `parallel-fp8`.
TUNED = 1.0
# Sd of ln speed that φ adds: 0.23 to 0.74 of a gain of 1.5.
SIGMA = 0.10


def kept_share(prior: Prior) -> float:
    """φ, the share of the faster products that a family's stack keeps."""
    return TUNED if prior.stack == "tuned" else TYPICAL


def runs_in(wanted: str, gpu: str) -> bool:
    """Whether a GPU with 8-bit products can train in a format of 8 or 4 bits."""
    return wanted == FP8 or (wanted in OVER_FP8 and gpu in SCALING_BLOCKS)


def trained_rate(prior: Prior, wanted: str, row: Achieved, wide: Achieved | None) -> Achieved:
    """The matrix rate of training in 8 or 4 bits, from 8-bit and 16-bit products."""
    if wide is None or min(wide.tflops, row.tflops) <= 0:
        return row
    products = row.tflops * OVER_FP8[wanted]
    kept: float = (products / wide.tflops) ** (kept_share(prior) - 1.0)
    return replace(row, tflops=products * kept)


def wide_row(achieved: Mapping[tuple[str, str], Achieved], name: str) -> Achieved | None:
    """The 16-bit rate of a GPU."""
    return achieved.get((name, "bf16")) or achieved.get((name, "fp16"))
