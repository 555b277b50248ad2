"""Lightning's YAML (LightningCLI) and DeepSpeed's JSON.

Lightning: `lightning.pytorch.Trainer`; DeepSpeed: deepspeed.ai/docs/config-json (read 2026-11).
"""

from recommender.inputs.training_configs import words
from recommender.inputs.training_configs.training_config import Keys, Sharding, TrainingConfig

_MODEL = ("model_name_or_path", "model_name", "pretrained_model_name_or_path", "model_id")
_BATCH = ("batch_size", "train_batch_size", "micro_batch_size")
_OPTIMIZER = tuple(f"{place}optimizer.class_path" for place in ("", "model.init_args.", "model."))
_LENGTH = ("max_seq_length", "max_length", "block_size", "sequence_length")


def lightning(keys: Keys) -> TrainingConfig:
    """Read a file of LightningCLI."""
    places = ("data.init_args", "data", "model.init_args", "model")
    return TrainingConfig(
        tool="Lightning",
        model=keys.text(*(f"{place}.{name}" for place in places for name in _MODEL)),
        tokens=keys.whole(*(f"{place}.{name}" for place in places for name in _LENGTH)),
        micro_batch=keys.whole(*(f"{place}.{name}" for place in places for name in _BATCH)),
        accumulation=max(keys.whole("trainer.accumulate_grad_batches"), 1),
        gpus=keys.whole("trainer.devices") * max(keys.whole("trainer.num_nodes"), 1),
        epochs=_above_zero(keys.number("trainer.max_epochs")),
        steps=keys.whole("trainer.max_steps"),
        precision=words.precision(keys.text("trainer.precision"), keys, "trainer.precision"),
        method="",
        optimizer=words.wanted_optimizer(keys, *_OPTIMIZER),
        sharding=_strategy(keys),
        unread=_classes(keys),
    )


def _above_zero(value: float) -> float:
    return value if value > 0 else 0.0  # -1: no such limit


def _strategy(keys: Keys) -> Sharding:
    word = (keys.text("trainer.strategy.class_path") or keys.text("trainer.strategy")).lower()
    hybrid = "HYBRID" in keys.text("trainer.strategy.init_args.sharding_strategy").upper()
    if "fsdp" in word:
        return "hsdp" if hybrid else "fsdp"
    if "deepspeed" in word:
        stage = keys.whole("trainer.strategy.init_args.stage") or int(word[-1:] == "3") * 3
        return words.zero_stage(stage, keys)
    return "ddp" if "ddp" in word else ""


def _classes(keys: Keys) -> tuple[str, ...]:
    """Classes of the user's own: what they do is not in the file."""
    named = {part: keys.text(f"{part}.class_path") for part in ("model", "data")}
    return tuple(f"{part}: {name} (a class)" for part, name in named.items() if name)


def deepspeed(keys: Keys) -> TrainingConfig:
    """Read a DeepSpeed file; it holds neither the network nor the data."""
    half = (keys.flag("bf16.enabled"), keys.flag("fp16.enabled"))
    words.offload(keys, "")
    return TrainingConfig(
        tool="DeepSpeed",
        micro_batch=keys.whole("train_micro_batch_size_per_gpu"),
        accumulation=keys.whole("gradient_accumulation_steps"),
        batch=keys.whole("train_batch_size"),
        precision=words.switched(*half, False),
        optimizer=words.wanted_optimizer(keys, "optimizer.type"),
        sharding=words.zero_stage(keys.whole("zero_optimization.stage"), keys),
        unread=("the network and the data set: a DeepSpeed file holds neither",),
    )
