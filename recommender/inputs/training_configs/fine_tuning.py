"""axolotl's YAML, TRL's or transformers' `TrainingArguments` as JSON or YAML, LLaMA-Factory's.

axolotl: docs.axolotl.ai, config reference (read 2026-11). transformers: `TrainingArguments`;
TRL: `SFTConfig`, `DPOConfig`, `GRPOConfig`, `PPOConfig`, `ModelConfig` (read 2026-11).
LLaMA-Factory: examples and hparams of 0.9, `TrainingArguments` among them (read 2026-11).
"""

from dataclasses import replace

from recommender.inputs.training_configs import words
from recommender.inputs.training_configs.training_config import Keys, Sharding, TrainingConfig

_PAIRS = ("dpo", "ipo", "orpo", "kto", "simpo")  # of preferences
_OF_SFT = ("nll", "dft", "chunked_nll")  # losses of SFTConfig
_NO_REFERENCE = "planned as dpo, whose reference it does without"
_ALL_ADAPTED = "planned with adapters on every linear layer"
_DEFAULT_BATCH, _DEFAULT_EPOCHS = 8, 3.0  # of TrainingArguments


def axolotl(keys: Keys) -> TrainingConfig:
    """Read an axolotl file."""
    generations = keys.whole("trl.num_generations")
    keys.without("load_in_8bit", "planned with weights of 16 bits")
    keys.without("lora_modules_to_save", "planned without: adapters alone are trained")
    keys.without("lora_target_modules", _ALL_ADAPTED)
    _engine(keys, "trl.")
    return TrainingConfig(
        tool="axolotl",
        model=keys.text("base_model"),
        tokens=keys.whole("sequence_len"),
        packed=keys.flag("sample_packing"),
        micro_batch=keys.whole("micro_batch_size") or 1,
        accumulation=keys.whole("gradient_accumulation_steps") or 1,
        replica_gpus=words.product(keys, "tensor_parallel_size", "context_parallel_size"),
        epochs=keys.number("num_epochs"),
        steps=keys.whole("max_steps"),
        precision=words.switched(
            keys.flag("bf16", "bfloat16"),
            keys.flag("fp16", "float16"),
            keys.flag("tf32"),
            keys.flag("fp8"),
        ),
        method=_adapter(keys),
        lora_rank=keys.whole("lora_r"),
        optimizer=words.wanted_optimizer(keys, "optimizer"),
        recomputation=_recomputation(keys),
        attention=_attention(keys),
        sharding=_sharding(keys),
        post_training=_kind(keys.text("rl").lower(), keys),
        generations=generations,
        unread=_data_sets(keys),
    )


def _recomputation(keys: Keys) -> str:
    """With `offload`, axolotl also moves the inputs of the layers to the host."""
    word = keys.text("gradient_checkpointing").lower()
    if word == "offload":
        keys.unread.append(f"gradient_checkpointing: {word} (planned with all inputs on the GPUs)")
    on = keys.flag("gradient_checkpointing") or word == "offload"
    if word and not on:
        words.without_recomputation(keys, "gradient_checkpointing")
    return words.recomputation(on)


def _attention(keys: Keys) -> str:
    """transformers' word for it, axolotl's switches, or LLaMA-Factory's word.

    Without any of its switches on, axolotl names none, and transformers takes sdpa where the
    network has it (`_set_attention_config` of its model loader, read 2026-11).
    """
    fused = ("sdp_attention", "xformers_attention", "flex_attention", "sage_attention")
    named = keys.text("attn_implementation", "flash_attn")
    if named or keys.flag("eager_attention"):
        return words.attention(named or "eager")
    switched_off = keys.has("flash_attention") and not keys.flag("flash_attention")
    another = any([keys.flag(each) for each in fused])  # a list: all of them count as read
    if switched_off and not another:
        keys.unread.append(
            "flash_attention: false (planned with fused attention: PyTorch's, sdpa, is used then)"
        )
    return ""


