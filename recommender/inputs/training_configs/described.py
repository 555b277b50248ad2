"""Networks that a training file describes itself, in the fields of a config.json."""

import re
from typing import Any

from recommender.inputs.training_configs.training_config import OFF, Keys

Fields = dict[str, Any]

_MEGATRON = {  # names of Megatron-LM and NeMo: those of config.json
    "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads", "num_query_groups": "num_key_value_heads",
    "kv_channels": "head_dim", "ffn_hidden_size": "intermediate_size",
    "num_moe_experts": "num_experts", "num_experts": "num_experts",
    "moe_router_topk": "num_experts_per_tok", "moe_ffn_hidden_size": "moe_intermediate_size",
    "moe_shared_expert_intermediate_size": "shared_expert_intermediate_size",
    "q_lora_rank": "q_lora_rank", "kv_lora_rank": "kv_lora_rank", "qk_head_dim": "qk_nope_head_dim",
    "qk_pos_emb_head_dim": "qk_rope_head_dim", "v_head_dim": "v_head_dim",
}  # fmt: skip
_PICTURE = {
    "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads", "ffn_hidden_size": "intermediate_size",
    "patch_dim": "patch_size", "img_h": "image_size", "num_classes": "num_labels",
}  # fmt: skip
_NANOGPT = {"n_layer": "n_layer", "n_head": "n_head", "n_embd": "n_embd",
            "vocab_size": "vocab_size", "block_size": "n_positions"}  # fmt: skip
_WORDS = ("padded_vocab_size", "vocab_size", "override_vocab_size")
_MPT = {
    "d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "vocab_size": "vocab_size", "attn_config.kv_n_heads": "num_key_value_heads",
    "attn_config.sliding_window_size": "sliding_window",
    "ffn_config.ffn_hidden_size": "intermediate_size", "ffn_config.moe_num_experts": "num_experts",
    "ffn_config.moe_top_k": "num_experts_per_tok",
}  # fmt: skip
# What a NeMo file has that is no plain decoder: what it then is.
_OTHERS = (
    ("unet", "a diffusion network (Imagen)"),
    ("control_stage_config", "a controlled diffusion network"), ("nerf", "a radiance field"),
    ("perceptual_loss", "an autoencoder"), ("retro", "a decoder with retrieval"),
)  # fmt: skip


def nemo(keys: Keys, inside: str) -> Fields | None:
    """A network in a NeMo file: a decoder, BERT, or a vision transformer."""
    for part, kind in _OTHERS:
        if isinstance(keys.at(f"{inside}{part}"), dict):
            keys.unread.append(f"model: {kind}, which is not read from NeMo's files; give --model")
            return None
    for part, read in (("unet_config", _unet), ("encoder", _pair), ("vision", _towers)):
        if isinstance(keys.at(f"{inside}{part}"), dict):
            return read(keys, inside)
    if keys.has(f"{inside}patch_dim", f"{inside}vision_pretraining_type"):
        return _picture(keys, inside)
    found = megatron(keys, inside)
    if found and keys.has(f"{inside}bert_binary_head"):
        return {**found, "model_type": "bert", "type_vocab_size": 2,
                "max_position_embeddings": keys.whole(f"{inside}encoder_seq_length")}  # fmt: skip
    at = f"{inside}mm_cfg.vision_encoder."  # NeVA: CLIP's large eye, and two matrices
    if found and keys.has(f"{inside}mm_cfg"):
        width = keys.whole(f"{at}hidden_size") or 1024
        eye = {"hidden_size": width, "num_hidden_layers": 24, "intermediate_size": 4 * width,
               "patch_size": keys.whole(f"{at}patch_dim") or 14, "image_size": 336}  # fmt: skip
        keys.has(f"{at}from_pretrained", f"{at}crop_size")
        return {**found, "model_type": "llava", "vision_config": eye}
    return found


def _figures(keys: Keys, inside: str, names: dict[str, str]) -> Fields:
    """The whole numbers that are stated, by config.json's names."""
    read = ((ours, keys.whole(f"{inside}{theirs}")) for theirs, ours in names.items())
    return {name: value for name, value in read if value}


