"""Every preset loads, and says what its sources say."""

import re

import pytest

from recommender.errors import UsageError
from recommender.job.jobfile import find_job, job_from_text, template
from recommender.job.merge_layers import JobFlags
from recommender.job.preset_files import preset_text, presets

# Total training FLOP, samples and bytes of a full checkpoint, counted apart from the presets
# over the published shapes (2026-08): ImageNet-1k 1,281,167 images; DeepLearningExamples' steps
# for BERT; llm.c's for GPT-2; 1.355e9 tokens of Tulu 3 SFT; 2^35 tokens for T5. Adapters pay
# two thirds of full training.
FACTS = {
    "resnet50-imagenet": (2.829e18, 115_305_030, 0.204e9),
    "resnet152-imagenet": (7.97e18, 115_305_030, 0.482e9),
    "resnet18-cifar10": (2.221e15, 10_000_000, 0.094e9),
    "vit-b-imagenet": (4.05e19, 384_350_100, 1.039e9),
    "vit-l-imagenet": (1.420e20, 384_350_100, 3.652e9),
    "bert-large-pretrain": (1.109e20 + 5.221e19, 461_242_368 + 51_216_384, 4.009e9),
    "gpt2-124m": (7.942e18, 9_890_693_120 / 1024, 1.493e9),
    "gpt2-medium": (2.28e9 * 31_457_280_000, 31_457_280_000 / 1024, 4.258e9),
    "gpt2-xl": (3.294e20, 33_554_432_000 / 1024, 18.691e9),
    "llama3-8b-sft": (6.179e19, 1.355e9 / 720, 112.424e9),
    "llama3-8b-lora": (6.179e19 * 2 / 3, 1.355e9 / 720, 41.943e6 * 12),
    "llama3-8b-pretrain": (5.147e19, 1e9 / 8192, 112.424e9),
    "llama3-70b-sft": (5.689e20, 1.355e9 / 720, 987.752e9),
    "llama3-70b-qlora": (5.689e20 * 2 / 3, 1.355e9 / 720, 207.094e6 * 12),
    "mixtral-8x7b-sft": (1.044e20, 1.355e9 / 720, 653.839e9),
    "t5-3b": (3.129e20, 2**35 / 512, 34.2e9),
    "whisper-large": (2.929e18, 345_600, 18.6e9),
    "sd-xl": (20283.7e9 * 1e6, 1_000_000, 30.81e9),
    "dlrm": (6.191e16, 4_195_197_692, 15.0e9),
}


def test_every_preset_has_facts() -> None:
    assert set(presets()) == set(FACTS)


@pytest.mark.parametrize("name", presets())
def test_totals(name: str) -> None:
    job = find_job(name)
    flop, samples, checkpoint = FACTS[name]
    assert job.total_flop == pytest.approx(flop, rel=0.01)
    assert job.samples == pytest.approx(samples, rel=0.01)
    assert job.checkpoint_bytes == pytest.approx(checkpoint, rel=0.01)


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_complete(name: str) -> None:
    job = find_job(name)
    assert job.name == name
    assert 0 < job.trainable_parameters <= job.active_parameters <= job.parameters or (
        job.family == "moe"
    )
    assert 0 < job.recomputed_activation_bytes_per_sample < job.activation_bytes_per_sample
    assert job.data.bytes_per_sample > 0
    assert job.data.gib > 0
    assert 1 <= job.global_batch <= job.samples
    assert "source:" in preset_text(name) or "like:" in preset_text(name)


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        # Parameter tensors of the published implementations (torchvision, transformers, diffusers).
        ("resnet50-imagenet", 161), ("resnet18-cifar10", 62), ("vit-l-imagenet", 296),
        ("gpt2-124m", 148), ("llama3-8b-pretrain", 291), ("llama3-70b-sft", 723),
        ("mixtral-8x7b-sft", 995), ("sd-xl", 1680), ("llama3-8b-lora", 2 * 7 * 32),
    ],
)  # fmt: skip
def test_gradient_tensors(name: str, tensors: int) -> None:
    assert find_job(name).gradient_tensors == tensors


def test_activations_follow_the_published_count() -> None:
    job = find_job("llama3-8b-pretrain")
    counted = 49 * 8192 * 4096 * 32  # autograd's saved tensors, tests/recommender/job
    assert job.activation_bytes_per_sample == pytest.approx(counted, rel=0.01)
    least = 2 * 8192 * 4096 * 32 + 49 * 8192 * 4096
    assert job.recomputed_activation_bytes_per_sample == pytest.approx(least, rel=0.01)
    full = find_job("llama3-8b-pretrain", flags=JobFlags(precision="fp32"))
    assert full.activation_bytes_per_sample == 2 * job.activation_bytes_per_sample


def test_memory_must_do_for_the_longest_sequence() -> None:
    job = find_job("llama3-8b-sft")
    logits = 12 * 128256 * (4096 - 720)  # the memory model adds those of the mean 720 tokens
    kept = 49 * 4096 * 4096 * 32
    assert job.activation_bytes_per_sample == pytest.approx(kept + logits, rel=0.01)


def test_a_resnet_batch_of_256_fits_a_16_gb_v100_as_published() -> None:
    job = find_job("resnet50-imagenet")
    assert 256 * job.activation_bytes_per_sample + 20 * job.parameters < 14.5e9


def test_titles_say_what_readers_may_not_expect() -> None:
    assert "1 B tokens" in find_job("llama3-8b-pretrain").title
    assert "1 M images" in find_job("sd-xl").title


def test_assumptions_are_named() -> None:
    assert "data.cpu_s_per_sample" in find_job("vit-b-imagenet").assumed
    assert "global_batch" in find_job("llama3-8b-pretrain").assumed
    flags = JobFlags(batch="512")
    assert "global_batch" not in find_job("llama3-8b-pretrain", flags=flags).assumed


@pytest.mark.parametrize("name", presets())
def test_a_template_is_the_preset_itself(name: str) -> None:
    text = template(name)
    assert 8 <= len(text.splitlines()) <= 12
    (params,) = re.findall(r"# params: (\S+)", text)
    assert re.fullmatch(r"\d{1,3}(\.\d+)?[MB]", params), "8.03B, not 8030.26M"
    job, preset = job_from_text(text), find_job(name)
    assert job.total_flop == preset.total_flop
    assert job.checkpoint_bytes == preset.checkpoint_bytes
    assert (job.global_batch, job.title) == (preset.global_batch, preset.title)


def test_a_misspelt_preset_names_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        find_job("llama3-8b-pretrian")
    wanted = "unknown job 'llama3-8b-pretrian'; did you mean llama3-8b-pretrain?"
    assert str(error.value) == wanted


@pytest.mark.parametrize(
    ("word", "nearest", "model"),
    [
        ("llama2-7b", "did you mean llama3-8b-sft? ", "meta-llama/Llama-2-7b-hf"),
        ("llama3-405b", "did you mean llama3-70b-sft? ", "meta-llama/Llama-3.1-405B"),
        ("bert-base", "", "NAME"),
        ("foo", "", "NAME"),
    ],
)
def test_a_name_that_no_preset_has_gets_one_of_its_size_and_the_way_to_a_job_file(
    word: str, nearest: str, model: str
) -> None:
    with pytest.raises(UsageError) as error:
        find_job(word)
    assert str(error.value) == (
        f"unknown job '{word}'; {nearest}recommend jobs list names all. For another model, write a "
        f"job file: recommend init --model {model} (see recommend init --help)"
    )
