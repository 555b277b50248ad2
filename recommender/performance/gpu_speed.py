"""Samples/s of one GPU: arithmetic and bytes, attention, 8 and 4 bits, and software not stated.

Attention costs more in long sequences, with a mask, and where kernels are not fused.

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

Training in 8 and 4 bits. Matrix products in 8 bits run twice as fast as in 16. Casts, scales and
operations that stay in 16 bits take back a part of that. A stack keeps the share φ of it, in
logarithms:

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

import math
from collections.abc import Mapping
from dataclasses import replace

from recommender.arrays import Z_90
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Achieved, Gpu, OwnSpeed
from recommender.job.derive import TOKEN_FAMILIES
from recommender.job.job import LOW_PRECISIONS, Job, Precision
from recommender.performance.priors import (
    FP8,
    Prior,
    gpus_with_runs,
    kind_of,
    number_format,
    prior_of,
    recipe_share,
)
from recommender.performance.speed_spread import (
    faster_siblings,
    has_runs,
    siblings,
    speed_evidence,
)

# Attention's share of what the layers' products reach, and the sequence up to which the constants
# hold it: 64 MPT runs of 4,096 to 65,536 tokens on A100 and H100 (llm-foundry, 2023); of 0.3 to 1.
ATTENTION = 0.7
USUAL_TOKENS = 2048.0
MASKED = 0.39  # the share of the same that a kernel with a mask reaches, of the whole square
MOVED_BYTES = 32.0  # of an element of a score matrix, forward and backward, in 16 bits
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
# Sd of ln speed between machines and library versions of one GPU. Stated, not fitted: boards of
# one H100 fleet differ by 3 % at 95 % (2025), cuBLAS releases by a few per cent.
BETWEEN_MACHINES = 0.05


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


def adapted(factor: float, ratio: float, shipped: Achieved) -> tuple[float, float]:
    """The GPU factor to use with a user's own rate, and the sd of its ln.

    The factor was fitted on trainings together with the shipped speed, so it contains the error of
    that speed, which the user's own speed already corrects. Of ln ratio (the rate with the user's
    figures over the rate with the shipped ones), the share w is the error of the shipped figure and
    is taken out of the factor; 1 - w is specific to the user's machine and stays in the rate:

        factor' = factor · ratio^-w,    w = e² / (e² + u²)

    e is the sd of the shipped ln speed by its range, u the sd between machines with the same GPU.
    Which one it was is not known: sd = |ln ratio| · sqrt(w · (1 - w)), that of a coin that gives
    the shipped figure with probability w.
    """
    error = math.log(shipped.high_tflops / shipped.low_tflops) / (2.0 * Z_90)
    share = error**2 / (error**2 + BETWEEN_MACHINES**2)
    apart = math.log(ratio)
    return factor * math.exp(-share * apart), abs(apart) * math.sqrt(share * (1.0 - share))


def precision_on(wanted: Precision, gpu: Gpu) -> str:
    """The number format in which a job trains on a GPU; "" if the GPU lacks it.

    `mixed` is bf16 if the GPU has it, otherwise fp16; `tf32` allows tf32 and is fp32 on GPUs
    without it; `bf16`, `fp16` and 8 and 4 bits are never emulated, and `fp32` is never rounded to
    tf32. Formats of 8 and 4 bits are returned as "fp8", from whose rate theirs are derived.
    """
    if wanted in LOW_PRECISIONS:
        return FP8 if gpu.peak_fp8_tflops and runs_in(wanted, gpu.gpu) else ""
    peaks = {
        "bf16": gpu.peak_bf16_tflops,
        "fp16": gpu.peak_fp16_tflops,
        "tf32": gpu.peak_tf32_tflops,
        "fp32": gpu.peak_fp32_tflops,
    }
    choices = {"mixed": ("bf16", "fp16"), "tf32": ("tf32", "fp32")}.get(wanted, (wanted,))
    return next((name for name in choices if peaks[name]), "")


@dataclass(frozen=True, slots=True)
class GpuSpeed:
    """Samples/s of one GPU at large batches, and its factor relative to other GPUs."""

    rate: float
    score: float  # the rate times what other networks showed the formula to miss on this GPU
    doubt: float = 0.0  # sd of ln score, from a speed of the user's besides the shipped one
    own: str = ""  # the user's figures in it
    apart: float = 0.0  # sd of ln rate, where the software is not stated


def gpu_speed(
    job: Job,
    prior: Prior,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    factors: Mapping[tuple[str, str, str], float],
) -> GpuSpeed:
    """The speed of a GPU by the formulas; zero if it cannot run the job.

    1/rate = F·(1/(ε·A) + s/(I·BW)): A achieved FLOP/s, BW memory bytes/s, s = 2 in 32 bit. The
    factor of the GPU is 1 if unknown (docs/research/fits.md, "A timing on one GPU"); with the
    user's own speed it is adapted (`adapted`).
    """
    gpu = gpus.get(name)
    precision = precision_on(job.precision, gpu) if gpu else ""
    row = achieved.get((name, precision))
    if gpu is None or row is None or row.tflops <= 0:
        return GpuSpeed(0.0, 0.0)
    scores = None
    if precision == FP8:
        wide = wide_row(achieved, name)
        row = trained_rate(prior, job.precision, row, wide)
        scores = wide.tflops * 1e12 if wide else None
    key = name, number_format(precision), kind_of(prior.family)
    shipped, factor = gpu.memory_gb_per_s * 1e9, factors.get(key, 1.0)
    if not isinstance(row, OwnSpeed):
        rate = sample_rate(job, prior, precision, row.tflops * 1e12, shipped, scores)
        return GpuSpeed(rate * _expected(prior, key, factors), rate * factor)
    memory = row.memory_gb_per_s * 1e9 if row.memory_gb_per_s else shipped
    rate = sample_rate(job, prior, precision, row.tflops * 1e12, memory, scores)
    named = f"{row.tflops:.4g} TFLOP/s {memory / 1e9:.4g} GB/s"
    if row.shipped is None or key not in gpus_with_runs():
        return GpuSpeed(rate, rate * factor, own=named)
    fitted = sample_rate(job, prior, precision, row.shipped.tflops * 1e12, shipped, scores)
    own, doubt = adapted(factor, rate / fitted, row.shipped)
    return GpuSpeed(rate * (own if prior.by_gpu else 1.0), rate * own, doubt, named)


def _expected(
    prior: Prior, key: tuple[str, str, str], factors: Mapping[tuple[str, str, str], float]
) -> float:
    """What to expect of the formulas on a GPU: what they missed on it with other networks.

    Or, without runs on it, by the trend over GPUs. Only typical scripts: the newest GPUs, which
    look best on paper, are the ones they flatter (B200 0.60 to 0.68, H100 0.88 to 0.91). Constants
    that were fitted with these factors are used with them. Others include what the formulas miss on
    the GPUs of their runs; elsewhere, only the difference from those of the same architecture
    remains. Without runs of the family downwards only: nobody rents a GPU for being better than its
    datasheet.
    """
    name, precision, kind = key
    if prior.stack != "typical":
        return 1.0
    factor = factors.get(key, 1.0)
    if name in prior.gpus:
        return factor if prior.by_gpu else 1.0
    seen = frozenset() if prior.by_gpu else siblings(name) & set(prior.gpus)
    alike = [factors.get((other, precision, kind), 1.0) for other in sorted(seen)]
    included = math.exp(sum(map(math.log, alike)) / len(alike)) if alike else 1.0
    return min(factor / included, 1.0)


def bounded_speed(
    job: Job,
    prior: Prior,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    factors: Mapping[tuple[str, str, str], float],
) -> GpuSpeed:
    """The speed of a GPU; without trainings on it, at most that of a faster, timed sibling."""
    found = gpu_speed(job, prior, name, gpus, achieved, factors)
    gpu = gpus.get(name)
    precision = precision_on(job.precision, gpu) if gpu else ""
    if found.own or not precision or has_runs(name, precision, prior):
        return found
    measured = [other for other in gpus if has_runs(other, precision, prior)]
    for other in faster_siblings(name, precision, gpus, measured):
        most = gpu_speed(job, prior, other, gpus, achieved, factors)
        if most.rate > 0.0 and not most.own:
            found = replace(
                found, rate=min(found.rate, most.rate), score=min(found.score, most.score)
            )
    return found


def scaled_speed(
    job: Job,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
    factors: Mapping[tuple[str, str, str], float],
) -> GpuSpeed:
    """The speed of a GPU; of software that is not stated, on the scale from scripts to recipes.

    In ln, recipes are D faster, of this network at this precision on this GPU. A share x of what
    people run is taken to be one and the rest the other: x·D in the mean, with the sd
    D·sqrt(x·(1 - x)).
    """
    share = recipe_share(job)
    if not share:
        return bounded_speed(job, prior_of(job), name, gpus, achieved, factors)
    script, recipe = (
        bounded_speed(each, prior_of(each), name, gpus, achieved, factors)
        for each in (job.as_script, job.as_recipe)
    )
    if not (script.rate > 0.0 and recipe.rate > 0.0):
        return script
    return replace(
        script,
        rate=script.rate ** (1.0 - share) * recipe.rate**share,
        score=script.score ** (1.0 - share) * recipe.score**share,
        apart=abs(math.log(recipe.rate / script.rate)) * math.sqrt(share * (1.0 - share)),
    )


def speed_sd(
    job: Job,
    prior: Prior,
    name: str,
    gpus: Mapping[str, Gpu],
    achieved: Mapping[tuple[str, str], Achieved],
) -> float:
    """What a GPU adds to the spread of its family: its matrix rate, and whether it was seen.

    Also how many bytes the network moves on it.
    """
    gpu = gpus.get(name)
    precision = precision_on(job.precision, gpu) if gpu else ""
    row = achieved.get((name, precision))
    known = speed_evidence(prior, name, precision, row).sd
    if gpu is None or row is None or row.tflops <= 0 or job.family != "cnn":
        return known
    memory = gpu.memory_gb_per_s * 1e9
    computed, moved = _seconds_per_flop(job, prior, precision, row.tflops * 1e12, memory)
    return math.hypot(known, bytes_sd(job.intensity_ratio, moved / (moved + computed)))


def bytes_sd(ratio: float, share: float) -> float:
    """Sd of ln speed because a network's bytes are not those of the networks of the fits.

    A convolutional network's FLOP per byte count with the exponent 1/2 (`derive.intensity_ratio`),
    but those that were tried do best with 0 (3D U-Net, ResNet-152) to 1 (RetinaNet):
    docs/research/fits.md, "Later runs". Half more or less of the exponent changes the moved bytes,
    a share of the time, by the ratio itself.
    """
    return share * abs(math.log(ratio))


def sample_rate(
    job: Job,
    prior: Prior,
    precision: str,
    matmul: float,
    memory: float,
    scores: float | None = None,
) -> float:
    """Samples/s at large batches of a GPU with `matmul` FLOP/s and `memory` bytes/s.

    `scores` are the FLOP/s of attention if it uses more bits than the layers.
    """
    computed, moved = _seconds_per_flop(job, prior, precision, matmul, memory)
    per_flop = computed + moved
    per_score = computed * matmul / (scores or matmul) + moved
    attention = min(attention_flop(job), job.flop_per_sample)
    arithmetic = (job.flop_per_sample - attention) * per_flop
    arithmetic += (attention + long_attention_flop(job)) * per_score
    return 1.0 / (arithmetic + extra_attention_s(job, _wide(precision), per_flop, memory))


def _seconds_per_flop(
    job: Job, prior: Prior, precision: str, matmul: float, memory: float
) -> tuple[float, float]:
    """Seconds that a FLOP takes in arithmetic, and in moving its bytes."""
    efficiency = prior.efficiency_fp32 if precision == "fp32" else prior.efficiency
    moved = _wide(precision) / (prior.intensity(job.hidden) * job.intensity_ratio * memory)
    return 1.0 / (efficiency * matmul), moved


def _wide(precision: str) -> float:
    """Bytes of a number in units of two."""
    return 2.0 if precision in ("fp32", "tf32") else 1.0
