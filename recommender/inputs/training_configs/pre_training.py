"""torchtitan's TOML, NeMo's and Megatron's YAML, MosaicML llm-foundry's YAML.

torchtitan: its job_config; NeMo: megatron_gpt_config.yaml; Megatron-LM: its arguments;
llm-foundry: scripts/train (all read 2026-11).
"""

import re

from recommender.inputs.training_configs import words
from recommender.inputs.training_configs.training_config import (
    Architecture,
    Keys,
    Sharding,
    TrainingConfig,
)

_TITAN = {  # model.name, model.flavor: the model of the hub with that shape
    "llama3": "meta-llama/Llama-3.1-{}", "qwen3": "Qwen/Qwen3-{}",
    "deepseek_v3": "deepseek-ai/DeepSeek-V3",
}  # fmt: skip
_TITAN_FLAVORS = {"llama3": ("8B", "70B", "405B"), "deepseek_v3": ("671B",)}


def torchtitan(keys: Keys) -> TrainingConfig:
    """Read a torchtitan file."""
    degree = {
        name: keys.whole(f"parallelism.{name}_degree", f"training.{name}_degree")
        for name in ("data_parallel_replicate", "tensor_parallel", "context_parallel")
    }
    shards = keys.text("parallelism.data_parallel_shard_degree")
    pipeline = keys.whole("parallelism.pipeline_parallel_degree")
    tensor, replicas = degree["tensor_parallel"], max(degree["data_parallel_replicate"], 1)
    context = degree["context_parallel"]
    replica_gpus = max(tensor, 1) * max(pipeline, 1) * max(context, 1)
    known = int(shards) if shards.isdecimal() else 0  # -1: as many as there are
    keys.without("training.enable_cpu_offload", words.NO_OFFLOAD)
    sharded: Sharding = "ddp" if known == 1 else "hsdp" if replicas > 1 else "fsdp"
    return TrainingConfig(
        tool="torchtitan",
        model=_titan_model(keys),
        tokens=keys.whole("training.seq_len"),
        packed=True,
        micro_batch=keys.whole("training.local_batch_size", "training.batch_size"),
        batch=max(keys.whole("training.global_batch_size"), 0),
        accumulation=1,
        gpus=known * replicas * replica_gpus,
        replica_gpus=replica_gpus,
        steps=keys.whole("training.steps"),
        precision=_titan_precision(keys),
        method="full",
        optimizer=words.wanted_optimizer(keys, "optimizer.name"),
        recomputation=_titan_recomputation(keys),
        sharding=words.model_parallelism(tensor, pipeline, context) or sharded,
    )


def _titan_recomputation(keys: Keys) -> str:
    path = "activation_checkpoint.mode"
    mode = keys.text(path)
    if keys.has(path) and not mode:  # none
        words.without_recomputation(keys, path)
    return words.recomputation(mode == "full")


def _titan_precision(keys: Keys) -> str:
    path = "training.mixed_precision_param"
    word = words.precision(keys.text(path), keys, path)
    eight = keys.flag("float8.enable_float8_linear") or keys.has("quantize.linear.float8")
    eight |= any("float8" in str(each) for each in keys.items("model.converters"))
    return "fp8" if eight else word


def _titan_model(keys: Keys) -> str:
    name, flavor = keys.text("model.name"), keys.text("model.flavor")
    if "/" in name:
        return name
    if name in _TITAN and flavor in _TITAN_FLAVORS.get(name, (flavor,)):
        return _TITAN[name].format(flavor)
    keys.unread.append(f"model: {name} {flavor} is not known")
    return ""


