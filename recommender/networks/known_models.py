"""The `config.json` fields of well-known models, so that their names work offline."""

import json
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
    source: str  # of its figures, and who has the same: tests/research/known_models.py
    config: Config


@cache
def known_models() -> tuple[KnownModel, ...]:
    """Return every model of the table, in its order."""
    text = files(__package__).joinpath("known_models.json").read_text("utf-8")
    table: Any = json.loads(text)
    checked = {name: by for by, names in table["checked_by"].items() for name in names}
    return tuple(
        KnownModel(name, _source(table, checked.get(name)), Config(fields, name))
        for name, fields in table["models"].items()
    )


def _source(table: Any, by: str | None) -> str:
    """Where a model's figures stand, and who has the same ones."""
    said = f"as in {by}" if by else f"from memory, {table['as_of']}"
    return f"{table['source']}, {said}"


def find_known(word: str) -> KnownModel | None:
    """Find a model by its full name or the part after the slash, in any case."""
    wanted = word.lower()
    for model in known_models():
        if wanted in (model.name.lower(), model.name.lower().partition("/")[2]):
            return model
    return None


# Words in a name that tell how a network was tuned or is stored, and not its shape.
_TUNED = {"meta", "base", "pt", "hf", "instruct", "chat", "it", "unsloth", "bnb", "4bit"}


def find_shape(word: str) -> KnownModel | None:
    """Find the model with the same shape as a fine-tuned or re-uploaded one."""
    wanted = _shape_words(word)
    return next((each for each in known_models() if _shape_words(each.name) == wanted), None)


def _shape_words(name: str) -> list[str]:
    bare = name.lower().rpartition("/")[2]
    return [part for part in bare.split("-") if part not in _TUNED]


def nearest_known(word: str) -> str | None:
    """Find the model that a misspelt name probably means."""
    names = [model.name for model in known_models()]
    short = {name.partition("/")[2] or name: name for name in names}
    meant = nearest(word.rpartition("/")[2], short)
    return short[meant] if meant else None
