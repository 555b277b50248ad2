"""Job files that `recommend init` writes: what is said is taken, what is not is named."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs.project_software import FoundSoftware
from recommender.inputs.training_configs.read import read_training_config
from recommender.inputs.training_software import software
from recommender.job.draft import Draft, StatedJob, draft_job
from recommender.job.job import Job
from recommender.job.jobfile import job_from_text

CONFIGS = Path(__file__).parents[1] / "inputs" / "training_configs"


def from_file(name: str, **said: str) -> tuple[Draft, Job]:
    draft = draft_job(StatedJob(**said), read_training_config(CONFIGS / name))
    return draft, job_from_text(draft.text)


def test_what_is_said_is_what_is_written() -> None:
    said = StatedJob(
        "Qwen/Qwen2.5-7B", "lora", "64", "50k", "600", epochs="3", batch="32", stack="nemo"
    )
    draft = draft_job(said, None)
    job = job_from_text(draft.text)
    assert draft.assumed == ()
    assert (job.examples, job.epochs, job.tokens_per_sample) == (50_000, 3, 600)
    assert (job.method, job.global_batch, job.stack) == ("lora", 32, "tuned")
    assert job.trainable_parameters == 64 * 2_523_136  # in + out of seven matrices, 28 layers


def test_nothing_said_is_a_job_whose_every_assumption_is_named() -> None:
    draft = draft_job(StatedJob(), None)
    job = job_from_text(draft.text)
    assert job.parameters == 8_030_261_248
    flags = {each.rpartition("--")[2] for each in draft.assumed}
    asked = {"model", "method", "lora-rank", "examples", "tokens-per-example", "epochs", "batch"}
    assert flags == {*asked, "stack"}


def test_a_small_network_is_trained_in_full() -> None:
    job = job_from_text(draft_job(StatedJob("gpt2"), None).text)
    assert job.method == "full"


def test_for_images_the_question_is_their_size_and_not_tokens() -> None:
    draft = draft_job(StatedJob("google/vit-base-patch16-224", image_size="384"), None)
    job = job_from_text(draft.text)
    assert (job.sample_unit, job.tokens_per_sample) == ("image", 1)
    assert job.flop_per_sample == pytest.approx(6 * 55.48e9, rel=0.01)


def test_adapters_of_a_diffusion_network_are_what_files_of_kohyas_scripts_hold() -> None:
    said = StatedJob("stabilityai/stable-diffusion-xl-base-1.0", "lora", "128", image_size="512")
    job = job_from_text(draft_job(said, None).text)
    assert 2 * job.trainable_parameters == pytest.approx(681e6, rel=0.01)  # rank 128, 2 bytes each
    whole = job_from_text(draft_job(StatedJob(said.model, image_size="512"), None).text)
    assert job.flop_per_sample == pytest.approx(2 / 3 * whole.flop_per_sample)
    assert job.checkpoint_bytes < whole.checkpoint_bytes / 5


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (StatedJob("microsoft/resnet-50", "lora"), "lora needs a transformer or a UNet"),
        (StatedJob("Qwen/Qwen2.5-7B", image_size="224"), "image_size: a sequence job has none"),
        (StatedJob("google/vit-base-patch16-224", post_training="dpo"), "dpo needs a decoder"),
    ],
)
def test_what_is_said_and_cannot_be_is_refused(said: StatedJob, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        job_from_text(draft_job(said, None).text)


def test_tokens_of_an_example_are_not_used_for_images_and_said() -> None:
    draft = draft_job(StatedJob("google/vit-base-patch16-224", tokens_per_example="50"), None)
    assert job_from_text(draft.text).tokens_per_sample == 1
    assert any("tokens_per_example 50 is not used" in each for each in draft.assumed)


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        ("huggingface", "--stack: unknown value 'huggingface'; known: tuned, typical, "),
        ("", "--stack is empty; write one of tuned, typical, "),
    ],
)
def test_software_of_no_known_name_is_refused_as_the_flag(stack: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        draft_job(StatedJob("gpt2", stack=stack), None)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("field", [each.name for each in fields(StatedJob)])
@pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x85"])
def test_what_is_said_is_one_line_of_the_file(field: str, end: str) -> None:
    with pytest.raises(UsageError) as refused:
        draft_job(StatedJob(**{field: f"trl{end}precision: fp8"}), None)
    assert str(refused.value).startswith(f"--{field.replace('_', '-')}: ")


def test_packed_examples_are_described_by_their_tokens() -> None:
    draft, job = from_file("axolotl_qlora.yaml", examples="50k", tokens_per_example="600", gpus="8")
    assert job.samples * job.tokens_per_sample == pytest.approx(50_000 * 600 * 4, rel=1e-3)
    assert job.epochs == 4
    assert (job.tokens_per_sample, job.global_batch) == (4096, 2 * 4 * 8)
    assert draft.assumed == (
        "NousResearch/Meta-Llama-3-8B has the shape of meta-llama/Meta-Llama-3-8B: --model",
    )


def test_one_gpu_is_assumed_and_reported_if_none_is_named() -> None:
    draft, job = from_file("axolotl_qlora.yaml")
    assert job.global_batch == 8
    assert "the file is for 1 GPU: --gpus" in draft.assumed


def test_a_pair_costs_two_sequences_and_a_reference() -> None:
    _, job = from_file("axolotl_dpo.yaml", examples="10k", tokens_per_example="500")
    plain = job_from_text(
        "schema: recommend.job/v1\nmodel: Qwen/Qwen2.5-7B-Instruct\nbatch: 8\n"
        "examples: 10k\ntokens_per_example: 500\n"
    )
    padded = 1 + 0.6 * 0.589  # two at once, not packed
    assert job.flop_per_sample == pytest.approx(
        2 * (1 + 1 / 3) * padded * plain.flop_per_sample, rel=1e-3
    )
    assert (job.sample_unit, job.tokens_per_sample) == ("pair", 1000)
    assert job.other_network_bytes == 2 * plain.parameters


def test_completions_are_generated_beside_the_training() -> None:
    draft, job = from_file("grpo.yaml", examples="1000", tokens_per_example="600")
    assert job.samples == 16_000
    plain = job_from_text(
        "schema: recommend.job/v1\nmodel: Qwen/Qwen2.5-1.5B\nbatch: 8\n"
        "examples: 1k\ntokens_per_example: 600\n"
    )
    wanted = (1 + 2 / 3) * plain.flop_per_sample  # the reference, and the policy before
    assert job.completion_tokens == 0.75 * job.tokens_per_sample
    assert job.flop_per_sample == pytest.approx(wanted)
    assert any("completion_tokens" in each for each in draft.assumed)
    assert any("tokens of each example" in each for each in job.remarks)


def test_a_share_without_generation_is_refused() -> None:
    text = "schema: recommend.job/v1\nmodel: gpt2\nbatch: 8\nexamples: 1k\n"
    with pytest.raises(UsageError, match="generation_share"):
        job_from_text(text + "generation_share: 50%\n")
    with pytest.raises(UsageError, match="post_training"):
        job_from_text(text.replace("gpt2", "resnet-50") + "post_training: dpo\n")


def test_a_shape_in_the_file_is_counted() -> None:
    draft, job = from_file("megatron.yaml")
    assert job.parameters == 8_030_261_248  # that of Llama 3.1 8B
    assert job.samples == 5000 * 128
    assert draft.assumed == ()


def test_a_file_without_a_network_is_refused_with_a_request_for_one() -> None:
    with pytest.raises(UsageError, match="give --model"):
        from_file("deepspeed.json")
    _, job = from_file("deepspeed.json", model="gpt2", gpus="4")
    assert (job.global_batch, job.sharding) == (128, "zero3")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.[tjy]*")), ids=lambda path: path.name)
def test_every_file_becomes_a_job_with_every_line_commented_or_plain(path: Path) -> None:
    draft = draft_job(StatedJob("gpt2", examples="1k"), read_training_config(path))
    assert job_from_text(draft.text).samples > 0
    assert draft.text.startswith("schema: recommend.job/v1\n")


def test_the_job_file_lists_whole_what_was_not_read_and_what_was_not_used() -> None:
    draft, _ = from_file("nemo.yaml")
    comments = " ".join(line.lstrip("# ") for line in draft.text.splitlines() if line[0] == "#")
    assert draft.unused
    assert all(key in comments for key in draft.unused)
    assert all(each in comments for each in draft.unread)
    hostile = replace(draft, unread=("model: a\nfamily: moe\u2028family: cnn",))
    assert job_from_text(hostile.text) == job_from_text(draft.text)


def test_software_that_is_not_known_is_a_question_in_the_file() -> None:
    draft = draft_job(StatedJob("gpt2"), None)
    assert (draft.software, job_from_text(draft.text).stack) == ("", "typical")
    assert "stack" in job_from_text(draft.text).assumed
    comments = " ".join(line.lstrip("# ") for line in draft.text.splitlines() if line[0] == "#")
    assert "stack: trl # training software: decides speed and attention" in " ".join(
        comments.split()
    )
    assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", comments) for name in software())
    settled = re.sub(r"^# (stack: trl)", r"\1", draft.text, flags=re.MULTILINE)
    assert "stack" not in job_from_text(settled).assumed


@pytest.mark.parametrize("said", [None, "unknown", " Unknown "])
def test_software_is_what_is_stated_then_the_tools_file_then_the_project(said: str | None) -> None:
    nemo = FoundSoftware(software()["nemo"], "imported by train.py")
    axolotl = read_training_config(CONFIGS / "axolotl_qlora.yaml")
    engine = read_training_config(CONFIGS / "deepspeed.json")
    stated = StatedJob("gpt2", stack="trl")
    assert draft_job(stated, axolotl, project=nemo).software == "trl (training software, as stated)"
    asked = StatedJob("gpt2", stack=said)
    found = draft_job(asked, axolotl, project=nemo).software
    assert found == "axolotl (the axolotl file: speed of typical scripts)"
    of_project = draft_job(asked, engine, project=nemo).software
    assert of_project == ("" if said else "nemo (imported by train.py: a vendor's recipe)")


def test_a_file_name_cannot_end_the_comment_of_its_software() -> None:
    strange = FoundSoftware(software()["trl"], "imported by a\nbatch: 7.py")
    text = draft_job(StatedJob("gpt2"), None, project=strange).text
    assert job_from_text(text).global_batch == 64


def test_distillation_passes_a_teacher(tmp_path: Path) -> None:
    text = (
        "schema: recommend.job/v1\nmodel: meta-llama/Llama-3.2-1B\nbatch: 8\nexamples: 1k\n"
        "tokens_per_example: 600\n"
    )
    plain = job_from_text(text)
    taught = job_from_text(f"{text}post_training: distillation\nteacher_params: 8B\n")
    passes = 1 + (8e9 / plain.parameters) / 3
    assert taught.flop_per_sample == pytest.approx(passes * plain.flop_per_sample)
    assert taught.other_network_bytes == pytest.approx(2 * 8e9)