def _adapter(keys: Keys) -> str:
    word, quantised = keys.text("adapter").lower(), keys.flag("load_in_4bit")
    if word in ("lora", "qlora"):
        return "qlora" if quantised else word
    if word:
        keys.unread.append(f"adapter: {word}")
    return "full"


def _sharding(keys: Keys) -> Sharding:
    if keys.has("fsdp_config", "fsdp"):
        return _fsdp(keys)
    return words.deepspeed_file(keys.text("deepspeed"), keys)


def _fsdp(keys: Keys) -> Sharding:
    """FSDP by axolotl's words and transformers', with and without their prefix."""
    for name in ("fsdp_config.offload_params", "fsdp_config.fsdp_offload_params"):
        keys.without(name, words.NO_OFFLOAD)
    named = keys.text("fsdp_config.sharding_strategy", "fsdp_config.fsdp_sharding_strategy")
    flat = " ".join([keys.text("fsdp"), *map(str, keys.items("fsdp"))])
    if "offload" in flat.lower():
        keys.unread.append(f"fsdp: offload ({words.NO_OFFLOAD})")
    return words.fsdp_strategy(named or flat)


def _kind(word: str, keys: Keys) -> str:
    """Post-training as our job files name it."""
    if word in ("orpo", "simpo"):
        keys.unread.append(f"rl: {word} is {_NO_REFERENCE}")
    if word in _PAIRS:
        return "dpo"
    if word in ("grpo", "ppo", ""):
        return word
    keys.unread.append(f"rl: {word}")
    return ""


def _data_sets(keys: Keys) -> tuple[str, ...]:
    """The data sets, whose size no such file holds."""
    found = [each.get("path") for each in keys.items("datasets") if isinstance(each, dict)]
    found += [keys.text("dataset_name")]
    mixers = [each for each in keys.items("dataset_mixer") if isinstance(each, dict)]
    found += [f"{name} (share {share})" for each in mixers for name, share in each.items()]
    mixture = [each for each in keys.items("dataset_mixture.datasets") if isinstance(each, dict)]
    found += sorted({str(each.get("id", each.get("path"))) for each in mixture})
    return tuple(f"size of the data set {name}" for name in found if name)


def transformers(keys: Keys) -> TrainingConfig:
    """Read `TrainingArguments`, or a TRL configuration."""
    kind = _trl_kind(keys)
    keys.without("load_in_8bit", "planned with weights of 16 bits")
    keys.without("lora_target_modules", _ALL_ADAPTED)
    batch = keys.whole("per_device_train_batch_size")
    if not batch:
        keys.unread.append(f"per_device_train_batch_size: not there, the default {_DEFAULT_BATCH}")
    epochs, steps = keys.number("num_train_epochs"), keys.whole("max_steps")
    if not epochs and not steps:
        keys.unread.append(f"num_train_epochs: not there, the default {_DEFAULT_EPOCHS:g}")
    return TrainingConfig(
        tool="TRL" if kind or keys.has("model_name_or_path", "max_length") else "transformers",
        model=keys.text("model_name_or_path"),
        tokens=keys.whole("max_seq_length", "max_length") or _prompt_and_completion(keys),
        packed=keys.flag("packing"),
        micro_batch=batch or _DEFAULT_BATCH,
        accumulation=keys.whole("gradient_accumulation_steps") or 1,
        epochs=0.0 if steps else epochs or _DEFAULT_EPOCHS,
        steps=steps,
        precision=words.switched(keys.flag("bf16"), keys.flag("fp16"), keys.flag("tf32")),
        method=_peft(keys),
        lora_rank=keys.whole("lora_r"),
        optimizer=words.wanted_optimizer(keys, "optim"),
        recomputation=_recomputation(keys),
        attention=_attention(keys),
        sharding=_flat_sharding(keys),
        post_training=kind,
        generations=keys.whole("num_generations"),
        unread=_data_sets(keys),
    )


