"""Recognises and reads the files of training tools, by the table of `tools.csv`.

A row says which field of the training which keys of which tool hold, and how their value is read.
Of several rows of a field the first that says something counts; all are read.
"""

import csv
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.inputs.toml_text import parse_toml
from recommender.inputs.training_configs import described
from recommender.inputs.training_configs.scripts import read_python, read_shell
from recommender.inputs.training_configs.training_config import Keys, TrainingConfig
from recommender.inputs.training_configs.words import READERS, WITH_A_WORD
from recommender.inputs.yaml_text import load_yaml
from recommender.text import shown, shown_path

_GENERATIONS = 8  # of GRPOConfig (TRL 1.16)
# Of most decoders where nobody names any (PEFT 0.18, its table of models; read 2026-11).
_USUAL_TARGETS = ("q_proj", "v_proj")
_NEITHER = ("deepspeed", "accelerate")  # hold neither network nor data
_SPECIAL = ("sign", "root", "network", "without", "off", "engine", "data", "classes", "copies",
            "steps_per_epoch", "dora", "optimizer_rank")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """How one field of a training is read from a tool's file."""

    tool: str
    field: str
    reader: str
    keys: tuple[str, ...]


@cache
def table() -> dict[str, tuple[Row, ...]]:
    """The rows of each tool, in the order in which tools are recognised."""
    with files(__package__).joinpath("tools.csv").open("r", encoding="utf-8") as file:
        rows = [Row(r["tool"], r["field"], r["reader"], tuple(r["keys"].split()))
                for r in csv.DictReader(file)]  # fmt: skip
    return {
        tool: tuple(r for r in rows if r.tool == tool)
        for tool in dict.fromkeys(r.tool for r in rows)
    }


def tools() -> str:
    """The names of all tools, for messages and help."""
    return ", ".join(_sign(tool).reader for tool in table())


def keys_of(wanted: Collection[str]) -> tuple[str, ...]:
    """List the keys that only files of these tools have, without what they lie in."""
    signs = (
        sign for tool in wanted for row in table()[tool] if row.field == "sign" for sign in row.keys
    )
    return tuple(dict.fromkeys(sign.rpartition(".")[2] for sign in signs))


def read_training_config(path: Path) -> TrainingConfig:
    """Read the file of a training tool, or a script that trains.

    Raises:
        UsageError: it cannot be read, or belongs to no known tool.
    """
    keys = Keys(_tree(path))
    found = next((tool for tool in table() if keys.has(*_sign(tool).keys)), None)
    if found is None or not isinstance(keys.tree, dict):
        raise UsageError(f"{shown_path(path)}: of no training tool that is known ({tools()})")
    keys.known_keys.clear()
    return _read(found, keys)


def read_together(paths: Sequence[Path]) -> TrainingConfig:
    """Read a tool's file and those beside it, such as DeepSpeed's, that say what it does not."""
    found = [read_training_config(path) for path in paths]
    first = next((each for each in found if each.tool.lower() not in _NEITHER), found[0])
    for other in found:
        if other is not first:
            first = _beside(first, other)
    return first


def _beside(first: TrainingConfig, other: TrainingConfig) -> TrainingConfig:
    """A training with what a further file says of what the first leaves open."""
    names = [
        each.name
        for each in fields(TrainingConfig)
        if each.name not in ("tool", "unread", "unused")
    ]
    usual = TrainingConfig("")
    open_ = {n: getattr(other, n) for n in names if getattr(first, n) == getattr(usual, n)}
    ours = [each for each in first.unread if "another file" not in each]
    theirs = [each for each in other.unread if "holds neither" not in each and "auto" not in each]
    return replace(first, **open_, unread=(*ours, *theirs), unused=(*first.unused, *other.unused))


def _sign(tool: str) -> Row:
    """How a tool's files are recognised, with the tool's name as it is shown."""
    return next(row for row in table()[tool] if row.field == "sign")


def _read(tool: str, keys: Keys) -> TrainingConfig:
    values: dict[str, Any] = {}
    data: tuple[str, ...] = ()
    root = _root(tool, keys)
    for row in _rows(tool):
        paths = [root + key for key in row.keys]
        if row.field in ("without", "off"):
            for each in paths:
                keys.without(each, row.reader, on=row.field == "without")
        elif row.field == "network":
            inside = f"{paths[0]}." if paths else root
            values.setdefault("tokenizer", described.tokenizer(keys, inside))
            values["network"] = described.NETWORKS[row.reader](keys, inside)
        elif row.field not in ("sign", "root"):
            value = _value(row.reader, keys, paths)
            if row.field in ("data", "classes"):
                data = data or value
            elif not values.get(row.field):
                values[row.field] = value
    config = _joined(tool, keys, values)
    loud = keys.loud()
    more = ("the network and the data set: this file holds neither",) if tool in _NEITHER else ()
    return replace(config, unread=(*more, *data, *keys.unread, *loud), unused=_rest(keys, loud))


