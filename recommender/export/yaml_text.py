"""YAML with comments: mappings as text, every scalar quoted by PyYAML where it has to be."""

from collections.abc import Sequence

import yaml

from recommender.export.train_command import Variable


def scalar(value: str | int | float | bool) -> str:
    """A value on one line, quoted where YAML would read it as something else."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def inline(values: dict[str, str | int | float | bool]) -> str:
    """A small mapping on one line."""
    return "{" + ", ".join(f"{key}: {scalar(value)}" for key, value in values.items()) + "}"


def sequence(values: Sequence[str]) -> str:
    """A list of words on one line."""
    return "[" + ", ".join(scalar(value) for value in values) + "]"


def environment(variables: Sequence[Variable], indent: str = "  ") -> list[str]:
    """Environment variables with what they mean; values are strings."""
    lines = []
    for each in variables:
        quoted = scalar(each.value)
        text = quoted if quoted[:1] in "'\"" or not _is_bare_number(quoted) else f'"{quoted}"'
        lines.append(f"{indent}{each.name}: {text}  # {each.meaning}")
    return lines


def _is_bare_number(text: str) -> bool:
    return not isinstance(yaml.safe_load(text), str)


def block(lines: Sequence[str], indent: str = "  ") -> list[str]:
    """Lines of a literal block."""
    return [f"{indent}{line}".rstrip() for line in lines]
