"""Lays settings under flags: what was not typed comes from variables and settings files."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from recommender.cli.reader import Reader

F = TypeVar("F")

_KEYS = {"provider": "providers", "region": "regions"}  # flag: setting, where they differ


def settings(read: Reader) -> Mapping[str, str | tuple[str, ...]]:
    """The settings that were changed by somebody, as text."""
    from recommender.settings import load

    found = read.attempt(lambda: load({}, Path()), {})
    return {key: each.value for key, each in found.items() if each.origin != "default"}


def under(flags: F, kept: Mapping[str, str | tuple[str, ...]]) -> F:
    """The flags, with settings where nothing was typed."""
    changes: dict[str, Any] = {}
    for each in fields(flags):  # type: ignore[arg-type]
        value = kept.get(_KEYS.get(each.name, each.name))
        if getattr(flags, each.name) is None and value is not None:
            changes[each.name] = value if isinstance(value, str) else list(value)
    return replace(flags, **changes)  # type: ignore[type-var]
