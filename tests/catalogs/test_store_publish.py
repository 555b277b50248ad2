"""Publishing leaves the old version or the new one, whatever stops it."""

import shlex
import shutil
import subprocess
import sys
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from recommender.catalogs.errors import CatalogError, StoreError
from recommender.catalogs.store import (
    CURRENT,
    GENERATIONS,
    NIGHTS,
    Store,
    day_of,
    newest_good,
    publish,
    roll_back,
    sequence,
    write_lock,
)
from tests.catalogs.versions_data import MORNING, content, published

ROOT = Path(__file__).parents[2]
MODULE = "tests.catalogs.versions_data"
PROGRAM = f"""import runpy, sys
sys.path.append({str(ROOT)!r})
runpy.run_module({MODULE!r}, run_name="__main__", alter_sys=True)
"""
BEFORE_POINTER = (
    "clean", "folder", "file achieved.csv.gz", "file offers.csv.gz", "file manifest.json",
    "synced", "read back", "pointer", "rename", "swap",
)  # fmt: skip
AFTER_POINTER = ("published", "prune")


def price(store: Store) -> float:
    """What the machine costs in the version that readers get."""
    found = newest_good(store)
    assert found.skipped == ()
    return found.catalog.offers.usd_per_hour[0]


def killed(folder: Path, step: str, limit: int = 0) -> subprocess.CompletedProcess[str]:
    """Publish a version at 0.7 USD in another process that dies at a step."""
    new = folder / "new"
    if not new.exists():
        new.mkdir()
        for name, data in content(folder, 0.7).files.items():
            (new / name).write_bytes(data)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), step, str(limit)],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("step", BEFORE_POINTER)
def test_a_writer_killed_before_the_pointer_leaves_the_old_version(
    tmp_path: Path, step: str
) -> None:
    store = published(tmp_path, 0.5, 0.6)
    assert killed(tmp_path, step).returncode == 9
    assert price(store) == 0.6
    with write_lock(store, wait_s=0):  # the dead writer's lock is free
        publish(store, content(tmp_path, 0.65), MORNING)
    assert price(store) == 0.65
    assert not list(store.folder.glob(".new-*"))


@pytest.mark.parametrize("step", AFTER_POINTER)
def test_a_writer_killed_after_the_pointer_leaves_the_new_version(
    tmp_path: Path, step: str
) -> None:
    store = published(tmp_path, 0.5)
    assert killed(tmp_path, step).returncode == 9
    assert price(store) == 0.7


@pytest.mark.parametrize("limit", [1, 100, 1000])
def test_a_full_disk_leaves_the_old_version_and_says_so(tmp_path: Path, limit: int) -> None:
    store = published(tmp_path, 0.5)
    done = killed(tmp_path, "never", limit)
    assert "was not published: File too large" in done.stderr
    assert price(store) == 0.5
    assert len(store.names()) == 1
    assert not list(store.folder.glob(".new-*"))