def llama_factory(keys: Keys) -> TrainingConfig:
    """Read a LLaMA-Factory file: `TrainingArguments`, and its own words for the rest."""
    found = transformers(keys)
    method = _factory_method(keys)
    if keys.text("lora_target") != "all":
        keys.without("lora_target", _ALL_ADAPTED)
    data_sets = [each.strip() for each in keys.text("dataset").split(",") if each.strip()]
    return replace(
        found,
        tool="LLaMA-Factory",
        tokens=keys.whole("cutoff_len") or 2048,
        packed=keys.flag("packing", "neat_packing"),
        method=method,
        lora_rank=0 if method == "full" else keys.whole("lora_rank") or 8,
        post_training=_factory_kind(keys),
        most_examples=keys.whole("max_samples") * max(len(data_sets), 1),
        unread=tuple(f"size of the data set {name}" for name in data_sets),
    )


def _factory_method(keys: Keys) -> str:
    word, bits = keys.text("finetuning_type").lower() or "lora", keys.whole("quantization_bit")
    if word != "lora":
        if word != "full":
            keys.unread.append(f"finetuning_type: {word} (planned with all weights trained)")
        return "full"
    if bits not in (0, 4):
        keys.unread.append(f"quantization_bit: {bits} (planned with weights of 16 bits)")
    return "qlora" if bits == 4 else "lora"


def _factory_kind(keys: Keys) -> str:
    stage, loss = keys.text("stage").lower(), keys.text("pref_loss").lower()
    if stage == "rm":
        keys.unread.append("stage: rm (planned as plain training on as many tokens)")
    if stage in ("pt", "sft", "rm"):
        return ""
    return _kind(loss if stage == "dpo" and loss in ("orpo", "simpo") else stage, keys)


def _prompt_and_completion(keys: Keys) -> int:
    return keys.whole("max_prompt_length") + keys.whole("max_completion_length")


def _trl_kind(keys: Keys) -> str:
    """TRL's files do not name their trainer; these fields belong to one each, or to a few."""
    if keys.has("num_generations", "max_completion_length", "reward_weights", "use_vllm"):
        _engine(keys, "")
        return "grpo"
    if keys.has("num_ppo_epochs", "cliprange", "kl_coef"):
        return "ppo"
    if keys.text("loss_type").lower() in _OF_SFT or not keys.has("beta", "dpo_beta", "loss_type"):
        return ""
    if keys.has("beta") and not keys.has("loss_type"):
        keys.unread.append("beta: of DPO, ORPO, KTO and others; planned as dpo, with a reference")
    return "dpo"


def _engine(keys: Keys, prefix: str) -> None:
    """The memory of vLLM next to the training: by TRL's defaults (1.16) 0.3 of each GPU."""
    if not keys.flag(f"{prefix}use_vllm"):
        return
    taken = "its GPUs are needed in addition to those of the plan"
    if keys.text(f"{prefix}vllm_mode") != "server":
        share = keys.number(f"{prefix}vllm_gpu_memory_utilization") or 0.3
        taken = f"its {share:.0%} of each GPU's memory are not counted"
    keys.unread.append(f"{prefix}use_vllm: {taken}")


def _peft(keys: Keys) -> str:
    adapted = keys.flag("use_peft") or keys.has("lora_r", "lora_target_modules")
    if not adapted:
        return "full"
    return "qlora" if keys.flag("load_in_4bit") else "lora"


def _flat_sharding(keys: Keys) -> Sharding:
    word = " ".join(map(str, keys.items("fsdp"))).lower()
    if "shard" in word or keys.has("fsdp_config"):
        return _fsdp(keys)
    stage = keys.whole("deepspeed.zero_optimization.stage")
    if stage:
        words.offload(keys, "deepspeed.")
        return words.zero_stage(stage, keys)
    return words.deepspeed_file(keys.text("deepspeed"), keys)
