"""YAML with comments: mappings and lists as text, every scalar quoted where it has to be."""

from collections.abc import Sequence

from recommender.export.quoting import scalar
from recommender.export.train_command import Variable


def inline(values: dict[str, str | int | float | bool]) -> str:
    """A small mapping on one line."""
    return "{" + ", ".join(f"{key}: {scalar(value)}" for key, value in values.items()) + "}"


def sequence(values: Sequence[str]) -> str:
    """A list of words on one line."""
    return "[" + ", ".join(scalar(value) for value in values) + "]"


def environment(variables: Sequence[Variable]) -> list[str]:
    """Environment variables with what they mean; values are strings."""
    return [f"{each.name}: {scalar(each.value)}  # {each.meaning}" for each in variables]
