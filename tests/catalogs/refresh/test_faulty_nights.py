"""Refreshes against a server that are killed, starved of room, doubled or set back in time."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.refresh.clouds import azure_list
from tests.catalogs.refresh.faulty_nights import KILLED

ROOT = Path(__file__).parents[3]
# The clone's root comes last: before it Python must find the installed package.
PROGRAM = f"import sys; sys.path.append({str(ROOT)!r}); from tests.catalogs.refresh.faulty_nights "
PROGRAM += "import main; main()"


@contextmanager
def small_disk() -> Iterator[Path]:
    """A folder that everybody may read; of root's a tmpfs that is soon full."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "tmpfs", name]
        mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
        try:
            yield folder
        finally:
            if mounted:
                subprocess.run(["umount", name], check=True)


def nights(folder: Path, kills: int, seed: int) -> Any:
    """What came of nights of all kinds until so many refreshes were killed while they ran."""
    with azure_items.price_list(azure_list()) as server:
        address = f"{server.address}/api/retail/prices"
        words = [sys.executable, "-c", PROGRAM, address]
        done = subprocess.run(
            [*words, str(folder / "store"), str(kills), str(seed)],
            capture_output=True, text=True, cwd=ROOT, check=True,
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def judged(found: Any) -> None:
    """No version lost, no reader wrong, nothing left behind."""
    print(found)
    assert found["wrong"] == []
    assert found["after"] == []


@pytest.mark.slow
def test_a_few_hard_nights_lose_no_version_and_mislead_no_reader() -> None:
    with small_disk() as folder:
        found = nights(folder, 6, 1)
    judged(found)
    assert found["happened"][KILLED] == 6


@pytest.mark.attack
@pytest.mark.parametrize("seed", range(4))
def test_five_hundred_kills_lose_no_version_and_mislead_no_reader(seed: int) -> None:
    """Of four seeds, among as many other hard nights."""
    with small_disk() as folder:
        found = nights(folder, 125, seed)
    judged(found)
    assert found["happened"][KILLED] == 125
