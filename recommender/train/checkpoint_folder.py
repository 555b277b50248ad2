"""Checkpoints on disk. A checkpoint is complete when its manifest exists, which is written last.

    CHECKPOINT_DIR/step-1200/
        state-0.pickle ...      files of the state, on disk before the manifest
        complete.json           step, and bytes and SHA-256 of every file
        unfinished              instead of the manifest: being written or removed, or interrupted

Complete checkpoints are only removed when a newer one is complete. One whose files differ from its
manifest (a mount that was cut off during an upload) is skipped and put aside under another name.
What cannot be read is neither: it is tried again, and then an error. Folders with neither a
manifest nor the mark belong to others and are left alone. No other folder is renamed, because a
bucket mount would copy every file.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum
from functools import partial
from itertools import count
from pathlib import Path

from recommender.catalogs.files import parse_json, remove_left_overs, replace_file, sync_folder
from recommender.catalogs.frozen import dataclass
from recommender.train.patience import patiently

MANIFEST, UNFINISHED, ASIDE = "complete.json", "unfinished", "aside"
_READ_BYTES = 1 << 22
_LOG = logging.getLogger("recommender.train")


class Condition(IntEnum):
    """What the files of a checkpoint are, from the best to the worst."""

    INTACT = 0
    TORN = 1  # they differ from the manifest
    MISSING = 2  # some are not there: lost, or not shown yet


@dataclass(frozen=True, slots=True)
class FileSum:
    """The expected size and checksum of a file of a checkpoint."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a manifest."""

    folder: Path
    step: int

    def condition(self, share: slice = slice(None)) -> Condition:
        """Compare all or some files with the manifest: sizes first, then checksums.

        Raises:
            OSError: something cannot be read, also later.
        """
        manifest = patiently((self.folder / MANIFEST).read_bytes)
        try:
            files = [FileSum(*row) for row in parse_json(manifest)["files"]][share]
            paths = [self.folder / each.name for each in files]
        except (ValueError, OverflowError, TypeError, KeyError):
            return Condition.TORN
        expected = [each.size_bytes for each in files]
        sizes = patiently(lambda: [_size(path) for path in paths], lambda found: found == expected)
        if None in sizes:
            return Condition.MISSING
        if sizes != expected:
            return Condition.TORN
        sums = [patiently(partial(sum_of, path)).sha256 for path in paths]
        same = sums == [each.sha256 for each in files]
        return Condition.INTACT if same else Condition.TORN


class CheckpointFolder:
    """The checkpoints of one training, of which the last `keep` are kept."""

    def __init__(self, root: Path, keep: int, name: str = "step") -> None:
        self.root = root
        self._keep = keep
        self.name = name

    def path(self, step: int) -> Path:
        """The path of a step's checkpoint, on all ranks."""
        return self.root / f"{self.name}-{step}"

    def begin(self, step: int) -> None:
        """Prepare a checkpoint; called by one rank, before any rank writes."""
        self.remove_unfinished()
        folder = self.path(step)
        folder.mkdir(parents=True, exist_ok=True)
        if os.listdir(folder):
            self.put_aside(folder)
            folder.mkdir()
        (folder / UNFINISHED).touch()

    def complete(self, step: int, files: Iterable[FileSum]) -> None:
        """Complete a checkpoint whose files are on disk, and remove older ones than the last.

        Raises:
            OSError: it is not complete.
        """
        self.seal(step, files)
        try:
            older = [each for each in self.newest_first() if each.step < step]
            for old in older[self._keep - 1 :]:
                os.replace(old.folder / MANIFEST, old.folder / UNFINISHED)  # invalid from here on
                _clear(old.folder)
        except OSError as error:
            _LOG.warning("an old checkpoint was not removed: %s", error)

    def seal(self, step: int, files: Iterable[FileSum]) -> None:
        """Complete a checkpoint whose files are on disk.

        Raises:
            OSError: it is not complete.
        """
        folder = self.path(step)
        rows = sorted([each.name, each.size_bytes, each.sha256] for each in files)
        try:
            sync_folder(folder)
            replace_file(folder / MANIFEST, json.dumps({"step": step, "files": rows}).encode())
            sync_folder(self.root)
            (folder / UNFINISHED).unlink(missing_ok=True)
        except OSError as error:
            if not self._is_complete(step):
                raise
            _LOG.warning("step %d is saved, but: %s", step, error)

    def newest_first(self) -> list[Checkpoint]:
        """Every checkpoint with a manifest; neither it nor the files are read.

        Raises:
            OSError: a folder cannot be listed.
        """
        found = [
            Checkpoint(folder, int(folder.name.rpartition("-")[2]))
            for folder, files in self._listed()
            if MANIFEST in files and folder.name.rpartition("-")[2].isdecimal()
        ]
        return sorted(found, key=lambda each: -each.step)

    def put_aside(self, folder: Path) -> None:
        """Give a folder another name, under which nothing looks for it.

        Raises:
            OSError: it stays where it is.
        """
        taken = set(os.listdir(self.root))
        names = (f"{ASIDE}-{folder.name}-{number}" for number in count(1))
        name = next(each for each in names if each not in taken)
        os.rename(folder, self.root / name)
        _LOG.warning("%s is put aside as %s", folder, name)

    def remove_unfinished(self) -> None:
        """Remove what an interrupted or failed save or removal has left, as far as possible."""
        try:
            remove_left_overs(self.root)
            for folder, files in self._listed():
                if UNFINISHED in files and MANIFEST not in files:
                    _clear(folder)
        except OSError as error:
            _LOG.warning("an unfinished checkpoint was not removed: %s", error)

    def _listed(self) -> list[tuple[Path, list[str]]]:
        """What is named like a step, each with the names in it; a glob would hide what fails."""
        names = [name for name in os.listdir(self.root) if name.startswith(f"{self.name}-")]
        return [(self.root / name, _names_in(self.root / name)) for name in names]

    def _is_complete(self, step: int) -> bool:
        folder = self.path(step)
        try:
            there = MANIFEST in os.listdir(folder)
            return there and Checkpoint(folder, step).condition() == Condition.INTACT
        except OSError:
            return False


def sums_within(folder: Path) -> list[FileSum]:
    """The files of a checkpoint written by others, including subfolders."""
    found = sorted(
        Path(at, name) for at, _, names in os.walk(folder, onerror=_fail) for name in names
    )
    own = [path for path in found if path.name not in (MANIFEST, UNFINISHED)]
    return [replace(sum_of(path), name=path.relative_to(folder).as_posix()) for path in own]


def sum_of(path: Path) -> FileSum:
    """The size and checksum of a file, once it is on disk."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while part := file.read(_READ_BYTES):
            digest.update(part)
            size += len(part)
    return FileSum(path.name, size, digest.hexdigest())


def _clear(folder: Path) -> None:
    """Remove a folder that is marked as unfinished, the mark last: a kill leaves it marked."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != UNFINISHED:
            path.unlink()
    (folder / UNFINISHED).unlink()
    folder.rmdir()


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except NotADirectoryError:
        return []


def _fail(error: OSError) -> None:
    raise error


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