def _rest(keys: Keys, loud: Sequence[str]) -> tuple[str, ...]:
    named = {each.partition(":")[0] for each in loud}
    return tuple(key for key in keys.unused() if key not in named)


def _rows(tool: str) -> tuple[Row, ...]:
    """LLaMA-Factory's files hold `TrainingArguments` besides its own words."""
    if tool != "llama-factory":
        return table()[tool]
    own = table()[tool]
    mine = {row.field for row in own}
    return (*own, *(row for row in table()["transformers"] if row.field not in mine))


def _root(tool: str, keys: Keys) -> str:
    root = next((row.keys[0] for row in table()[tool] if row.field == "root"), "")
    return f"{root}." if root and isinstance(keys.at(root), dict) else ""


def _value(reader: str, keys: Keys, paths: Sequence[str]) -> Any:
    name, equals, word = reader.partition("=")
    if not equals:
        return READERS[name](keys, paths)
    if name:
        return WITH_A_WORD[name](keys, paths, word)
    return int(word) if word.isdecimal() else word


def _joined(tool: str, keys: Keys, values: dict[str, Any]) -> TrainingConfig:
    """The training, with what several fields say together."""
    if values.get("dora"):
        keys.unread.append("dora: true (planned as lora; its norms of columns are small beside it)")
    if values.get("method") == "full":
        values["lora_rank"] = 0
    software = keys.text("software")  # of a script
    adapted = tool == "transformers" and not software and values.get("method") in ("lora", "qlora")
    values["targets"] = values.get("targets") or (_USUAL_TARGETS if adapted else ())
    if values.get("steps"):
        values["epochs"] = 0.0
    if values.get("kind") == "grpo" and not values.get("generations"):
        keys.unread.append(f"generations of a prompt: not there, the default {_GENERATIONS}")
        values["generations"] = _GENERATIONS
    if values.get("steps_per_epoch"):
        values["steps"] = round(values["steps_per_epoch"] * (values.pop("epochs", 0) or 1))
    if values.get("copies"):
        values["gpus"] = values["copies"] * (values.get("replica_gpus") or 1)
        values["gpus"] = 0 if values["copies"] == 1 and tool == "torchtitan" else values["gpus"]
    if values.get("kind") == "grpo" and tool == "verl" and values.get("generations"):
        values["batch"] = values.get("batch", 0) * values["generations"]  # counts prompts
    whole = ("steps", "samples", "total_tokens", "batch", "micro_batch")
    values.update({name: round(values[name]) for name in whole if values.get(name)})
    values["packed"] = bool(values.get("packed"))
    named = _sign(tool).reader
    if tool == "transformers" and not (
        values.get("kind") or keys.has("model_name_or_path", "max_length")
    ):
        named = "transformers"
    kept = {k: v for k, v in values.items() if k not in _SPECIAL or k == "network"}
    return TrainingConfig(**{**kept, "tool": software or named})


def _tree(path: Path) -> Any:
    text, suffix = read_text(path), path.suffix.lower()
    where = shown_path(path)
    if suffix in (".py", ".ipynb"):
        return read_python(text, where)
    if suffix in (".sh", ".bash", ".slurm", ".sbatch"):
        return read_shell(text, path.parent)
    if suffix != ".toml":
        tree = load_yaml(text, where)
        return _underscored(tree) if isinstance(tree, dict) else tree
    try:
        return _as_text(parse_toml(text))
    except ValueError as error:
        raise UsageError(f"{where}: not TOML ({shown(error)})") from None


def _underscored(tree: dict[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments may have dashes, and lie together in its tests' files."""
    inner = tree.get("MODEL_ARGS")
    if isinstance(inner, dict):
        tree = {key.lstrip("-"): each for key, each in inner.items()}
    return {
        key.replace("-", "_") if isinstance(key, str) else key: each for key, each in tree.items()
    }


def _as_text(value: Any) -> Any:
    """A TOML value as the text that a YAML file would hold."""
    if isinstance(value, dict):
        return {str(key): _as_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
