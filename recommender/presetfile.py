"""The presets as one file that is read without a YAML parser.

Importing PyYAML and parsing a preset took 20 ms of an answer's 460 (2026-11). The YAML files,
with their figures and sources, are the presets; `all.json` holds the same trees and is written
from them:

    python -m recommender.presetfile
"""

import json
from pathlib import Path
from typing import Any

from recommender.wholefile import write_whole

PRESETS = Path(__file__).parent / "presets"
TREES = PRESETS / "all.json"


def names() -> tuple[str, ...]:
    """Name the presets."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yaml")))


def text(name: str) -> str:
    """Give a preset's file as it is written."""
    return (PRESETS / f"{name}.yaml").read_text("utf-8")


def tree(name: str) -> Any:
    """Give a preset as `load_yaml` would: dicts, lists and the text of each value."""
    return json.loads(TREES.read_text("utf-8"))[name]


def trees() -> str:
    """Give all presets, parsed from their YAML, as JSON text."""
    from recommender.yamltext import load_yaml

    return json.dumps({name: load_yaml(text(name), name) for name in names()}, indent=1) + "\n"


if __name__ == "__main__":
    write_whole(TREES, trees().encode("utf-8"))
