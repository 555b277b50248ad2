"""Counts of well-known networks against what their authors and hubs publish."""

import csv
from contextlib import suppress
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.job.jobfile import job_from_text
from recommender.networks.architectures import count_network
from recommender.networks.find import find_network
from recommender.networks.known_models import _of_libraries, known_models
from recommender.performance.memory import bytes_of
from recommender.performance.priors import load_priors

HERE = Path(__file__).parent
ROWS, CHECKED = (
    list(csv.DictReader((HERE / f"{name}.csv").read_text("utf-8").splitlines()))
    for name in ("published", "checked")
)
REMEMBERED, ASKED, DRAWN = (
    list(csv.DictReader((HERE / f"{name}.csv").read_text("utf-8").splitlines()))
    for name in ("remembered", "asked", "drawn")
)
READ = list(csv.DictReader((HERE / "read.csv").read_text("utf-8").splitlines()))
COUNTED = {row["model"]: int(row["parameters"]) for row in ROWS if row["parameters"]}
FLOP = [row for row in ROWS if row["flop"]]
DENSE = [  # decoders of one shape: PaLM's formula is exact for them
    model
    for model in known_models()
    if model.name in COUNTED
    and model.config.word("model_type") in ("llama", "mistral", "qwen2", "gpt2")
]
HEAD = "schema: recommend.job/v1\nbatch: 64\nsamples: 100k\n"


def test_the_tables_hold_more_than_forty_models_of_every_family() -> None:
    families = {count_network(model.config).family for model in known_models()}
    assert families == {"decoder", "moe", "encoder", "encdec", "vit", "cnn", "diffusion"}
    assert len(COUNTED) >= 100
    assert len(FLOP) + len(DENSE) >= 40


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_those_published(name: str) -> None:
    counted = find_network(name).network.count.parameters
    assert counted == pytest.approx(COUNTED[name], rel=0.01)


def test_nearly_all_counts_agree_to_the_last_digit() -> None:
    """Eyes of networks that see pictures are counted by their widths alone."""
    counted = {name: find_network(name).network for name in COUNTED}
    differ = [n for n, w in counted.items() if w.count.parameters != COUNTED[n] and not w.beside]
    # Rounded figures, a head counted with its encoder, tables of diffusion transformers.
    assert len(differ) <= 0.04 * len(COUNTED), differ
    seeing = {n: w.count.parameters for n, w in counted.items() if w.beside}
    assert len(seeing) >= 20
    assert all(each == pytest.approx(COUNTED[n], rel=0.006) for n, each in seeing.items())


def test_every_model_was_held_against_what_others_ship() -> None:
    """`checked.csv` is written by tests/research/known_models.py."""
    names = [row["model"] for row in (*CHECKED, *REMEMBERED)]
    assert names == [model.name for model in known_models()]
    agreed = {row["model"] for row in CHECKED if row["fields_by"] or row["count"]}
    assert len(agreed) == len(CHECKED)
    for model in known_models():
        assert ("from memory" in model.source) == (model.name not in agreed), model.source


@pytest.mark.parametrize("row", REMEMBERED, ids=lambda row: row["model"])
def test_fields_from_memory_give_the_published_count(row: dict[str, str]) -> None:
    """Counts of their pages on the hub, torchvision's and timm's tables; rounded."""
    counted = find_network(row["model"]).network.count.parameters
    assert counted / 1e9 == pytest.approx(float(row["billions"]), rel=0.01)


def test_popular_models_are_known_by_name() -> None:
    """Sixty of 2024-26, listed before any of them was added (2026-11-29); 28 were known then."""
    found = {}
    for row in ASKED:
        with suppress(UsageError):
            known = find_network(row["model"])
            counted = known.network.count.parameters / 1e9
            if not known.sized:
                found[row["model"]] = counted == pytest.approx(float(row["billions"]), rel=0.01)
    assert len(ASKED) == 60
    assert sum(found.values()) >= 57
    assert all(found.values())


