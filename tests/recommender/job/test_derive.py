"""Byte counts derived for a job, against what was published of its network."""

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.job.derive import expert_ratio, intensity_ratio
from recommender.job.jobfile import find_job, job_from_text
from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from tests.shipped import snapshot

P5 = snapshot().instance_types["aws", "p5.48xlarge"]


@pytest.mark.parametrize("name", ["resnet50-imagenet", "dlrm"])
def test_constants_are_those_of_two_presets(name):
    assert find_job(name).intensity_ratio == pytest.approx(1.0)


def test_kept_bytes_say_nothing_where_they_are_not_stated_or_the_family_has_none():
    assert intensity_ratio("cnn", 1e12, None) == intensity_ratio("decoder", 1e12, 1e9) == 1.0


def test_narrow_experts_move_more_bytes_for_each_flop():
    """Mixtral 8x7B: 4,096 and 14,336; Qwen3 235B: 4,096 and 1,536 (config.json)."""
    assert find_job("mixtral-8x7b-sft").intensity_ratio == pytest.approx(1.0 / (1.0 + 3.0 * 2 / 7))
    assert expert_ratio(4096, 1536) == pytest.approx(1.0 / 9.0)
    assert expert_ratio(4096, 1e9) == pytest.approx(1.0, rel=1e-4)


# Megatron-Bridge performance summary, bf16, 64 GPUs, batch 1,280 (2025-11 to 2026-04)
GPT_OSS = {"p5.48xlarge": (372_736.0, 383_552.0), "p6-b200.48xlarge": (834_880.0, 878_208.0)}


@pytest.mark.parametrize("machine", GPT_OSS)
def test_gpt_oss_runs_as_its_recipes_do(machine):
    text = "schema: recommend.job/v1\nmodel: openai/gpt-oss-120b\ntokens: 1B\nseq_len: 4096\n"
    job = job_from_text(text + "batch: 1280\nstack: tuned\n")
    catalog = snapshot()
    types = (catalog.instance_types["aws", machine],)
    found = machine_columns(job, types, catalog.gpus, catalog.achieved)
    step = float(steps(job, found, clusters_of(found, np.array([[8]]))).step_s[0])
    low, high = GPT_OSS[machine]
    assert 0.85 * low < 1280 * 4096 / step < 1.15 * high


def test_grouped_experts_launch_few_kernels():
    """GPT-OSS 120B has 28,119 tensors; scripts loop over the experts, vendors' recipes do not."""
    text = "schema: recommend.job/v1\nmodel: openai/gpt-oss-120b\ntokens: 1B\nbatch: 64\n"
    assert job_from_text(text).gradient_tensors > 20_000
    assert job_from_text(text + "stack: tuned\n").gradient_tensors < 1000


# MLPerf Training v3.1, NVIDIA, eight H100: samples per second and GPU. The stem and the first stage
# of both detectors do not train, norms are frozen (counted in tests/research/accuracy/data).
PUBLISHED = (
    ("cnn", "1.173e12", "336MB", "37.9M", 220, 32, 290.0, 0.3),  # RetinaNet
    ("cnn", "1.365e12", "417MB", "44.2M", 220, 12, 178.0, 0.1),  # Mask R-CNN
    ("recsys", "9.7e7", "118kB", "16M", 22, 6912, 1.69e6, 0.15),  # DLRM-DCNv2
)


@pytest.mark.parametrize(
    ("family", "flop", "kept", "params", "tensors", "batch", "rate", "error"), PUBLISHED
)
def test_networks_that_keep_little_run_as_they_did_in_mlperf(
    family, flop, kept, params, tensors, batch, rate, error
):
    counted = f"flop_per_sample: {flop}\nactivation_bytes_per_sample: {kept}\nparams: {params}\n"
    job = job_from_text(
        f"schema: recommend.job/v1\nfamily: {family}\nstack: tuned\nsamples: 1e9\n{counted}"
        f"gradient_tensors: {tensors}\nbatch: {8 * batch}\n"
        "data: {cpu_s_per_sample: 1e-9, bytes_per_sample: 1}\n"
    )
    columns = machine_columns(job, (P5,), snapshot().gpus, snapshot().achieved)
    step = steps(job, columns, clusters_of(columns, np.array([[1]]))).step_s[0]
    assert batch / step == pytest.approx(rate, rel=error)


def test_small_pictures_take_the_processor_less():
    own = "schema: recommend.job/v1\nfamily: cnn\nparams: 1M\nflop_per_sample: 1G\nbatch: 128\n"
    seconds = [
        job_from_text(f"{own}epochs: 2\ndata: {{samples: 1e6{size}}}\n").data.cpu_s_per_sample
        for size in ("", ", bytes_per_sample: 500kB", ", bytes_per_sample: 3073")
    ]
    assert seconds[0] == seconds[1] > 30 * seconds[2]  # of ImageNet, larger, CIFAR-10


def test_adapters_of_a_network_that_is_not_known_are_stated():
    own = "schema: recommend.job/v1\nfamily: diffusion\nparams: 1B\nflop_per_sample: 1T\n"
    own += "batch: 16\nsamples: 1e6\nmethod: lora\n"
    with pytest.raises(UsageError, match="trainable_params: is missing"):
        job_from_text(own)
    assert job_from_text(own + "trainable_params: 23M\n").trainable_parameters == 23e6
