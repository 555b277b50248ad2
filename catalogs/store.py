"""The store of catalog versions: which exist, which is current, and how one is published.

A store is a folder:

    CURRENT                         one line, the name of the version that holds
    versions/000042-20261121T020304Z-1f0c2a9b/   a catalog folder that never changes
    history/date=2026-11-21/…       prices of every version, as Parquet
    last_attempt.json               the report of the last refresh, good or not
    canaries.csv                    well-known prices that a person has updated (optional)

A name begins with a sequence number, so that order never depends on a clock. Readers take no
lock: a version is complete before `CURRENT` names it, and is kept for 13 more versions.

One writer at a time holds the lock of the store; the operating system frees it when the writer
dies. A writer that is stopped at any moment leaves the version that held, and at most a folder
that is never read and that the next writer removes.
"""

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.catalogs import MANIFEST
from recommender.catalogs.bounds import MAX_MANIFEST, read_plain_file
from recommender.catalogs.errors import CatalogError, StoreError
from recommender.catalogs.files import (
    Step,
    no_step,
    parse_json,
    prepare,
    remove_left_overs,
    replace_file,
    sync_folder,
    write_new,
)
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import MAX_BYTES, load

if TYPE_CHECKING:
    from recommender.catalogs.catalog import Catalog


CURRENT = "CURRENT"
VERSIONS = "versions"
REPORT = "report.json"
LAST_ATTEMPT = "last_attempt.json"
GENERATIONS = 14
NIGHTS = 31  # the guards of a refresh look back 30
_NAME = re.compile(r"\d{6,}-\d{8}T\d{6}Z-[0-9a-f]{8}")
_READS = 3  # a reader that loses its version to the pruning looks again
LOCK = "lock"
_NEW_PREFIX = ".new-"
_MAX_POINTER = 1_000
_LOG = logging.getLogger("recommender.catalogs")


def default_root() -> Path:
    """The store of this user."""
    from platformdirs import user_data_path

    return user_data_path("recommend") / "catalog"


@dataclass(frozen=True, slots=True)
class FetchTime:
    """When a provider's offers of a market (in a region) were fetched, by its own clock."""

    provider: str
    market: str
    region: str  # "" for all regions that have no row of their own
    fetched_at: str  # ISO 8601 UTC, to the second
    reason: str  # why they are older than the version; "" for those of the version
    by_refresh: bool  # else they are of the shipped snapshot or imported


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of catalog versions."""

    root: Path

    @property
    def folder(self) -> Path:
        """The folder of the versions."""
        return self.root / VERSIONS

    def path(self, name: str) -> Path:
        """The folder of a version."""
        return self.folder / name

    def names(self) -> tuple[str, ...]:
        """All versions, oldest first."""
        try:
            found = [each.name for each in self.folder.iterdir() if _NAME.fullmatch(each.name)]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot be read: {error.strerror}") from error
        return tuple(sorted(found, key=sequence))

    def current(self) -> str | None:
        """The name of the current version; none in an empty store.

        Raises:
            StoreError: the pointer is damaged.
        """
        pointer = self.root / CURRENT
        try:
            name = read_plain_file(pointer, _MAX_POINTER).decode().strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{pointer}: cannot be read: {error}") from error
        if not _NAME.fullmatch(name):
            raise StoreError(f"{pointer}: names no version")
        return name

    def current_or_newest(self) -> str | None:
        """The current version, or the newest if the pointer is damaged or missing."""
        try:
            held = self.current()
        except StoreError:
            held = None
        return held or max(self.names(), key=sequence, default=None)

    def manifest(self, name: str) -> dict[str, Any]:
        """The manifest of a version; the version's name contains its checksum.

        Raises:
            StoreError: there is none, or it is damaged.
        """
        path = self.path(name) / MANIFEST
        try:
            content = read_plain_file(path, MAX_MANIFEST)
            manifest = parse_json(content)
        except (OSError, ValueError) as error:
            raise StoreError(f"{path}: not a manifest: {error}") from error
        if not isinstance(manifest, dict):
            raise StoreError(f"{path}: not a manifest")
        if hashlib.sha256(content).hexdigest()[:8] != name[-8:]:
            raise StoreError(f"{path}: its checksum is not the one that the version is named by")
        return manifest

    def fetch_times(self, name: str) -> tuple[FetchTime, ...]:
        """When the offers of a version were fetched."""
        return fetch_times_of(self.manifest(name))

    def report(self, name: str) -> dict[str, Any]:
        """The report of the refresh that made a version; empty if there is none."""
        return _json(self.path(name) / REPORT)

    def last_attempt(self) -> dict[str, Any]:
        """The report of the last refresh, whether it published or not; empty without one."""
        return _json(self.root / LAST_ATTEMPT)


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """The current catalog, its origin, and versions that could not be used."""

    catalog: "Catalog"
    name: str  # of the version; "" for the shipped snapshot
    skipped: tuple[str, ...] = ()


def sequence(name: str) -> int:
    """The number that a version's name begins with."""
    return int(name.partition("-")[0])


