"""The `config.json` fields of well-known models, so that their names work offline."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.networks.config import Config
from recommender.text import nearest


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model of the shipped table."""

    name: str  # on the Hugging Face hub: owner/name
    source: str  # of its figures, and others with the same: tests/research/known_models.py
    config: Config


@cache
def _table() -> Any:
    return json.loads(files(__package__).joinpath("known_models.json").read_text("utf-8"))


def _same_shape() -> dict[str, str]:
    """Models that were trained on from a known one, or built as it is, under names of their own."""
    shapes: dict[str, str] = _table()["same_shape"]
    return shapes


@cache
def known_models() -> tuple[KnownModel, ...]:
    """Return every model of the table, in its order."""
    table = _table()
    checked = {name: by for by, names in table["checked_by"].items() for name in names}
    return tuple(
        KnownModel(name, _source(table, checked.get(name)), Config(fields, name))
        for name, fields in table["models"].items()
    )


def _source(table: Any, by: str | None) -> str:
    """The sources of a model's figures."""
    message = f"as in {by}" if by else f"from memory, {table['as_of']}"
    return f"{table['source']}, {message}"


def find_known(word: str) -> KnownModel | None:
    """Find a model by its full name or the part after the slash, in any case."""
    wanted = word.lower()
    for model in known_models():
        if wanted in (model.name.lower(), model.name.lower().partition("/")[2]):
            return model
    return None


# Words in a name that say how a network was tuned or is stored, and not its shape.
_UNITS = {"b": 1e9, "m": 1e6}
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![\w.])")  # "70b"
_TUNED = frozenset(
    [
        "meta",
        "base",
        "pt",
        "hf",
        "instruct",
        "chat",
        "it",
        "unsloth",
        "bnb",
        "4bit",
        "8bit",
        "thinking",
        "reasoning",
        "deduped",
        "awq",
        "gptq",
        "gguf",
        "int4",
        "int8",
        "fp8",
        "nf4",
        "nvfp4",
        "mxfp4",
        "bf16",
        "fp16",
        "w4a16",
        "w8a8",
        "dynamic",
        "sft",
        "dpo",
        "quantized",
    ]
)
_DATE = re.compile(r"20[12]\d|[0-3]\d{3}|[01]\d{5,7}|20\d{6}")  # 2507, 0414, 20240806


def find_shape(word: str) -> KnownModel | None:
    """Find the model with the same shape as a fine-tuned, re-uploaded or quantised one."""
    wanted = _shape_word(word)
    for name, known in _same_shape().items():
        if _shape_word(name) == wanted:
            return find_known(known)
    return next((each for each in known_models() if _shape_word(each.name) == wanted), None)


def _shape_word(name: str) -> str:
    parts = re.split(r"[-_ ]", name.lower().rpartition("/")[2])
    kept = (part for part in parts if part not in _TUNED and not _DATE.fullmatch(part))
    return "".join(kept).replace(".", "")


def sizes_in(name: str) -> tuple[float, float]:
    """Parameters that a name states, all and active: "48B-A3B", "350M"; 0 for what it does not."""
    bare = name.lower().rpartition("/")[2].replace("_", "-")
    found = [float(size) * _UNITS[unit] for size, unit in _SIZE.findall(bare)]
    used = re.search(r"(?<![\w.])a(\d+(?:\.\d+)?)b(?![\w.])", bare)
    return (max(found) if found else 0.0), (float(used[1]) * 1e9 if used else 0.0)


def nearest_known(word: str) -> str | None:
    """Find the model that a misspelt name was probably meant to be, of about its size."""
    names = [model.name for model in known_models()]
    alike = [name for name in names if of_like_size(name, word)]
    return _nearest_of(word, alike) or _nearest_of(word, names)


def _nearest_of(word: str, names: list[str]) -> str | None:
    short = {name.partition("/")[2] or name: name for name in names}
    meant = nearest(word.rpartition("/")[2], short)
    return short[meant] if meant else None


def of_like_size(name: str, word: str) -> bool:
    """Whether the sizes in both names, 8B or 135M, are within a factor of two."""
    sizes = [_SIZE.search(each.lower()) for each in (name, word)]
    if sizes[0] is None or sizes[1] is None:
        return False
    one, other = (float(each[1]) * (1000.0 if each[2] == "b" else 1.0) for each in sizes if each)
    return 0.5 <= one / max(other, 1e-9) <= 2.0
