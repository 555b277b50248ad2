"""TOML as foreign text: settings, and the files of training tools."""

import re
import tomllib
from typing import Any

MAX_PARTS = 50  # of a dotted key; settings and training tools have three
MAX_DEPTH = 100  # tables and lists in each other
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML.

    tomllib keeps every beginning of a dotted key: 80 kB of "a.a.a" take 6 GB (Python 3.11), so
    long keys are refused before it sees them.

    Raises:
        ValueError: it is none, or tables lie in tables deeper than a program reads.
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_PARTS} parts")
    try:
        tree = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _refuse_deep(tree)
    return tree


def _refuse_deep(tree: dict[str, Any]) -> None:
    """Keys of fifty parts in tables within tables are deeper than Python goes by itself."""
    level: list[Any] = [tree]
    for _ in range(MAX_DEPTH):
        inner = (v for e in level for v in (e.values() if isinstance(e, dict) else e))
        level = [value for value in inner if isinstance(value, (dict, list))]
    if level:
        raise ValueError("nested too deeply")