def test_sixty_more_names_are_planned_offline() -> None:
    """Drawn by chance, one of each kind of network that ms-swift lists (2026-08-22), and frozen.

    28 were known before (2026-11-29), 49 once a name's family and size were taken.
    """
    found = {}
    for row in DRAWN:
        with suppress(UsageError):
            known = find_network(row["model"])
            counted, tolerance = known.network.count.parameters / 1e9, 0.15 if known.sized else 0.05
            found[row["model"]] = counted == pytest.approx(float(row["billions"]), rel=tolerance)
    assert len(DRAWN) == 60
    assert sum(found.values()) >= 57
    assert all(found.values())


def test_names_of_two_frozen_lists_are_known() -> None:
    """Written down and drawn before their names were looked up (2026-11-29).

    Sixty of memory, of which 42 had a shape of their own and 49 were planned; then 59 drawn by
    chance, most of vLLM's examples of each class (34 and 46).
    """
    names = (HERE / "frozen.csv").read_text("utf-8").split()[1:]
    missed = []
    for name in names:
        try:
            missed += [name] if find_network(name).sized else []
        except UsageError:
            missed.append(name)
    assert len(names) >= 115
    assert len(missed) <= 5, missed


@pytest.mark.parametrize(
    ("timm", "ours"),
    [
        ("resnet50", "microsoft/resnet-50"),
        ("resnet152", "microsoft/resnet-152"),
        ("convnext_base", "facebook/convnext-base-224"),
        ("swin_base_patch4_window7_224", "microsoft/swin-base-patch4-window7-224"),
        ("vit_large_patch16_224", "google/vit-large-patch16-224"),
    ],
)
def test_figures_of_a_library_are_those_that_we_count(timm: str, ours: str) -> None:
    """Multiply-adds of timm's counter hold products of attention only in part."""
    published = count_network(_of_libraries()[timm].config)
    counted = find_network(ours).network
    assert published.count.parameters == pytest.approx(counted.count.parameters, rel=0.01)
    assert published.flop_per_sample == pytest.approx(counted.flop_per_sample, rel=0.03)
    if published.activation_bytes and "resnet" in timm:
        assert published.activation_bytes == pytest.approx(counted.activation_bytes, rel=0.05)


def test_a_network_of_a_library_is_found_by_its_name_and_the_tag_of_its_weights() -> None:
    for name in ("timm/convnextv2_base.fcmae_ft_in22k_in1k", "convnextv2_base"):
        found = find_network(name)
        assert found.network.count.parameters == pytest.approx(88.72e6)
        assert found.network.flop_per_sample == pytest.approx(6 * 15.38e9)


@pytest.mark.parametrize("row", READ, ids=lambda row: row["model"])
def test_fields_are_those_that_were_read_outside(row: dict[str, str]) -> None:
    known = {model.name: model for model in known_models()}[row["model"]]
    read = dict(pair.split("=") for pair in row["fields"].split())
    fields = known.config.fields
    flat = {**fields, **fields.get("text_config", {})}
    assert {name: str(flat[name]) for name in read} == read
    assert row["source"] in known.source


@pytest.mark.parametrize("row", CHECKED, ids=lambda row: row["model"])
def test_parameters_are_those_that_others_count(row: dict[str, str]) -> None:
    """By their own tables, or as transformers' classes allocate them for our fields.

    Heads, poolers and rows in front of position embeddings are counted differently: up to 1 %.
    """
    counted = find_network(row["model"]).network.count.parameters
    if not row["count"] and not row["built"]:
        assert row["model"] in {each["model"] for each in ROWS}  # of diffusers: neither has it
    if row["count"]:
        assert counted == pytest.approx(int(row["count"]), rel=0.01)
    elif row["built"]:
        assert counted == pytest.approx(int(row["built"]), rel=0.01)