def test_on_a_small_disk_every_publish_leaves_the_old_version_until_there_is_room(
    tmp_path: Path,
) -> None:
    """A disk of 160 KiB in memory, filled but for 0, 1, 2, … pages."""
    for name, usd in (("old", 0.5), ("new", 0.7)):
        (tmp_path / name).mkdir()
        for file, data in content(tmp_path, usd).files.items():
            (tmp_path / name / file).write_bytes(data)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=160k tmpfs {disk}"
    trial = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*trial, mount]).returncode:
        pytest.skip("this machine lets nobody mount a disk of their own")
    program = shlex.join([sys.executable, "-c", PROGRAM, "fill", str(tmp_path), str(disk)])
    done = subprocess.run(
        [*trial, f"{mount} && {program}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    assert lines[-1] == "published 0.7 0"
    assert len(lines) > 3
    assert set(lines[:-1]) == {"No space left on device 0.5 0"}


def test_a_disk_that_fills_at_the_pointer_leaves_the_old_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = published(tmp_path, 0.5)

    def full(path: Path, content: bytes) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("recommender.catalogs.store.prepare", full)
    with write_lock(store), pytest.raises(StoreError, match="No space left on device"):
        publish(store, content(tmp_path, 0.6), MORNING)
    assert price(store) == 0.5
    assert len(store.names()) == 1


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5)
    with write_lock(store):
        done = subprocess.run(
            [sys.executable, "-c", _WAITER, str(store.root)],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert "another refresh, import or rollback is writing here" in done.stdout


_WAITER = """
import sys
from pathlib import Path
from recommender.catalogs.errors import StoreError
from recommender.catalogs.store import write_lock
from recommender.catalogs.store import Store
try:
    with write_lock(Store(Path(sys.argv[1])), wait_s=0):
        print("entered")
except StoreError as error:
    print(error)
"""


def test_readers_are_never_blocked_and_never_see_half_a_version(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5)
    contents = [content(tmp_path, 1.0 + i) for i in range(8)]
    seen: list[float] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(price(store))

    reader = threading.Thread(target=read)
    reader.start()
    with write_lock(store):
        for each in contents:
            publish(store, each, MORNING)
    done.set()
    reader.join()
    assert seen == sorted(seen)
    assert price(store) == 8.0


def test_fourteen_generations_are_kept_and_the_one_that_holds(tmp_path: Path) -> None:
    prices = (0.5 + i / 100 for i in range(GENERATIONS))
    store = published(tmp_path, *prices, apart=timedelta(minutes=1))
    first = store.names()[0]
    roll_back(store, first)
    (store.root / CURRENT).write_text(f"{first}\n")
    made = content(tmp_path, 0.9)
    with write_lock(store):
        publish(store, made, MORNING)
        publish(store, made, MORNING)
    assert len(store.names()) == GENERATIONS
    assert [sequence(name) for name in store.names()] == list(range(3, GENERATIONS + 3))


def test_the_last_version_of_each_day_of_a_month_is_kept(tmp_path: Path) -> None:
    """So that prices can be compared with those of 30 nights ago, however many refreshes a day."""
    store = published(tmp_path, *[0.5] * 70, apart=timedelta(hours=12))
    days = Counter(day_of(name) for name in store.names())
    assert len(days) == NIGHTS
    assert sorted(days.values()) == [1] * (NIGHTS - 7) + [2] * 7
    assert max(days) - min(days) == timedelta(days=NIGHTS - 1)


def test_the_order_of_versions_does_not_depend_on_the_clock(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5)
    with write_lock(store):
        later = publish(store, content(tmp_path, 0.6), MORNING.replace(year=2020))
    assert store.names()[-1] == later
    assert price(store) == 0.6


def test_a_version_that_cannot_be_read_back_is_not_published(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5)
    bad = content(tmp_path, 0.6)
    files = {**bad.files, "offers.csv.gz": bad.files["offers.csv.gz"][:-4]}
    with write_lock(store), pytest.raises(CatalogError, match="sha256 differs"):
        publish(store, type(bad)(files), MORNING)
    assert price(store) == 0.5


def test_a_rollback_names_the_version_before_and_the_next_one_comes_after(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6, 0.7)
    roll_back(store)
    assert price(store) == 0.6
    roll_back(store)
    assert price(store) == 0.5
    with pytest.raises(StoreError, match="no version before"):
        roll_back(store)
    roll_back(store, store.names()[-1])
    assert price(store) == 0.7
    with pytest.raises(StoreError, match="no version '9'"):
        roll_back(store, "9")


def test_a_rollback_to_a_damaged_version_is_refused(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6)
    (store.path(store.names()[0]) / "offers.csv.gz").write_bytes(b"")
    with pytest.raises(StoreError, match="no good version before"):
        roll_back(store)
    with pytest.raises(CatalogError, match="sha256 differs"):
        roll_back(store, store.names()[0])
    assert price(store) == 0.6


def test_a_rollback_passes_over_a_damaged_version(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6, 0.7)
    (store.path(store.names()[1]) / "offers.csv.gz").write_bytes(b"")
    assert roll_back(store) == store.names()[0]
    assert price(store) == 0.5


def test_a_store_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="cannot be written"), write_lock(Store(tmp_path / "file")):
        raise AssertionError("the store is a file")