def nemo(keys: Keys) -> TrainingConfig:
    """Read a NeMo file of a Megatron model."""
    tensor = keys.whole("model.tensor_model_parallel_size")
    pipeline = keys.whole("model.pipeline_model_parallel_size")
    context = keys.whole("model.context_parallel_size")
    parallel = ("tensor_model_parallel", "pipeline_model_parallel", "context_parallel")
    adapted = keys.text("model.peft.peft_scheme").lower()
    keys.without(
        "model.expert_model_parallel_size", "planned with experts divided where that is best"
    )
    return TrainingConfig(
        tool="NeMo",
        model=_restored(keys),
        architecture=_architecture(keys, "model."),
        tokens=keys.whole("model.encoder_seq_length", "model.data.seq_length")
        or keys.whole("model.data.train_ds.max_seq_length"),
        packed=not keys.has("model.data.train_ds"),
        micro_batch=keys.whole("model.micro_batch_size"),
        batch=keys.whole("model.global_batch_size"),
        gpus=keys.whole("trainer.devices") * max(keys.whole("trainer.num_nodes"), 1),
        replica_gpus=words.product(keys, *(f"model.{kind}_size" for kind in parallel)),
        steps=keys.whole("trainer.max_steps"),
        precision="fp8"
        if keys.flag("model.fp8")
        else words.precision(keys.text("trainer.precision"), keys, "trainer.precision"),
        method="lora" if adapted == "lora" else "full",
        lora_rank=keys.whole("model.peft.lora_tuning.adapter_dim"),
        optimizer=words.wanted_optimizer(keys, "model.optim.name"),
        recomputation=_megatron_recomputation(keys, "model.activations_checkpoint"),
        attention=_nemo_attention(keys),
        sharding=words.model_parallelism(tensor, pipeline, context),
    )


def _restored(keys: Keys) -> str:
    path = keys.text("model.restore_from_path", "restore_from_path")
    if path:
        keys.unread.append(f"restore_from_path: {path} is not a name of the Hugging Face hub")
    return ""


def _megatron_precision(keys: Keys) -> str:
    """Give the precision of Megatron-LM's switches; MXFP8 is a recipe of its 8-bit formats."""
    if keys.text("fp4_format"):
        return "nvfp4"
    eight = bool(keys.text("fp8_format", "fp8"))
    word = words.switched(keys.flag("bf16"), keys.flag("fp16"), False, eight)
    return "mxfp8" if keys.text("fp8_recipe") == "mxfp8" and eight else word


def _megatron_recomputation(keys: Keys, prefix: str) -> str:
    """Whether every layer is recomputed: with the method `block`, only a stated number is."""
    whole = keys.text(f"{prefix}_granularity") == "full"
    return words.recomputation(whole and keys.text(f"{prefix}_method") != "block")


def _nemo_attention(keys: Keys) -> str:
    """NeMo's switch, which does nothing with Transformer Engine, whose attention is fused."""
    path = "model.use_flash_attention"
    off = keys.has(path) and not keys.flag(path) and not keys.flag("model.transformer_engine")
    return "plain" if off else ""


def _megatron_attention(keys: Keys) -> str:
    """Megatron-LM's back end; its own layers (`local`) fuse attention only if told so."""
    own = keys.text("transformer_impl") == "local" and not keys.flag("use_flash_attn")
    return words.attention("local" if own else keys.text("attention_backend"))


def megatron(keys: Keys) -> TrainingConfig:
    """Read the arguments of Megatron-LM, one key each, with dashes or underscores."""
    flat = Keys({str(key).replace("-", "_"): value for key, value in keys.tree.items()})
    tensor = flat.whole("tensor_model_parallel_size")
    pipeline = flat.whole("pipeline_model_parallel_size")
    context = flat.whole("context_parallel_size")
    found = TrainingConfig(
        tool="Megatron-LM",
        architecture=_architecture(flat, ""),
        tokens=flat.whole("seq_length"),
        packed=True,
        micro_batch=flat.whole("micro_batch_size"),
        batch=flat.whole("global_batch_size"),
        gpus=flat.whole("world_size"),
        replica_gpus=max(tensor, 1) * max(pipeline, 1) * max(context, 1),
        steps=flat.whole("train_iters"),
        samples=flat.whole("train_samples"),
        precision=_megatron_precision(flat),
        method="full",
        optimizer=words.wanted_optimizer(flat, "optimizer"),
        recomputation=_megatron_recomputation(flat, "recompute"),
        attention=_megatron_attention(flat),
        sharding=words.model_parallelism(tensor, pipeline, context),
    )
    keys.unread += flat.unread
    keys.known_keys |= {key for key in keys.tree if str(key).replace("-", "_") in flat.known_keys}
    return found


