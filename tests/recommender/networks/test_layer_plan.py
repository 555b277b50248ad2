"""Which layer has what, and networks as sums of parts, by hand and by classes' own counts."""

from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.networks.architectures import count_network
from recommender.networks.config import Config, conventions
from recommender.networks.find import find_network
from recommender.networks.layer_plan import Layer, layer_plan
from recommender.networks.trained import trained_parameters

MOE = {
    "model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 256, "moe_intermediate_size": 32,
    "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip


def plan(**fields: Any) -> list[Layer]:
    config = Config({**MOE, **fields}, "test")
    return list(layer_plan(config, conventions()["qwen3_moe"]))


def sparse(**fields: Any) -> list[int]:
    return [n for n, layer in enumerate(plan(**fields)) if layer.forward == "experts"]


@pytest.mark.parametrize(
    ("fields", "layers"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"decoder_sparse_step": 2}, [1, 3, 5]),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, [3, 5]),
        ({"first_k_dense_replace": 2}, [2, 3, 4, 5]),
        ({"moe_layer_freq": [0, 1, 1, 0, 0, 1]}, [1, 2, 5]),
        ({"moe_layer_freq": 2}, [0, 2, 4]),
        ({"expert_layer_period": 2, "expert_layer_offset": 1}, [1, 3, 5]),
        ({"mlp_layer_types": ["dense"] * 5 + ["sparse"]}, [5]),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": -1}, [1, 2, 3, 4, 5]),
    ],
)
def test_layers_with_experts(fields: dict[str, Any], layers: list[int]) -> None:
    assert sparse(**fields) == layers


@pytest.mark.parametrize(
    ("fields", "mixers"),
    [
        ({"full_attention_interval": 3}, "linear linear attention linear linear attention"),
        ({"attn_layer_period": 3, "attn_layer_offset": 1},
         "mamba attention mamba mamba attention mamba"),
        ({"full_attn_idxs": [0, 5]}, "attention " + "convolution " * 4 + "attention"),
        ({"layer_types": ["sliding_attention"] * 5 + ["full_attention"]},
         "sliding " * 5 + "attention"),
        ({"sliding_window": 9, "sliding_window_pattern": 2},
         "sliding attention sliding attention sliding attention"),
    ],
)  # fmt: skip
def test_what_mixes_positions(fields: dict[str, Any], mixers: str) -> None:
    assert [layer.mixer for layer in plan(**fields)] == mixers.split()


def test_letters_are_layers_of_one_part_each() -> None:
    found = plan(hybrid_override_pattern="M-*E")
    assert found == [
        Layer("mamba", ""), Layer("", "dense"), Layer("attention", ""), Layer("", "experts"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"layer_types": ["full_attention"]}, {"layer_types": ["strange"] * 6},
        {"hybrid_override_pattern": "M?"}, {"num_hidden_layers": 10**8},
    ],
)  # fmt: skip
def test_a_list_that_does_not_fit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        plan(**fields)


def test_half_the_experts_are_half_of_the_parameters_in_experts() -> None:
    every = count_network(Config(MOE, "test")).count.parameters
    half = count_network(Config({**MOE, "decoder_sparse_step": 2}, "test")).count.parameters
    layer_of_experts = 8 * 3 * 64 * 32 + 64 * 8
    assert every - half == 3 * (layer_of_experts - 3 * 64 * 256)


def test_an_unknown_class_is_counted_by_its_fields_and_named() -> None:
    found = count_network(Config({**MOE, "model_type": "new_moe"}, "test"))
    assert "no class that is known (new_moe)" in found.note
    assert "no class" not in count_network(Config(MOE, "test")).note


def test_an_unknown_class_with_a_known_architecture_is_that_one() -> None:
    named = {**MOE, "model_type": "new_moe", "architectures": ["Qwen3MoeForCausalLM"]}
    assert count_network(Config(named, "test")) == count_network(Config(MOE, "test"))


def test_a_network_that_sees_is_its_decoder_and_more() -> None:
    """Qwen2.5-VL 7B: 8.29 B parameters on its card, of which text passes those of Qwen2.5 7B."""
    text = {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064}  # fmt: skip
    eye = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "patch_size": 14}
    whole = Config({"model_type": "qwen2_5_vl", **text, "vision_config": eye}, "test")
    nested = Config({"model_type": "qwen2_5_vl", "text_config": text, "vision_config": eye}, "t")
    found = count_network(whole)
    assert found.count.parameters == pytest.approx(8.292e9, rel=0.001)
    assert found.count.active == 7_615_616_512
    assert count_network(nested).count == found.count


def test_defaults_of_a_class_name_their_source() -> None:
    for kind, row in conventions().items():
        assert row.family in ("decoder", "moe", "encoder", "eye", "composite"), kind
        if row.family == "composite":
            assert {row.eye, row.text} <= set(conventions()), kind


def test_the_default_of_a_field_gives_way_to_its_other_name() -> None:
    config = Config({"n_layer": 2}, "test").with_defaults({"num_hidden_layers": 24, "vocab": 7})
    assert (config.whole(("num_hidden_layers", "n_layer")), config.fields["vocab"]) == (2, 7)
    null = Config({"q_lora_rank": None}, "test").with_defaults({"q_lora_rank": 1536})
    assert not null.has("q_lora_rank")


def test_windows_bound_what_layers_attend_to() -> None:
    fields = {**MOE, "sliding_window": 128, "sliding_window_pattern": 2}
    found = count_network(Config(fields, "test"))
    assert (found.window, found.windowed_width, found.attention_width) == (128, 32, 64)


MIXTURE = count_network(Config({**MOE, "num_hidden_layers": 60}, "test"))
EXPERTS = 8 * 3 * 64 * 32


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        (("model.layers.4[4-9]+.block_sparse_moe.experts",), 6 * EXPERTS),
        (("^lm_head.weight$",), 64 * 1000),
        (("^lm_head.weight$", "^model.embed_tokens.weight$"), 2 * 64 * 1000),
        (("no such part",), 0), (("((a+)+)+$",), 0), (("[",), 0),
        ((".*" * 50 + "x$",), 0), (("a?" * 40 + "a" * 40,), 0),  # would be compared for years
    ],
)  # fmt: skip
def test_patterns_of_what_is_trained(stated: tuple[str, ...], wanted: int) -> None:
    assert trained_parameters(MIXTURE, stated) == wanted


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        (r"model.layers.2[0-3]+.mlp", 4 * 3 * 4096 * 14_336),
        (r"self_attn.o_proj", 32 * 4096**2),
        (r"model.layers.0.self_attn.(k|v)_proj", 2 * 4096 * 1024),
    ],
)
def test_patterns_name_the_matrices_of_a_layer(stated: str, wanted: int) -> None:
    """Llama 3.1 8B; its two norms a layer are counted with the forward network."""
    found = trained_parameters(find_network("meta-llama/Llama-3.1-8B").network, (stated,))
    assert found == pytest.approx(wanted, rel=1e-4)


def test_the_last_layers_alone() -> None:
    layer = (MIXTURE.count.parameters - 2 * 64 * 1000) / 60
    assert trained_parameters(MIXTURE, ("the last 2 layers",)) == pytest.approx(2 * layer, rel=0.01)
