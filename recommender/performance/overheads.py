"""What scripts spend beside the arithmetic: kernels that start late, and passes over the weights.

While a GPU computes, the processor queues further kernels, so launching them costs nothing until
the GPU is faster than the processor: with small micro-batches on the newest GPUs. The small kernels
of adapters are not hidden; steps of fine-tuning are the sum of their parts:

    t = ga · (arithmetic + launches + passes · 17.2 B · W4 / BW) + 60 B · trained / (shards · BW)

4-bit weights are unpacked into 16 bits before each product: half a byte is read, two are written
and read again, at a quarter of the memory's bandwidth. Where the weights of a layer are gathered,
the processor also waits for their arrival and registers what comes after. Convolutional networks
launch a convolution, its norm and its activation for every three gradient tensors. Which expert
multiplies a token is known only when its router has run, so a mixture's layers wait for the
processor. An all-reduce of m bytes over t GPUs of a machine takes 2·(t - 1)/t · (m/B + w): the
links carry nothing at first, and B only when large pieces follow each other; scripts wait for it,
recipes send pieces during the products ("TP communication overlap": Megatron Bridge, "Communication
Overlap", read 2026-11).

Constants that were fitted on scripts hold the update of their own runs, 0.2 to 1 % of a step of
sharded decoders; other families' steps are short enough for it to matter, so theirs are left alone.
`overheads.csv` has each constant with its source.
"""

import csv
from functools import cache
from pathlib import Path

from recommender.job.derive import TRANSFORMERS
from recommender.job.job import Job

PASSES = 2.0  # forward and backward
DECODERS = ("decoder", "moe")


@cache
def constants() -> dict[str, float]:
    """The rows of `overheads.csv`, in seconds and bytes."""
    text = Path(__file__).with_name("overheads.csv").read_text(encoding="utf-8")
    return {row["constant"]: float(row["value"]) for row in csv.DictReader(text.splitlines())}


def is_scripted(job: Job) -> bool:
    """Whether a script starts kernels one by one: no recipe, whose graphs are recorded.

    Timings of the user already include launch times.
    """
    return job.stack != "tuned" and not job.timings and job.calibration is None


def gathered_launch_s(job: Job) -> float:
    """Seconds of one micro-batch that sharded weights add to `min_launch_s`."""
    sharded = is_scripted(job) and job.family in TRANSFORMERS
    named = "gathered_full" if job.method == "full" else "gathered_adapters"
    return PASSES * constants()[named] * job.layers if sharded else 0.0


def min_launch_s(job: Job) -> float:
    """Seconds of one micro-batch: the minimum, or with adapters in addition to the arithmetic."""
    if not is_scripted(job):
        return 0.0
    if job.family == "cnn":
        return constants()["tensor"] * job.gradient_tensors
    if job.family not in TRANSFORMERS:
        return 0.0
    each = "forward_layer" if job.method == "full" else "eager_layer"
    return PASSES * constants()[each] * job.layers


def routing_s(job: Job) -> float:
    """Seconds that routing adds to each micro-batch of all layers; 0 without experts."""
    return constants()["routed_layer"] * job.layers if job.family == "moe" else 0.0


def min_model_parallel_launch_s(job: Job) -> float:
    """Minimum seconds of a micro-batch of all layers with model parallelism.

    Recipes with model parallelism fuse kernels but record no graphs; scripts do neither. Each GPU
    launches all kernels of its layers, whatever part of their matrices it holds.
    """
    if job.timings or job.calibration is not None:
        return min_launch_s(job)
    each = "fused_layer" if job.stack == "tuned" else "eager_layer"
    return PASSES * constants()[each] * job.layers


def link_wait_s(job: Job) -> float:
    """w, what an all-reduce between GPUs that share layers waits for; 0 in vendors' recipes."""
    return 0.0 if job.stack == "tuned" else constants()["link_wait"]


def quantized_bytes(job: Job) -> float:
    """Bytes that each pass of a micro-batch moves to unpack 4-bit weights; 0 without any."""
    if job.method != "qlora" or job.timings or job.calibration is not None:
        return 0.0
    return constants()["unpacked"] * max(job.parameters - job.unquantized_parameters, 0.0)


def update_bytes(job: Job) -> float:
    """Bytes that the optimizer of a script moves in a step; 0 in recipes, whose update is fused."""
    scripted = is_scripted(job) and job.family in DECODERS
    return constants()["updated"] * job.trainable_parameters if scripted else 0.0