def _architecture(keys: Keys, inside: str) -> Architecture | None:
    hidden, layers = keys.whole(f"{inside}hidden_size"), keys.whole(f"{inside}num_layers")
    if not hidden or not layers:
        return None
    activation = keys.text(f"{inside}activation").lower()
    return Architecture(
        hidden=hidden,
        layers=layers,
        heads=keys.whole(f"{inside}num_attention_heads"),
        key_value_heads=keys.whole(f"{inside}num_query_groups"),
        head=keys.whole(f"{inside}kv_channels"),
        inner=keys.whole(f"{inside}ffn_hidden_size"),
        vocabulary=keys.whole(f"{inside}vocab_size", f"{inside}padded_vocab_size")
        or keys.whole(f"{inside}override_vocab_size"),
        gated="glu" in activation or keys.flag(f"{inside}swiglu"),
        tied=_tied(keys, inside),
        tokenizer=keys.text(f"{inside}tokenizer.type", f"{inside}tokenizer_model"),
    )


def _tied(keys: Keys, inside: str) -> bool:
    """Whether input and output embeddings share one table, the default of both tools."""
    shared = keys.text(f"{inside}share_embeddings_and_output_weights").lower() != "false"
    return shared and not keys.flag(f"{inside}untie_embeddings_and_output_weights")


def llm_foundry(keys: Keys) -> TrainingConfig:
    """Read an llm-foundry file, with its variables in place."""
    root = "parameters." if keys.has("parameters") else ""
    at = root.__add__
    lasts = keys.text(at("max_duration"))
    epochs, steps, samples, tokens = _duration(lasts, keys)
    packing = keys.text(at("train_loader.dataset.packing_ratio"))
    name = keys.text(at("model.pretrained_model_name_or_path"))
    return TrainingConfig(
        tool="llm-foundry",
        model=name or keys.text(at("variables.model_name_or_path")),
        architecture=_mpt(keys, at("model")),
        tokens=keys.whole(at("max_seq_len"), at("variables.max_seq_len")),
        packed=bool(packing) or keys.text(at("train_loader.name")) == "text",
        micro_batch=keys.whole(at("device_train_microbatch_size")),
        batch=keys.whole(at("global_train_batch_size")),
        gpus=keys.whole("compute.gpus"),
        epochs=epochs,
        steps=steps,
        samples=samples,
        total_tokens=tokens,
        precision=words.precision(keys.text(at("precision")), keys, "precision"),
        method="lora" if keys.has(at("model.peft_config")) else "full",
        lora_rank=keys.whole(at("model.peft_config.r")),
        optimizer=words.wanted_optimizer(keys, at("optimizer.name")),
        recomputation=_foundry_recomputation(keys, at("fsdp_config.activation_checkpointing")),
        attention=words.attention(
            keys.text(at("model.attn_config.attn_impl"), at("model.attn_impl"))
        ),
        sharding=_strategy(keys.text(at("fsdp_config.sharding_strategy"))),
        unread=tuple(
            f"size of the data set {word}"
            for word in [keys.text(at("train_loader.dataset.hf_name"))]
            if word
        ),
    )


def _foundry_recomputation(keys: Keys, path: str) -> str:
    on = keys.flag(path)
    if keys.has(path) and not on:
        words.without_recomputation(keys, path)
    return words.recomputation(on)


def _duration(word: str, keys: Keys) -> tuple[float, int, int, int]:
    """Composer's time: 3ep, 4800ba, 1e9tok, 100_000sp."""
    found = re.fullmatch(r"([0-9.eE_]+)\s*(ep|ba|sp|tok)", word)
    if found is None:
        if word:
            keys.unread.append(f"max_duration: {word}")
        return 0.0, 0, 0, 0
    value, unit = float(found[1].replace("_", "")), found[2]
    whole = round(value)
    return (
        value if unit == "ep" else 0.0,
        whole if unit == "ba" else 0,
        whole if unit == "sp" else 0,
        whole if unit == "tok" else 0,
    )


def _mpt(keys: Keys, inside: str) -> Architecture | None:
    hidden, layers = keys.whole(f"{inside}.d_model"), keys.whole(f"{inside}.n_layers")
    if not hidden or not layers:
        return None
    return Architecture(
        hidden=hidden,
        layers=layers,
        heads=keys.whole(f"{inside}.n_heads"),
        inner=hidden * (keys.whole(f"{inside}.expansion_ratio") or 4),
        vocabulary=keys.whole(f"{inside}.vocab_size"),
        tied=keys.text(f"{inside}.tie_word_embeddings").lower() != "false",
    )


def _strategy(word: str) -> Sharding:
    if "HYBRID" in word.upper():
        return "hsdp"
    return "fsdp" if word.upper() in ("FULL_SHARD", "SHARD_GRAD_OP") else ""
