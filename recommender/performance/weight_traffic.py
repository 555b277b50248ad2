"""Passes over the weights beside the arithmetic: unpacking of 4 bits, and the optimizer's update.

A step of fine-tuning is the sum of its parts:

    t = ga · (arithmetic + launches + passes · 17.2 B · W4 / BW) + 60 B · trained / (shards · BW)

4-bit weights are unpacked into 16 bits before each product: half a byte is read, two are written
and read again, and the kernels of bitsandbytes and GPTQ reach a quarter of the memory's bandwidth.
17.2 B is fitted on 243 steps of 13 laboratories, one left out at a time 14.9 to 17.2 (study
`finetuning`); 65 G weights/s on A10G and 90 to 167 on A100 follow its bandwidth (litgpt, 2023-10
and 2024-10; Qwen, 2023-12).

PyTorch's AdamW without fused kernels moves 30 numbers per parameter in a step, gradient clipping
included: full training of 3.2 B parameters in 16 bits takes 0.25 s longer on an L40S (864 GB/s)
than its arithmetic (huggingface/peft, method_comparison, 2025-06 to 2026-07): 67 B. Constants that
were fitted on scripts hold the update of their own runs, 0.2 to 1 % of a step of sharded decoders;
other families' steps are short enough for it to matter, so theirs are left alone.
"""

from recommender.job.job import Job
from recommender.performance.launch_time import is_scripted

UNPACKED_BYTES = 17.2
UPDATED_BYTES = 60.0
DECODERS = ("decoder", "moe")


def quantized_bytes(job: Job) -> float:
    """Bytes that each pass of a micro-batch moves to unpack 4-bit weights; 0 without any."""
    if job.method != "qlora" or job.timings or job.calibration is not None:
        return 0.0
    return UNPACKED_BYTES * max(job.parameters - job.unquantized_parameters, 0.0)


def update_bytes(job: Job) -> float:
    """Bytes that the optimizer of a script moves in a step; 0 in recipes, whose update is fused."""
    scripted = is_scripted(job) and job.family in DECODERS
    return UPDATED_BYTES * job.trainable_parameters if scripted else 0.0
