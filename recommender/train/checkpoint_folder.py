"""Checkpoints on disk. A checkpoint is complete when its manifest exists, which is written last.

    CHECKPOINT_DIR/step-1200/
        state-0.pickle ...      files of the state, on disk before the manifest
        complete.json           step, and bytes and SHA-256 of every file
        unfinished              instead of the manifest: being written or removed, or interrupted

Folders are not renamed, because a bucket mount would copy every file. Untrusted folders are
skipped: those without a manifest, or with a file that differs from it (a mount that was cut off
during an upload). Folders with neither file belong to others and are left alone.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from recommender.catalogs.files import parse_json, remove_left_overs, replace_file, sync_folder
from recommender.catalogs.frozen import dataclass

MANIFEST, UNFINISHED = "complete.json", "unfinished"
_READ_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class FileSum:
    """The expected size and checksum of a file of a checkpoint."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a readable manifest; `is_intact` compares its files with it."""

    folder: Path
    step: int
    files: tuple[FileSum, ...]

    def is_intact(self, share: slice = slice(None)) -> bool:
        """Whether all or some files have the size and checksum of the manifest."""
        return all(_agrees(self.folder / each.name, each) for each in self.files[share])


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
        folder = self.path(step)
        shutil.rmtree(folder, ignore_errors=True)  # a torn one of the same step
        folder.mkdir(parents=True)
        (folder / UNFINISHED).touch()

    def complete(self, step: int, files: Iterable[FileSum]) -> None:
        """Complete a checkpoint whose files are on disk, and remove old ones."""
        self.seal(step, files)
        for old in self.newest_first()[self._keep :]:
            self.remove(old)

    def seal(self, step: int, files: Iterable[FileSum]) -> None:
        """Complete a checkpoint whose files are on disk."""
        folder = self.path(step)
        sync_folder(folder)
        rows = sorted([each.name, each.size_bytes, each.sha256] for each in files)
        replace_file(folder / MANIFEST, json.dumps({"step": step, "files": rows}).encode())
        sync_folder(self.root)
        (folder / UNFINISHED).unlink(missing_ok=True)

    def newest_first(self) -> list[Checkpoint]:
        """Every checkpoint with a readable manifest; files are not checked."""
        read = [_read(folder) for folder in self.root.glob(f"{self.name}-*")]
        return sorted((each for each in read if each is not None), key=lambda each: -each.step)

    def remove(self, checkpoint: Checkpoint) -> None:
        """Remove a checkpoint; it is invalid from the first step on."""
        os.replace(checkpoint.folder / MANIFEST, checkpoint.folder / UNFINISHED)
        shutil.rmtree(checkpoint.folder, ignore_errors=True)

    def remove_leftovers(self) -> None:
        """Remove what an interrupted run was writing or removing."""
        remove_left_overs(self.root)
        for mark in self.root.glob(f"{self.name}-*/{UNFINISHED}"):
            if not (mark.parent / MANIFEST).exists():
                shutil.rmtree(mark.parent, ignore_errors=True)


def sums_within(folder: Path) -> list[FileSum]:
    """The files of a checkpoint written by others, including subfolders."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
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


def _agrees(path: Path, expected: FileSum) -> bool:
    try:
        same_size = path.stat().st_size == expected.size_bytes
        return same_size and sum_of(path).sha256 == expected.sha256
    except OSError:
        return False


def _read(folder: Path) -> Checkpoint | None:
    try:
        found = parse_json((folder / MANIFEST).read_bytes())
        files = tuple(FileSum(*row) for row in found["files"])
        return Checkpoint(folder, int(found["step"]), files)
    except (OSError, ValueError, OverflowError, TypeError, KeyError):
        return None
