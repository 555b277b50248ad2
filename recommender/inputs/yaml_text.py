"""Reads YAML with plain text values, without tags and aliases.

Every scalar stays the typed text, so that `no`, `1:30`, `0o17` and `2026-12-01` mean what their
field says and not what YAML 1.1 would make of them. Alias bombs, deep nesting, duplicate keys and
control characters are refused before anything is built.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from recommender.errors import UsageError, refuse_all
from recommender.inputs.files import MAX_BYTES
from recommender.text import has_control, shown

MAX_DEPTH = 20
MAX_TEXT = 10_000  # characters of one value

Tree = Any  # dict[str, Tree] | list[Tree] | str | None, checked by the schema that reads it

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = ("", "~", "null", "Null", "NULL")


def load_yaml(text: str, name: str) -> Tree:
    """Read one YAML document into dicts, lists and text; `name` prefixes each error."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise UsageError(f"{name}: larger than 1 MiB; is it the right file?")
    try:
        _refuse_tricks(text, name)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{name}{line}: not {_form(name)} ({shown(error.problem)})") from None
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{name}: not {_form(name)} ({shown(reason)})") from None
    problems: list[str] = []
    tree = _build(node, name, problems)
    refuse_all(problems)
    return tree


def _form(name: str) -> str:
    """What a file should be: YAML, of which JSON is a part."""
    return "JSON" if name.lower().endswith(".json") else "YAML"


def _refuse_tricks(text: str, name: str) -> None:
    depth = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    for event in events:
        where = f"{name}, line {event.start_mark.line + 1}"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UsageError(f"{where}: anchors (&) and aliases (*) are refused; write it out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise UsageError(f"{where}: the tag {shown(event.tag)} is refused; leave it out")
        if depth > MAX_DEPTH:
            raise UsageError(f"{where}: nested deeper than {MAX_DEPTH} levels")


def _build(node: Any, name: str, problems: list[str]) -> Tree:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, name, problems)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, name, problems) for item in node.value]
    if node is None or (not node.style and node.value in _NULLS):
        return None
    if has_control(node.value.replace("\n", "")) or len(node.value) > MAX_TEXT:
        where = f"{name}, line {node.start_mark.line + 1}"
        problems.append(f"{where}: '{shown(node.value)}' holds control characters or is too long")
    return str(node.value)


def _mapping(node: Any, name: str, problems: list[str]) -> dict[str, Tree]:
    tree: dict[str, Tree] = {}
    for key_node, value in node.value:
        where = f"{name}, line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode) or has_control(key_node.value):
            problems.append(f"{where}: a key must be one plain word")
            continue
        if key_node.value in tree:
            problems.append(f"{where}: '{shown(key_node.value)}' occurs twice; keep one")
        tree[key_node.value] = _build(value, name, problems)
    return tree
