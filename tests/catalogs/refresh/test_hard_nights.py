"""Refreshes against a server that are killed, starved of room, doubled or set back in time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.refresh.clouds import azure_list

ROOT = Path(__file__).parents[3]
# The clone's root comes last: before it Python must find the installed package.
PROGRAM = f"import sys; sys.path.append({str(ROOT)!r}); from tests.catalogs.refresh.hard_nights "
PROGRAM += "import main; main()"


def nights(folder: Path, count: int, seed: int) -> Any:
    """What came of so many nights."""
    with azure_items.price_list(azure_list()) as server:
        address = f"{server.address}/api/retail/prices"
        words = [sys.executable, "-c", PROGRAM, address]
        done = subprocess.run(
            [*words, str(folder / "store"), str(count), str(seed)],
            capture_output=True, text=True, cwd=ROOT, check=True,
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def judged(found: Any) -> None:
    """No version lost, no reader wrong, nothing left behind."""
    print(found)
    assert found["wrong"] == []
    assert found["after"] == []


@pytest.mark.slow
def test_a_few_hard_nights_lose_no_version_and_mislead_no_reader(tmp_path: Path) -> None:
    found = nights(tmp_path, 12, 1)
    judged(found)
    assert sum(found["happened"].values()) == 12


@pytest.mark.attack
def test_a_thousand_hard_nights_lose_no_version_and_mislead_no_reader(tmp_path: Path) -> None:
    """Half of them are kills."""
    found = nights(tmp_path, 1_000, 2)
    judged(found)
    assert sum(n for what, n in found["happened"].items() if what.startswith("kill")) > 400
