"""The presets: YAML files, and the same data as JSON, which loads faster.

Importing PyYAML and parsing a preset took 20 ms of an answer's 460 (2026-11). The YAML files
contain the figures and their sources. `all.json` contains the same data and is generated from them:

    python -P -m recommender.job.preset_files
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.text import unknown

PRESETS = Path(__file__).parent / "presets"
TREES = PRESETS / "all.json"


@cache
def presets() -> tuple[str, ...]:
    """List the presets."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yaml")))


def preset_text(name: str) -> str:
    """Return a preset's file as written, with figures and sources."""
    if name not in presets():
        raise UsageError(unknown("job", name, presets()))
    return (PRESETS / f"{name}.yaml").read_text("utf-8")


def preset_tree(name: str) -> Any:
    """Return a preset as `load_yaml` would: dicts, lists and the text of each value."""
    return json.loads(TREES.read_text("utf-8"))[name]


def trees() -> str:
    """Return all presets, parsed from their YAML, as JSON text."""
    from recommender.inputs.yaml_text import load_yaml  # a plan of a preset needs no YAML parser

    found = {name: load_yaml(preset_text(name), name) for name in presets()}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    from recommender.catalogs.files import replace_file

    replace_file(TREES.resolve(), trees().encode("utf-8"))  # an editable install may link it
