"""Values of a plan as text that each kind of file reads back: of the shell, YAML and HCL.

What is not plainly a word is quoted, and no character that ends a line or steers a terminal is
left in: control characters, U+0085 and U+2028 as well, are written as escapes.
"""

import json
import re
import shlex
from collections.abc import Sequence

import yaml

from recommender.text import has_control

# Words that YAML reads as themselves in lists and mappings as well, where PyYAML leaves them bare.
_PLAIN = re.compile(r"[A-Za-z][\w./+=-]*( [\w./+=-]+)*", re.ASCII)
_SINGLE, _DOUBLE = "'", '"'


def shell(value: str | int | float) -> str:
    """A word of bash; with control characters as $'...' (bash(1), QUOTING)."""
    text = str(value)
    return f"${_escaped(text, _SINGLE)}" if has_control(text) else shlex.quote(text)


def assignment(name: str, value: str | int | float) -> str:
    """A variable of bash, quoted."""
    return f"{name}={shell(value)}"


def scalar(value: str | int | float | bool) -> str:
    """A value of YAML on one line, also inside of a list or mapping."""
    if not isinstance(value, str):
        return json.dumps(value)
    bare: str = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    if _PLAIN.fullmatch(value) and bare.partition("\n")[0] == value:
        return value
    if has_control(value):
        return _escaped(value, _DOUBLE)
    return "'" + value.replace("'", "''") + "'"


def inline(values: dict[str, str | int | float | bool]) -> str:
    """A small mapping of YAML on one line."""
    return "{" + ", ".join(f"{key}: {scalar(value)}" for key, value in values.items()) + "}"


def sequence(values: Sequence[str]) -> str:
    """A list of words of YAML on one line."""
    return "[" + ", ".join(scalar(value) for value in values) + "]"


def hcl(text: str) -> str:
    """A text of HCL, nothing in it evaluated."""
    return _escaped(text, _DOUBLE).replace("${", "$${").replace("%{", "%%{")


def _escaped(text: str, quote: str) -> str:
    """A text in quotes that know backslashes, with the escapes of what is not printed."""
    inner = "".join(
        f"\\{c}" if c in ("\\", quote)
        else f"\\U{ord(c):08x}" if has_control(c) and ord(c) > 0xFFFF
        else f"\\u{ord(c):04x}" if has_control(c)
        else c
        for c in text
    )  # fmt: skip
    return f"{quote}{inner}{quote}"
