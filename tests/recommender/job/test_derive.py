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
GB200 = snapshot().instance_types["azure", "Standard_ND128isr_NDR_GB200_v6"]


@pytest.mark.parametrize("name", ["resnet50-imagenet", "dlrm"])
def test_constants_are_those_of_two_presets(name):
    assert find_job(name).intensity_ratio == pytest.approx(1.0)


def test_kept_bytes_say_nothing_where_they_are_not_stated_or_the_family_has_none():
    assert intensity_ratio("cnn", 1e12, None) == intensity_ratio("decoder", 1e12, 1e9) == 1.0


def test_narrow_experts_move_more_bytes_for_each_flop():
    """Qwen3 235B by hand: 4,096 wide, eight experts of 1,536 (config.json).

    1.083 of the FLOP of a dense layer as wide, 22 + 8·(5 + 6·3/8) = 80 widths moved instead of 38.
    """
    assert expert_ratio(4096, 1536, 8) == pytest.approx(1.0833 * 38 / 80, rel=1e-4)
    assert expert_ratio(4096, 768, 16) < 0.7 * expert_ratio(4096, 1536, 8)
    layer = expert_ratio(4096, 4096 * 8 / 3, 1)  # one expert with the FLOP of a dense layer
    assert layer == pytest.approx(38 / 43)


@pytest.mark.parametrize(
    ("model", "experts"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", 2),
        ("Qwen/Qwen3-30B-A3B", 8),
        ("openai/gpt-oss-120b", 4),
        ("deepseek-ai/DeepSeek-V3", 9),  # one of them for all tokens
    ],
)
def test_experts_of_a_token_follow_from_the_parameters_that_it_passes(model, experts):
    text = f"schema: recommend.job/v1\nmodel: {model}\ntokens: 1B\nbatch: 64\n"
    assert job_from_text(text).token_experts == pytest.approx(experts, rel=0.1)


def test_a_router_limited_to_groups_of_experts_says_so():
    """`topk_group` of config.json: 4 of 8 for DeepSeek-V3, 3 for V2; others have no groups."""
    models = ("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V2", "Qwen/Qwen3-235B-A22B")
    texts = (f"schema: recommend.job/v1\nmodel: {m}\ntokens: 1B\nbatch: 64\n" for m in models)
    assert [job_from_text(text).expert_groups for text in texts] == [4, 3, 0]


# Megatron-Bridge performance summary, latest release (2026-04 to 2026-08): tokens/s
RECIPES = (
    ("openai/gpt-oss-120b", "mxfp8", GB200, 64, 1280, 1_835_008.0),
    ("Qwen/Qwen3-235B-A22B", "mxfp8", GB200, 256, 8192, 1_863_680.0),
    ("deepseek-ai/DeepSeek-V3", "mxfp8", GB200, 256, 4096, 1_257_472.0),
    ("openai/gpt-oss-120b", "bf16", P5, 64, 1280, 372_736.0),
    ("Qwen/Qwen3-235B-A22B", "fp8", P5, 256, 8192, 438_272.0),
)


@pytest.mark.parametrize(("model", "precision", "machine", "gpus", "batch", "rate"), RECIPES)
def test_mixtures_run_as_their_recipes_do(model, precision, machine, gpus, batch, rate):
    """Within a factor of 1.5: nothing is fitted on these networks."""
    text = f"schema: recommend.job/v1\nmodel: {model}\ntokens: 1B\nseq_len: 4096\nstack: tuned\n"
    job = job_from_text(f"{text}batch: {batch}\nprecision: {precision}\n")
    catalog = snapshot()
    found = machine_columns(job, (machine,), catalog.gpus, catalog.achieved)
    cluster = clusters_of(found, np.array([[gpus // machine.gpus]]))
    step = float(steps(job, found, cluster).step_s[0])
    assert 2 / 3 < batch * 4096 / step / rate < 3 / 2


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


@pytest.mark.parametrize(("at_once", "padded"), [(1, 289), (2, 369), (4, 445), (8, 524)])
def test_micro_batches_are_as_long_as_their_longest_example(at_once, padded):
    """Orca-Math of Mistral 7B: tokens of an example in micro-batches (fms-acceleration, 2024)."""
    text = "schema: recommend.job/v1\nmodel: mistralai/Mistral-7B-v0.1\nbatch: 8\nsamples: 8000\n"
    text += "tokens_per_example: 289\n"
    packed = job_from_text(text + f"micro_batch: {at_once}\n")
    found = job_from_text(text + f"micro_batch: {at_once}\nmax_seq_len: 4096\n")
    assert found.flop_per_sample / packed.flop_per_sample == pytest.approx(padded / 289, rel=0.07)
    assert any("padded" in each for each in found.remarks) is (at_once > 1)
    short = job_from_text(text + f"micro_batch: {at_once}\nmax_seq_len: 300\n")
    assert short.flop_per_sample <= 300 / 289 * packed.flop_per_sample
    recipe = job_from_text(text + f"micro_batch: {at_once}\nmax_seq_len: 4096\nstack: nemo\n")
    assert recipe.flop_per_sample == packed.flop_per_sample