def _picture(keys: Keys, inside: str) -> Fields:
    found = _figures(keys, inside, _PICTURE)
    keys.has(f"{inside}vision_pretraining_type", f"{inside}img_w")
    found.setdefault("intermediate_size", 4 * found.get("hidden_size", 0))
    return {"model_type": "vit", "patch_size": 16, "image_size": 224, **found}


def _unet(keys: Keys, inside: str) -> Fields:
    """Stable Diffusion's UNet, whose levels attend to text at some resolutions."""
    at = f"{inside}unet_config."
    width, levels = keys.whole(f"{at}model_channels"), _numbers(keys, f"{at}channel_mult")
    seeing = _numbers(keys, f"{at}attention_resolutions")
    depth = _numbers(keys, f"{at}transformer_depth")
    linear_, pooled = f"{at}use_linear_in_transformer", keys.whole(f"{at}adm_in_channels")
    return {
        "_class_name": "UNet2DConditionModel",
        "block_out_channels": [width * each for each in levels],
        "down_block_types": ["CrossAttnDownBlock2D" if 2**n in seeing else "DownBlock2D"
                             for n in range(len(levels))],
        "layers_per_block": keys.whole(f"{at}num_res_blocks") or 2,
        "transformer_layers_per_block": depth or [1],
        "cross_attention_dim": keys.whole(f"{at}context_dim"),
        "use_linear_projection": keys.flag(linear_),
        "in_channels": keys.whole(f"{at}in_channels") or 4,
        "sample_size": keys.whole(f"{inside}image_size") or 64,
        **({"projection_class_embeddings_input_dim": pooled} if pooled else {}),
    }  # fmt: skip


def _numbers(keys: Keys, path: str) -> list[int]:
    return [int(str(each)) for each in keys.items(path) if str(each).isdecimal()]


