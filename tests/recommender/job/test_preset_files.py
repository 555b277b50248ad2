"""The presets that are read without a YAML parser are those that people read."""

import json
import subprocess
import sys

import pytest

from recommender.inputs.yaml_text import load_yaml
from recommender.job.preset_files import TREES, preset_text, preset_tree, presets, trees


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_what_its_file_says(name: str) -> None:
    assert preset_tree(name) == load_yaml(preset_text(name), name)


def test_every_preset_is_there_and_no_other() -> None:
    assert tuple(json.loads(TREES.read_text("utf-8"))) == presets()
    assert TREES.read_text("utf-8") == trees()  # python -P -m recommender.job.preset_files


def test_a_preset_is_planned_without_a_yaml_parser() -> None:
    code = "import sys; from recommender import find_job; find_job('dlrm'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "recommender.job.job" in done.stdout.split()
    assert "yaml" not in done.stdout.split()
