"""The time of rollouts against published steps and by its limits."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.catalogs.schema import Achieved, Gpu
from recommender.job.job import Job
from recommender.job.jobfile import job_from_text
from recommender.performance.clusters import MachineColumns, clusters_of
from recommender.performance.generation import generation_s
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from tests.recommender.performance import parts

H20 = Gpu(
    "H20", "nvidia", 97_871, 4000.0, 44.0, 74.0, 148.0, 148.0, None, 400, 2023, "quote", 1, "2026"
)


def grpo(**changes: object) -> Job:
    stated = {
        "model": "Qwen/Qwen2.5-7B", "post_training": "grpo", "batch": 8192, "samples": 819_200,
        "seq_len": 1550, "max_seq_len": 28_000, "completion_tokens": 1400, "sharding": "fsdp",
        "stack": "trl",
    } | changes  # fmt: skip
    lines = (f"{key}: {value}" for key, value in stated.items() if value)
    return job_from_text("\n".join(["schema: recommend.job/v1", *lines]))


def of_h20(job: Job) -> MachineColumns:
    type_ = parts.machine("h20", "A100-80GB", 8, network_gbit_per_s=1600.0, network_kind="rdma")
    type_ = replace(type_, gpu="H20", gpu_memory_mib=H20.memory_mib, intra_gb_per_s=440.0)
    rates = (("fp32", 39.0), ("tf32", 65.0), ("fp16", 130.0), ("bf16", 130.0))
    achieved = {("H20", p): Achieved("H20", p, r, r, r, "measured", 1, "2026") for p, r in rates}
    return machine_columns(job, [type_], {"H20": H20}, achieved)


# Colocated, synchronous: 512 prompts × 16 completions of at most 28 k tokens (verl,
# docs/advance/fully_async.md, read 2026-11-29). The mean length is not stated: 1,400 tokens follow
# from the 108 s of a forward pass on 32 GPUs at the speed that the step's update has.
@pytest.mark.parametrize(("machines", "published_s"), [(4, 790.1), (8, 365.3), (16, 356.3)])
def test_steps_of_grpo_take_about_as_long_as_published(machines: int, published_s: float) -> None:
    job = grpo()
    columns = of_h20(job)
    found = steps(job, columns, clusters_of(columns, np.array([[machines]])))
    assert 1 / 1.5 <= found.step_s[0] / published_s <= 1.5


# NeMo RL 0.4 on policy, in bfloat16, of 2,048, 2,048 and 512 completions (its performance summary,
# read 2026-11-29): model, machines of eight H100, mean and longest tokens, seconds of a step. Its
# mixtures with fewer GPUs a copy, Qwen3 30B and DeepSeek-V3, are told 0.60 and 0.53 of theirs.
@pytest.mark.parametrize(
    ("model", "machines", "batch", "tokens", "longest", "published_s"),
    [
        ("meta-llama/Llama-3.1-8B", 2, 2048, 1060, 4096, 97.7),
        ("Qwen/Qwen3-32B", 4, 2048, 3206, 4096, 393.0),
        ("Qwen/Qwen3-235B-A22B", 16, 512, 5671, 8192, 506.0),
    ],
)
def test_steps_of_recipes_take_about_as_long_as_published(
    model: str, machines: int, batch: int, tokens: int, longest: int, published_s: float
) -> None:
    job = grpo(
        model=model, batch=batch, samples=100 * batch, seq_len=tokens, max_seq_len=longest,
        completion_tokens=tokens - 150, sharding="auto", stack="nemo",
    )  # fmt: skip
    columns = machine_columns(job, [parts.P5], parts.GPUS, parts.ACHIEVED)
    found = steps(job, columns, clusters_of(columns, np.array([[machines]])))
    assert 1 / 1.5 <= found.step_s[0] / published_s <= 1.5


def test_a_copy_on_more_machines_waits_for_their_network() -> None:
    """Llama 405B takes 810 GB: a copy needs GPUs of two machines, whose latency each layer adds."""
    job = grpo(model="meta-llama/Llama-3.1-405B", batch=128, samples=12_800)
    near = machine_columns(job, [parts.P5], parts.GPUS, parts.ACHIEVED)
    far = replace(near, network_latency_s=near.network_latency_s + 1e-3)
    one, other = (
        generation_s(job, each, clusters_of(each, np.array([[8]])))[0] for each in (near, far)
    )
    assert other - one > 2 * 126 * 1e-3 * job.longest_completion * 0.9


def test_more_gpus_shorten_the_rollout_down_to_its_longest_completion() -> None:
    job = grpo()
    columns = of_h20(job)
    fleet = clusters_of(columns, np.array([[1], [2], [8], [64]]))
    seconds = generation_s(job, columns, fleet)
    assert (np.diff(seconds) < 0).all()
    tail = 27_850 * 2.0 * job.active_parameters / 4e12  # all of the bandwidth, alone
    assert (seconds > tail).all()


def test_a_rollout_grows_with_its_group_and_its_length() -> None:
    few, many, long = grpo(batch=1024), grpo(batch=8192), grpo(batch=1024, completion_tokens=700)
    columns = of_h20(few)
    fleet = clusters_of(columns, np.array([[2]]))
    one, eight, short = (float(generation_s(j, columns, fleet)[0]) for j in (few, many, long))
    assert one < eight < 8 * one
    assert short < one


def test_a_stated_share_and_a_timing_need_no_model_of_generation() -> None:
    job = grpo(completion_tokens="", generation_share="70%")
    timed = grpo(measured='["8xH20: 100 s/step"]')
    for each in (job, timed):
        columns = of_h20(replace(each, timings=()))
        assert not generation_s(each, columns, clusters_of(columns, np.array([[1]]))).any()