def day_of(name: str) -> date:
    """The day on which a version was published."""
    return datetime.strptime(name.split("-")[1], "%Y%m%dT%H%M%SZ").date()


def name_of(number: int, published: datetime, sha256: str) -> str:
    """Name a version by its place in the order, its time and its content."""
    return f"{number:06}-{published.astimezone(UTC):%Y%m%dT%H%M%SZ}-{sha256[:8]}"


def fetch_times_of(manifest: Mapping[str, Any]) -> tuple[FetchTime, ...]:
    """Read from a manifest when offers were fetched."""
    try:
        found = tuple(FetchTime(**row) for row in manifest.get("fetched", ()))
        for each in found:
            datetime.fromisoformat(each.fetched_at)
            if not all(isinstance(w, str) for w in (each.provider, each.market, each.region)):
                raise ValueError("a name is no text")
        return found
    except (TypeError, ValueError) as error:
        raise StoreError(f"the manifest's list 'fetched' is damaged: {error}") from error


def newest_good(store: Store) -> LoadedVersion:
    """Load the current version; if it is damaged the previous one, then the snapshot."""
    # The name alone of a version needs no table.
    from recommender.catalogs.load import load, load_snapshot

    skipped: list[str] = []
    try:
        for _ in range(_READS):
            skipped, held = [], store.current_or_newest()
            for name in _candidates(store, skipped):
                try:
                    store.manifest(name)
                    return LoadedVersion(load(store.path(name)), name, tuple(skipped))
                except CatalogError as error:
                    skipped.append(f"version {name} passed over: {error}")
            if store.current_or_newest() == held:  # else a writer has replaced what was to be read
                break
    except StoreError as error:
        skipped.append(str(error))
    return LoadedVersion(load_snapshot(), "", tuple(skipped))


