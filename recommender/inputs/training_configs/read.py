"""Recognises and reads the configuration file of a training tool."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.inputs.toml_text import parse_toml
from recommender.inputs.training_configs.fine_tuning import axolotl, llama_factory, transformers
from recommender.inputs.training_configs.pre_training import (
    llm_foundry,
    megatron,
    nemo,
    torchtitan,
)
from recommender.inputs.training_configs.trainers import deepspeed, lightning
from recommender.inputs.training_configs.training_config import Keys, TrainingConfig
from recommender.inputs.yaml_text import load_yaml
from recommender.text import shown, shown_path

# Each tool's word as software, its reader, and keys that only its file has, tried in this order.
_SIGNS: tuple[tuple[str, Callable[[Keys], TrainingConfig], tuple[str, ...]], ...] = (
    ("axolotl", axolotl, ("base_model",)),
    (
        "llm-foundry",
        llm_foundry,
        ("global_train_batch_size", "parameters.global_train_batch_size"),
    ),
    ("llm-foundry", llm_foundry, ("device_train_microbatch_size", "parameters.max_duration")),
    ("torchtitan", torchtitan, ("training.local_batch_size", "model.flavor")),
    ("nemo", nemo, ("model.tensor_model_parallel_size", "model.global_batch_size", "exp_manager")),
    ("llama-factory", llama_factory, ("finetuning_type", "cutoff_len")),
    (
        "transformers",
        transformers,
        ("per_device_train_batch_size", "num_train_epochs", "output_dir"),
    ),
    (
        "deepspeed",
        deepspeed,
        ("train_micro_batch_size_per_gpu", "zero_optimization", "train_batch_size"),
    ),
    (
        "megatron-lm",
        megatron,
        ("global-batch-size", "global_batch_size", "train-iters", "train_iters"),
    ),
    ("lightning", lightning, ("trainer",)),
)
_TORCHTUNE = ("model._component_", "tokenizer._component_")
TOOLS = (
    "axolotl, TRL or transformers, LLaMA-Factory, torchtitan, NeMo, Megatron-LM, llm-foundry, "
    "Lightning, DeepSpeed"
)


def keys_of(tools: Collection[str]) -> tuple[str, ...]:
    """List the keys that only files of these tools have, without what they lie in."""
    signs = (sign for tool, _, signs in _SIGNS if tool in tools for sign in signs)
    return tuple(dict.fromkeys(sign.rpartition(".")[2] for sign in signs))


def read_training_config(path: Path) -> TrainingConfig:
    """Read the configuration file of a training tool.

    Raises:
        UsageError: it cannot be read, or belongs to no known tool.
    """
    keys = Keys(_tree(path))
    if keys.has(*_TORCHTUNE):  # which also has keys of others
        raise UsageError(
            f"{shown_path(path)}: files of torchtune are not read; state its model and figures as "
            "flags: recommend init --model … --batch …"
        )
    reader = next((each for _, each, signs in _SIGNS if keys.has(*signs)), None)
    if reader is None or not isinstance(keys.tree, dict):
        raise UsageError(f"{shown_path(path)}: of no training tool that is known ({TOOLS})")
    keys.known_keys.clear()
    found = reader(keys)
    return replace(found, unread=(*found.unread, *keys.unread), unused=keys.unused())


def _tree(path: Path) -> Any:
    text = read_text(path)
    if path.suffix.lower() != ".toml":
        return load_yaml(text, shown_path(path))
    try:
        return _as_text(parse_toml(text))
    except ValueError as error:
        raise UsageError(f"{shown_path(path)}: not TOML ({shown(error)})") from None


def _as_text(value: Any) -> Any:
    """A TOML value as the text that a YAML file would hold."""
    if isinstance(value, dict):
        return {str(key): _as_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
