"""Which network a word names: known models, files, and what is refused."""

import json
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import JobFlags
from recommender.networks.find import find_network
from recommender.networks.known_models import _of_libraries, _same_shape, known_models

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
}  # fmt: skip
HEAD = "schema: recommend.job/v1\nbatch: 64\nexamples: 50k\ntokens_per_example: 600\n"


def write(folder: Path, fields: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(fields), "utf-8")
    return path


def test_a_known_model_is_found_by_its_whole_name_or_the_part_after_the_slash() -> None:
    whole = find_network("meta-llama/Llama-3.1-8B")
    assert find_network("llama-3.1-8b") == whole
    assert whole.name == "meta-llama/Llama-3.1-8B"
    assert "config.json" in whole.source


def test_names_of_the_table_are_unique_behind_the_slash_too() -> None:
    short = [model.name.lower().rpartition("/")[2] for model in known_models()]
    assert len(short) == len(set(short))


def test_a_file_and_its_folder_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA)
    by_file, by_folder = find_network(str(path)), find_network(tmp_path.name, tmp_path.parent)
    assert by_file.network == by_folder.network
    assert by_file.network.count.parameters == 8_030_261_248


def test_a_job_file_finds_the_config_next_to_it(tmp_path: Path) -> None:
    write(tmp_path, LLAMA)
    (tmp_path / "mine.yaml").write_text(HEAD + "model: config.json\n", "utf-8")
    job = find_job(str(tmp_path / "mine.yaml"))
    assert (job.parameters, job.hidden, job.layers) == (8_030_261_248, 4096, 32)
    assert not {"hidden", "layers", "vocabulary"} & set(job.assumed)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([1], "must hold one JSON object"),
        ({}, "model_type is missing"),
        ({"model_type": "lama"}, "did you mean llama?"),
        ({"model_type": "zzz"}, "state family, params"),
        ({"model_type": "gemma3", "text_config": {"a": 1}}, "text_config: hidden_size is missing"),
        ({**LLAMA, "hidden_size": "wide"}, "hidden_size wide is not a whole number"),
        ({**LLAMA, "hidden_size": 10**12}, "is not a whole number up to"),
        ({"model_type": "llama"}, "hidden_size is missing"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_the_reason(
    tmp_path: Path, fields: object, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        find_network(str(write(tmp_path, fields)))
    assert said in str(refused.value)


def test_an_unknown_name_is_answered_with_the_nearest_and_the_way_to_fetch_it() -> None:
    with pytest.raises(UsageError) as refused:
        find_network("google-bert/bert-large-uncasd")
    assert "did you mean google-bert/bert-large-uncased?" in str(refused.value)
    assert "--fetch" in str(refused.value)


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("unsloth/Llama-3.2-1B-Instruct", "meta-llama/Llama-3.2-1B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-8B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "meta-llama/Llama-3.1-8B"),
        ("HuggingFaceH4/zephyr-7b-beta", "mistralai/Mistral-7B-v0.1"),
    ],
)
def test_a_tuned_model_is_counted_as_its_base_and_says_so(word: str, known: str) -> None:
    found, base = find_network(word), find_network(known)
    assert (found.name, found.shape_of) == (word, known)
    assert found.network == base.network
    assert base.shape_of == ""


def test_models_of_one_shape_name_known_ones() -> None:
    names = {each.name for each in known_models()}
    assert {of for of, _ in _same_shape().values()} - names <= set(_of_libraries())
    assert not names & set(_same_shape())


@pytest.mark.parametrize(
    ("word", "billions", "active", "relative"),
    [
        ("meta-llama/Llama-3.1-9B", 9, 9, "meta-llama/Llama-3.1-8B"),
        ("google/gemma-5-27b-it", 27, 27, "google/gemma-"),
        ("Qwen/Qwen4-60B-A6B-FP8", 60, 6, "Qwen/Qwen"),
        ("Qwen/Qwen4-15B-Base", 15, 15, "Qwen/Qwen3-14B"),
        ("x/internlm2-chat-1_8b", 1.8, 1.8, "internlm/"),
        ("x/Qwen4-2T-A80B", 2000, 80, "Qwen/Qwen3"),
    ],
)
def test_an_unknown_member_of_a_family_has_a_relative_s_shape(
    word: str, billions: float, active: float, relative: str
) -> None:
    found = find_network(word)
    assert found.sized
    assert relative in found.source
    count, base = found.network.count, found.network
    assert count.parameters == pytest.approx(billions * 1e9)
    assert (base.family == "moe") == (active < billions)
    assert count.active == pytest.approx(active * 1e9, rel=0.1)
    # About twelve weights a layer and squared width; experts that are passed may be more or fewer.
    each = 12 * base.layers * base.hidden**2 + 2 * base.vocabulary * base.hidden
    assert 0.4 < count.active / each < (3.0 if base.family == "moe" else 2.0)


def test_an_unknown_name_that_states_its_size_is_planned_by_it() -> None:
    found = find_network("x/v1-7b")
    assert (found.sized, found.network.count.parameters) == (True, 7_000_000_000)
    misspelt = find_network("meta-llama/Lama-3.1-8B")
    assert misspelt.sized
    assert "did you mean meta-llama/Llama-3.1-8B" in misspelt.source


def test_a_name_without_a_size_may_be_known_by_it() -> None:
    for name in ("MiniMaxAI/MiniMax-M1-80k", "x/MiniMax-M1-GGUF"):
        count = find_network(name).network.count
        assert (count.parameters, count.active) == (456e9, 45.9e9)
    assert find_network("deepseek-ai/DeepSeek-OCR-2").network.count.parameters == 3.34e9


def test_a_model_replaces_the_network_of_a_preset_and_keeps_the_rest() -> None:
    job = job_from_text("schema: recommend.job/v1\nlike: llama3-8b-lora\nmodel: Qwen/Qwen2.5-7B\n")
    assert job.parameters == 7_615_616_512
    assert (job.method, job.global_batch, job.tokens_per_sample) == ("lora", 128, 720)
    assert job.gradient_tensors == 14 * 28
    assert "Qwen" in job.title


def test_a_flag_names_another_model_than_the_file() -> None:
    job = job_from_text(HEAD + "model: gpt2\n")
    assert job.parameters == 124_439_808
    flags = JobFlags(model="Qwen/Qwen2.5-0.5B")
    assert find_job("gpt2-124m", flags=flags).parameters == 494_032_768


def test_what_a_layer_above_the_model_states_wins() -> None:
    job = job_from_text(HEAD + "model: gpt2\nparams: 200M\n")
    assert job.parameters == 200e6


def test_a_picture_of_another_size_is_another_number_of_flop() -> None:
    text = (
        "schema: recommend.job/v1\nbatch: 64\nexamples: 10k\nmodel: google/vit-base-patch16-224\n"
    )
    job, larger = job_from_text(text), job_from_text(text + "image: 384\n")
    assert job.flop_per_sample == pytest.approx(6 * 17.56e9, rel=0.01)
    assert larger.flop_per_sample == pytest.approx(6 * 55.48e9, rel=0.01)  # timm, vit 384
    assert larger.image == "cold"


def test_a_vision_transformer_needs_its_parameters_and_the_size_of_a_picture() -> None:
    text = "schema: recommend.job/v1\nfamily: vit\nparams: 86.6M\nbatch: 64\nexamples: 10k\n"
    job = job_from_text(text + "image: 224\npatch: 16\n")
    assert job.flop_per_sample == pytest.approx(6 * 17.56e9, rel=0.03)
    assert job_from_text(text + "image: 384\n").flop_per_sample == pytest.approx(
        6 * 55.5e9, rel=0.05
    )
    with pytest.raises(UsageError, match="image_size: 224"):
        job_from_text(text)
    with pytest.raises(UsageError, match="holds no patch"):
        job_from_text(text + "image: 8\npatch: 16\n")


def test_sequences_have_no_pictures() -> None:
    with pytest.raises(UsageError, match="image_size"):
        job_from_text(HEAD + "model: gpt2\nimage: 384\n")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cognitivecomputations/dolphin-2.9-llama3-8b", "meta-llama/Meta-Llama-3-8B"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-30B-A3B"),
        ("x/Llama-4-Scout-17B-16E-Linearized-bnb-nf4", "meta-llama/Llama-4-Scout-17B-16E"),
        ("vit_base_patch16_224.augreg_in21k", "google/vit-base-patch16-224"),
        ("microsoft/phi-4-mini-reasoning", "microsoft/Phi-4-mini-instruct"),
    ],
)
def test_a_name_within_a_name_is_its_shape(name: str, shape: str) -> None:
    assert find_network(name).network == find_network(shape).network


@pytest.mark.parametrize("name", ["x/Qwen2.5-7B-Audio", "x/Llama-3.2-11B-Embed", "x/v1-7b"])
def test_a_name_with_more_than_a_known_one_is_not_its_shape(name: str) -> None:
    assert find_network(name).sized