def _candidates(store: Store, skipped: list[str]) -> Iterator[str]:
    """The version that holds, then those before it; after a rollback no later one."""
    try:
        store.current()
    except StoreError as error:
        skipped.append(f"{error}; the newest version is used")
    held = store.current_or_newest()
    if held is not None:
        yield held
        earlier = [name for name in store.names() if sequence(name) < sequence(held)]
        yield from reversed(earlier)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = parse_json(read_plain_file(path, MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files of a version, complete: tables, manifest, report."""

    files: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """The checksum of the manifest, which contains those of all tables."""
        return hashlib.sha256(self.files[MANIFEST]).hexdigest()


@contextmanager
def write_lock(store: Store, wait_s: float = 10.0) -> Iterator[None]:
    """Lock the store for writing.

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
        with suppress(OSError):  # the system frees it at the latest when this program ends
            lock.release()


def publish(store: Store, content: VersionFiles, now: datetime, at: Step = no_step) -> str:
    """Make a version current, and return its name; call it inside `write_lock`.

    Raises:
        StoreError: the disk is full or fails; the version that held before still does.
        CatalogError: what was written cannot be read back as a catalog.
    """
    name = name_of(next_number(store), now, content.sha256)
    try:
        _remove_left_overs(store, at)
        _write(store, name, content, at)
    except OSError as error:
        if not _is_current(store, name, error):  # a failure after the pointer's change is none
            raise StoreError(
                f"{store.root}: version {name} was not published: {error.strerror}"
            ) from error
        _LOG.warning("%s: version %s is published, but: %s", store.root, name, error.strerror)
    at("prune")
    try:
        prune(store)
    except (OSError, StoreError) as error:
        _LOG.warning("%s: old versions were not removed: %s", store.root, error)
    return name


def _is_current(store: Store, name: str, error: OSError) -> bool:
    """Whether the pointer names a version although an act failed.

    Raises:
        StoreError: nobody knows: on a disk where nothing is found, neither is the pointer.
    """
    held = store.current()
    if held is None and isinstance(error, FileNotFoundError):
        raise StoreError(f"{store.root / CURRENT}: cannot be read: {error.strerror}") from error
    return held == name


def set_current(store: Store, name: str) -> None:
    """Make a version current."""
    replace_file(store.root / CURRENT, f"{name}\n".encode())


def prune(store: Store) -> None:
    """Remove all but the newest versions, and the last of each day of a month.

    The current one always stays.
    """
    names = store.names()
    last_of_day = {day_of(name): name for name in names}
    month = sorted(last_of_day)[-NIGHTS:]
    kept = {store.current_or_newest(), *names[-GENERATIONS:], *(last_of_day[day] for day in month)}
    for name in names:
        if name not in kept:
            _remove(store.path(name))


def roll_back(store: Store, to: str | None = None) -> str:
    """Make an earlier version current, by default the last good one before; return its name.

    Raises:
        StoreError: there is no such version.
        CatalogError: the version named is damaged.
    """
    with write_lock(store):
        if to is None:
            to = _last_good_before(store)
        elif to not in store.names():
            raise StoreError(f"{store.root}: no version {to!r}; recommend catalog status lists all")
        check(store, to)
        try:
            set_current(store, to)
        except OSError as error:
            if not _is_current(store, to, error):
                raise StoreError(f"{store.root}: not rolled back: {error.strerror}") from error
            _LOG.warning("%s: version %s holds, but: %s", store.root, to, error.strerror)
    return to


def check(store: Store, name: str) -> None:
    """Refuse a version that readers would skip.

    Raises:
        CatalogError: it is damaged.
    """
    store.manifest(name)
    load(store.path(name))


def _last_good_before(store: Store) -> str:
    held = store.current_or_newest()
    earlier = [n for n in store.names() if held is None or sequence(n) < sequence(held)]
    for name in reversed(earlier):
        with suppress(CatalogError):
            check(store, name)
            return name
    which = "good version" if earlier else "version"
    raise StoreError(f"{store.root}: no {which} before {held or 'the snapshot'}")


def next_number(store: Store) -> int:
    """The sequence number of the next version."""
    held = store.current_or_newest()
    return max(map(sequence, [*store.names(), *([held] if held else [])]), default=0) + 1


def _write(store: Store, name: str, content: VersionFiles, at: Step) -> None:
    new_folder = store.folder / f"{_NEW_PREFIX}{name}"
    try:
        at("folder")
        new_folder.mkdir()
        for file in sorted(content.files, key=lambda each: (each == MANIFEST, each)):
            at(f"file {file}")
            write_new(new_folder / file, content.files[file])
        at("synced")
        sync_folder(new_folder)
        at("read back")
        load(new_folder)
        # Everything that needs room on the disk comes before the version is seen.
        at("pointer")
        pointer = prepare(store.root / CURRENT, f"{name}\n".encode())
        at("rename")
        os.rename(new_folder, store.path(name))
        sync_folder(store.folder)
        at("swap")
        os.replace(pointer, store.root / CURRENT)
        sync_folder(store.root)
        at("published")
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)  # nothing, unless a step failed


def _remove_left_overs(store: Store, at: Step) -> None:
    """Remove what a writer left that was stopped."""
    at("clean")
    for path in store.folder.glob(f"{_NEW_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)
    remove_left_overs(store.root)


def _remove(folder: Path) -> None:
    """Take a version out of sight in one step before its files go."""
    new_folder = folder.with_name(f"{_NEW_PREFIX}{folder.name}")
    os.rename(folder, new_folder)
    shutil.rmtree(new_folder, ignore_errors=True)