def _pair(keys: Keys, inside: str) -> Fields | None:
    """T5 and mT5: an encoder and a decoder of their own depths, as wide as each other."""
    at = f"{inside}encoder."
    found = megatron(keys, at)
    if found is None:
        return None
    heads, hidden = found["num_attention_heads"], found["hidden_size"]
    gated = "glu" in keys.text(f"{at}activation").lower()
    vocabulary = keys.whole(f"{inside}vocab_size")
    return {
        "model_type": "t5", "d_model": hidden, "d_ff": found["intermediate_size"],
        "num_heads": heads, "d_kv": found.get("head_dim", hidden // heads),
        "num_layers": found["num_hidden_layers"],
        "num_decoder_layers": keys.whole(f"{inside}decoder.num_layers")
        or found["num_hidden_layers"],
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "tie_word_embeddings": _tied(keys, inside),
        **({"vocab_size": vocabulary} if vocabulary else {}),
    }  # fmt: skip


def _towers(keys: Keys, inside: str) -> Fields | None:
    """CLIP: an eye, and a transformer for captions."""
    eye, text = megatron(keys, f"{inside}vision."), megatron(keys, f"{inside}text.")
    if eye is None or text is None:
        return None
    at = f"{inside}vision."
    seen = {"patch_size": keys.whole(f"{at}patch_dim"), "image_size": keys.whole(f"{at}img_h")}
    words = {
        "vocab_size": 49_408,
        "max_position_embeddings": 77,
    }  # CLIP's (openai/CLIP, model card)
    return {"model_type": "clip", "projection_dim": keys.whole(f"{inside}output_dim") or 512,
            "vision_config": {**eye, **seen}, "text_config": {**text, **words}}  # fmt: skip


def megatron(keys: Keys, inside: str) -> Fields | None:
    """A decoder in the words of Megatron-LM; none where its shape depends on the call."""
    if any([_is_open(keys, f"{inside}{each}") for each in _MEGATRON]):
        return None
    if keys.flag(f"{inside}is_hybrid_model"):
        keys.unread.append("model: a hybrid of scans and attention, which is not read from "
                           "arguments; give --model")  # fmt: skip
        return None
    found = _figures(keys, inside, _MEGATRON)
    if not found.get("hidden_size") or not found.get("num_hidden_layers"):
        return None
    hidden = found["hidden_size"]
    activation = keys.text(f"{inside}activation").lower()
    gated = keys.flag(f"{inside}swiglu") or "glu" in activation
    found.setdefault("num_attention_heads", max(hidden // 128, 1))
    found.setdefault("intermediate_size", 4 * hidden)
    if not keys.flag(f"{inside}multi_latent_attention"):
        for name in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"):
            found.pop(name, None)
    if found.get("num_experts", 0) > 1:
        found.setdefault("num_experts_per_tok", 2)  # the default of both tools
        found |= _frequency(keys.text(f"{inside}moe_layer_freq"))
    else:
        found = {k: v for k, v in found.items() if "expert" not in k and "moe" not in k}
    words = keys.whole(*(f"{inside}{each}" for each in _WORDS))
    found["model_type"] = "llama" if gated else "gpt_neox"
    found["tie_word_embeddings"] = _tied(keys, inside)
    return {**found, "vocab_size": words} if words else found


def _is_open(keys: Keys, path: str) -> bool:
    """Whether a value depends on the call of a script; it is recorded as unread."""
    return "${" in str(keys.at(path)) and not keys.text(path)


def _frequency(word: str) -> Fields:
    """Which layers have experts: every so many, or "[0]*3+[1]*58"."""
    if word.isdecimal():
        return {"moe_layer_freq": int(word)}
    found: list[int] = []
    for value, times in re.findall(r"\[?\(?\[([01, ]+)\]\)?(?:\s*\*\s*(\d+))?", word):
        found += [int(each) for each in value.split(",")] * int(times or 1)
    return {"moe_layer_freq": found} if found else {}


def _tied(keys: Keys, inside: str) -> bool:
    """Whether input and output embeddings share one table, the default of both tools."""
    shared = keys.text(f"{inside}share_embeddings_and_output_weights").lower() != "false"
    return shared and not keys.flag(f"{inside}untie_embeddings_and_output_weights")


def mpt(keys: Keys, inside: str) -> Fields | None:
    """MosaicML's MPT in an llm-foundry file."""
    found = _figures(keys, inside, _MPT)
    if not found.get("hidden_size") or not found.get("num_hidden_layers"):
        return None
    ratio = keys.whole(f"{inside}expansion_ratio") or 4
    found.setdefault("intermediate_size", ratio * found["hidden_size"])
    if found.get("num_experts", 0) > 1:
        found.setdefault("num_experts_per_tok", 1)  # MegaBlocks' default
    gated = "glu" in keys.text(f"{inside}ffn_config.ffn_type").lower()
    tied = keys.text(f"{inside}tie_word_embeddings").lower() != "false"
    return {**found, "model_type": "llama" if gated else "gpt_neox", "tie_word_embeddings": tied}


def nanogpt(keys: Keys, inside: str) -> Fields | None:
    """nanoGPT's figures; GPT-2's 124M where a file leaves them out (train.py, read 2026-11)."""
    if keys.text("init_from").startswith("gpt2"):
        return None
    usual = {"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50_304, "n_positions": 0}
    return {"model_type": "gpt2", **usual, **_figures(keys, "", _NANOGPT)}


def nanochat(keys: Keys, inside: str) -> Fields | None:
    """nanochat's network of a depth: 64 wide a layer, heads of 128, 32,768 words.

    scripts/base_train.py and nanochat/gpt.py, read 2026-11; its further tables of value embeddings
    are left out.
    """
    depth = keys.whole("depth")
    if not depth:
        return None
    width = depth * 64
    return {"model_type": "gpt_neox", "num_hidden_layers": depth, "hidden_size": width,
            "num_attention_heads": max(width // 128, 1), "intermediate_size": 4 * width,
            "tie_word_embeddings": False,
            "vocab_size": keys.whole("vocab_size") or 32_768}  # fmt: skip


def tokenizer(keys: Keys, inside: str) -> str:
    """A tokenizer that is a model's name on the hub."""
    named = (f"{inside}tokenizer.type", f"{inside}tokenizer_model", f"{inside}tokenizer.model")
    word = next((each for path in named if "/" in (each := keys.text(path))), "")
    return "" if word.lower() in OFF or word.startswith(("/", ".", "$")) else word


NETWORKS = {"nemo": nemo, "mpt": mpt, "megatron": megatron, "nanogpt": nanogpt,
            "nanochat": nanochat}  # fmt: skip