def test_nearly_all_networks_are_those_that_transformers_allocates() -> None:
    built = [row for row in CHECKED if row["built"]]
    exact = [r for r in built if COUNTED.get(r["model"]) == int(r["built"])]
    assert len(built) >= 140
    assert len(exact) >= 125


@pytest.mark.parametrize("row", FLOP, ids=lambda row: row["model"])
def test_flop_are_those_published(row: dict[str, str]) -> None:
    length = f"seq_len: {row['tokens']}\n" if row["tokens"] else ""
    job = job_from_text(f"{HEAD}model: {row['model']}\n{length}")
    per = job.flop_per_sample / int(row["tokens"] or 1)
    assert per == pytest.approx(float(row["flop"]), rel=0.03)


@pytest.mark.parametrize("model", DENSE, ids=lambda model: model.name)
def test_flop_of_a_token_follow_from_published_parameters(model) -> None:  # type: ignore[no-untyped-def]
    job = job_from_text(f"{HEAD}model: {model.name}\nseq_len: 2048\n")
    assert job.flop_per_sample / 2048 == pytest.approx(flop_of_palm(model, 2048), rel=0.01)


def flop_of_palm(model, length: int) -> float:  # type: ignore[no-untyped-def]
    """6·N + 6·L·h·s of a causal mask (PaLM, arXiv 2204.02311, appendix B), rows not multiplied."""
    config = model.config.fields
    hidden = config.get("hidden_size") or config["n_embd"]
    layers = config.get("num_hidden_layers") or config["n_layer"]
    heads = config.get("num_attention_heads") or config["n_head"]
    width = heads * config.get("head_dim", hidden // heads)
    tied = config.get("tie_word_embeddings", "n_embd" in config)
    rows = 0 if tied else config["vocab_size"] * hidden
    return 6 * (COUNTED[model.name] - rows) + 6 * layers * width * length


@pytest.mark.parametrize("name", COUNTED)
def test_memory_of_states_is_sixteen_bytes_a_parameter(name: str) -> None:
    """ZeRO, arXiv 1910.02054, section 3.1; autocast keeps fp32 gradients, 18 bytes."""
    length = "seq_len: 512\n" if find_network(name).network.flop_per_sample == 0 else ""
    job = job_from_text(f"{HEAD}model: {name}\n{length}")
    prior = load_priors()[job.family, job.stack]
    each = 18 if prior.gradient_bytes == 4 else 16
    assert bytes_of(job, prior).states == pytest.approx(each * COUNTED[name], rel=0.1)


@pytest.mark.parametrize(
    ("name", "billions", "source"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", 12.9, "arXiv 2401.04088"),
        ("mistralai/Mixtral-8x22B-v0.1", 39.0, "mistral.ai/news/mixtral-8x22b"),
        ("Qwen/Qwen3-30B-A3B", 3.3, "model card"),
        ("Qwen/Qwen3-235B-A22B", 22.0, "model card"),
        ("Qwen/Qwen1.5-MoE-A2.7B", 2.7, "model card"),
        ("allenai/OLMoE-1B-7B-0924", 1.3, "arXiv 2409.02060"),
        ("meta-llama/Llama-4-Scout-17B-16E", 17.0, "model card"),
        ("meta-llama/Llama-4-Maverick-17B-128E", 17.0, "model card"),
        ("deepseek-ai/DeepSeek-V2", 21.0, "arXiv 2405.04434"),
        ("deepseek-ai/DeepSeek-V3", 37.0, "arXiv 2412.19437"),
    ],
)
def test_active_parameters_of_experts(name: str, billions: float, source: str) -> None:
    assert find_network(name).network.count.active / 1e9 == pytest.approx(billions, rel=0.025)


def test_adapters_of_llama_have_the_published_size() -> None:
    """Rank 16 on all linear layers of Llama 3.1 8B: 41,943,040, as peft prints it."""
    job = job_from_text(f"{HEAD}model: meta-llama/Llama-3.1-8B\nmethod: lora\nlora_rank: 16\n")
    assert job.trainable_parameters == 41_943_040
