"""Publishes catalog versions: written aside, read back, then named by the pointer.

One writer at a time holds the lock of the store; the operating system frees it when the writer
dies. A writer that is stopped at any moment leaves the version that held, and at most a folder
that nobody reads, which the next writer removes.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from catalogs.durable import Step, no_step, prepare, replace, sync_folder, write_new
from catalogs.errors import CatalogError, StoreError
from catalogs.load import load
from catalogs.versions import CURRENT, GENERATIONS, Store, name_of, sequence
from catalogs.writer import MANIFEST

LOCK = "lock"
_ASIDE = ".new-"


@dataclass(frozen=True, slots=True)
class Content:
    """The files of a version, complete: tables, manifest, report."""

    files: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """The checksum of the manifest, which holds those of all tables."""
        return hashlib.sha256(self.files[MANIFEST]).hexdigest()


@contextmanager
def writing(store: Store, wait_s: float = 10.0) -> Iterator[None]:
    """Hold the store for writing.

    Raises:
        StoreError: another program writes to it, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    try:
        store.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(store.root / LOCK, timeout=wait_s)
        lock.acquire()
    except Timeout:
        raise StoreError(
            f"{store.root}: another refresh, import or rollback is writing here; try again later"
        ) from None
    except OSError as error:
        raise StoreError(f"{store.root}: cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def publish(store: Store, content: Content, now: datetime, at: Step = no_step) -> str:
    """Make a version the one that holds, and give its name; to be called inside `writing`.

    Raises:
        StoreError: the disk is full or fails; the version that held before still does.
        CatalogError: what was written cannot be read back as a catalog.
    """
    name = name_of(_next_number(store), now, content.sha256)
    try:
        _remove_left_overs(store, at)
        _write(store, name, content, at)
        at("prune")
        prune(store)
    except OSError as error:
        raise StoreError(
            f"{store.root}: version {name} was not published: {error.strerror}"
        ) from error
    return name


def point_to(store: Store, name: str) -> None:
    """Let a version hold."""
    replace(store.root / CURRENT, f"{name}\n".encode())


def prune(store: Store) -> None:
    """Remove all but the newest versions; the one that holds always stays."""
    held = store.held()
    old = store.names()[:-GENERATIONS]
    for name in old:
        if name != held:
            _remove(store.path(name))


def roll_back(store: Store, to: str | None = None) -> str:
    """Let an earlier version hold again, by default the last good one before; give its name.

    Raises:
        StoreError: there is no such version.
        CatalogError: the version named is damaged.
    """
    with writing(store):
        if to is None:
            to = _last_good_before(store)
        elif to not in store.names():
            raise StoreError(f"{store.root}: no version {to!r}; recommend catalog status lists all")
        check(store, to)
        try:
            point_to(store, to)
        except OSError as error:
            raise StoreError(f"{store.root}: not rolled back: {error.strerror}") from error
    return to


def check(store: Store, name: str) -> None:
    """Refuse a version that readers would pass over.

    Raises:
        CatalogError: it is damaged.
    """
    store.manifest(name)
    load(store.path(name))


def _last_good_before(store: Store) -> str:
    held = store.held()
    earlier = [n for n in store.names() if held is None or sequence(n) < sequence(held)]
    for name in reversed(earlier):
        with suppress(CatalogError):
            check(store, name)
            return name
    which = "good version" if earlier else "version"
    raise StoreError(f"{store.root}: no {which} before {held or 'the snapshot'}")


def _next_number(store: Store) -> int:
    held = store.held()
    return max(map(sequence, [*store.names(), *([held] if held else [])]), default=0) + 1


def _write(store: Store, name: str, content: Content, at: Step) -> None:
    aside = store.folder / f"{_ASIDE}{name}"
    try:
        at("folder")
        aside.mkdir()
        for file in sorted(content.files, key=lambda each: (each == MANIFEST, each)):
            at(f"file {file}")
            write_new(aside / file, content.files[file])
        at("synced")
        sync_folder(aside)
        at("read back")
        load(aside)
        # Everything that needs room on the disk comes before the version is seen.
        at("pointer")
        pointer = prepare(store.root / CURRENT, f"{name}\n".encode())
        at("rename")
        os.rename(aside, store.path(name))
        sync_folder(store.folder)
        at("swap")
        os.replace(pointer, store.root / CURRENT)
        sync_folder(store.root)
        at("published")
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # nothing, unless a step failed


def _remove_left_overs(store: Store, at: Step) -> None:
    """Remove what a writer left that was stopped."""
    at("clean")
    for path in store.folder.glob(f"{_ASIDE}*"):
        shutil.rmtree(path, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Take a version out of sight in one step before its files go."""
    aside = folder.with_name(f"{_ASIDE}{folder.name}")
    os.rename(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)
