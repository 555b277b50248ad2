"""Reads a catalog over HTTPS: the manifest first, then every file by its checksum.

The requirement of the address (`pin.py`) applies to every read: to the server's response, to the
cached copy, and offline.

A copy is kept in the user's cache folder under the checksum of the manifest. If the server does not
answer, the last copy is used with a warning. Checksums protect from truncation and from
half-written uploads, not from those who can change the manifest. So serve it from a place that
only the right people can write to, or require a checksum or a signature in the address.
"""

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit

from recommender.catalogs import MANIFEST
from recommender.catalogs.archive import FILES, MAX_BYTES
from recommender.catalogs.bounds import MAX_MANIFEST, read_plain_file
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.fetch import (
    Get,
    Notify,
    check_address,
    get_within,
    ignore_message,
    shown_address,
)
from recommender.catalogs.files import parse_json, replace_file, write_new
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import load
from recommender.catalogs.pin import (
    SIGNATURE,
    SUCCESSORS,
    Pin,
    Seen,
    Served,
    Signers,
    default_signers,
    pinned,
)
from recommender.catalogs.tables import TABLES

TOTAL_S = 120.0  # for all files of a catalog, 1 MB together (2026-11)
_MAX_SIGNATURE = 10_000
_LAST, _MAX_POINTER = "LAST", 1_000
_CHECKSUM = re.compile("[0-9a-f]{64}")
_PREFIX, _FILLED_S = ".new-", 3600.0  # what is older was left behind


@dataclass(frozen=True, slots=True)
class Remote:
    """A catalog read from an address, and warnings about the reading."""

    catalog: Catalog
    notes: tuple[str, ...]
    manifest: bytes = b""  # as served now; nothing where the last copy is used


@dataclass(frozen=True, slots=True)
class _Demand:
    """What holds for every manifest that is read for an address."""

    pin: Pin
    seen: Seen
    now: datetime

    def check(self, served: Served) -> Seen:
        return self.pin.check(served, self.seen, self.now)


def default_cache() -> Path:
    """The folder of cached copies."""
    from platformdirs import user_cache_path

    return user_cache_path("recommend") / "catalogs"


def load_remote(
    address: str,
    cache: Path,
    get: Get | None = None,
    signers: Path | None = None,
    now: datetime | None = None,
    notify: Notify = ignore_message,
) -> Remote:
    """Load the catalog of https://…/manifest.json, reporting progress if it is slow.

    Raises:
        CatalogError: the address is not allowed, what it serves is no catalog or not the one
            demanded, or the server does not answer and no copy is kept.
    """
    check_address(address)
    plain, pin = pinned(address)
    if not urlsplit(plain).path.endswith(f"/{MANIFEST}"):
        raise CatalogError(f"{shown_address(plain)}: name the manifest: https://…/{MANIFEST}")
    get = get or get_within(TOTAL_S, notify)
    # A copy that was read without a checksum or key is none for an address with one.
    kept = cache / hashlib.sha256(address.encode()).hexdigest()[:16]
    known = Signers(signers or default_signers())
    demand = _Demand(pin, known.seen(pin), now or datetime.now(UTC))
    try:
        served = _served(plain, pin, get)
        newest = demand.check(served)
        folder = kept / served.sha256
        catalog = _kept_copy(folder, served) or _fill(plain, served, folder, get)
    except (OSError, CatalogError) as error:  # no answer, or a half-written upload
        return _last_copy(plain, kept, demand, error)
    if os.path.isdir(folder):  # also of a disk that fails: then there is none
        _remember(kept, folder)
    return Remote(catalog, known.remember(pin, newest), served.manifest)


def _served(address: str, pin: Pin, get: Get) -> Served:
    manifest = get(address, MAX_MANIFEST)
    if not pin.ed25519:
        return Served(manifest)
    signature = get(_sibling(address, SIGNATURE), _MAX_SIGNATURE)
    try:
        successors = get(_sibling(address, SUCCESSORS), _MAX_SIGNATURE)
    except OSError:  # most keys have none
        successors = b""
    return Served(manifest, signature, successors)


def _read_copy(folder: Path) -> Served:
    """The manifest that is kept, and what proves whose it is."""

    def proof(name: str) -> bytes:
        try:
            return read_plain_file(folder / name, _MAX_SIGNATURE)
        except FileNotFoundError:
            return b""

    try:
        manifest = read_plain_file(folder / MANIFEST, MAX_MANIFEST)
        served = Served(manifest, proof(SIGNATURE), proof(SUCCESSORS))
    except ValueError as error:
        raise CatalogError(f"{folder}: {error}") from error
    if served.sha256 != folder.name:
        raise CatalogError(f"{folder}: its manifest has been changed")
    return served


def _kept_copy(folder: Path, served: Served) -> Catalog | None:
    """What is kept of this manifest; a damaged copy is got again."""
    try:
        kept = _read_copy(folder)
        if kept != served:  # signed again
            with suppress(OSError):
                _write_proofs(folder, served)
        return load(folder)
    except (OSError, CatalogError):  # it stays until another is complete
        return None


def _write_proofs(folder: Path, served: Served) -> None:
    for name, content in ((SIGNATURE, served.signature), (SUCCESSORS, served.successors)):
        if content:
            replace_file(folder / name, content)


def _fill(address: str, served: Served, folder: Path, get: Get) -> Catalog:
    """Get every file that the manifest names, and keep them in one step.

    Each program writes a folder of its own: several may read the same address at once.
    """
    files = {
        name: get(_sibling(address, name), MAX_BYTES) for name in _files(address, served.manifest)
    }
    try:
        temporary = _new_cache_folder(folder)
        try:
            for name, content in (*files.items(), (MANIFEST, served.manifest)):
                write_new(temporary / name, content)
            _write_proofs(temporary, served)
            catalog = load(temporary)
            with suppress(OSError):  # another program was faster, or no copy can be kept
                if temporary.parent == folder.parent:
                    shutil.rmtree(folder, ignore_errors=True)  # a damaged one
                os.rename(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise CatalogError(f"{folder}: cannot be written: {error.strerror}") from error
    return catalog


def _new_cache_folder(folder: Path) -> Path:
    """A new folder in the cache; elsewhere if nothing can be written there, so nothing is kept."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(prefix=_PREFIX, dir=folder.parent))
    except OSError:
        return Path(mkdtemp())


def _sibling(address: str, name: str) -> str:
    """The address of a file in the manifest's folder, with the same query (signed addresses)."""
    query = urlsplit(address).query
    return urljoin(address, name) + (f"?{query}" if query else "")


def _files(address: str, manifest: bytes) -> list[str]:
    try:
        tables = parse_json(manifest)["tables"]
        names = []
        for name, entry in sorted(tables.items()):
            parts = entry.get("parts")
            table = TABLES[name]
            names += [table.file] if parts is None else [table.part(each) for each in parts]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(f"{shown_address(address)}: not a manifest: {error}") from error
    if not FILES.issuperset(names):
        raise CatalogError(
            f"{shown_address(address)}: the manifest names files that no catalog has"
        )
    return names


def _remember(kept: Path, folder: Path) -> None:
    """Keep this copy for days without a connection, and no other."""
    try:
        replace_file(kept / _LAST, folder.name.encode())
        for path in kept.iterdir():
            if path.is_dir() and path != folder and not _is_being_filled(path):
                shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return  # a full disk, or another program at work: costs the copy, not the answer


def _is_being_filled(path: Path) -> bool:
    return path.name.startswith(_PREFIX) and time.time() - path.stat().st_mtime < _FILLED_S


def _last_copy(address: str, kept: Path, demand: _Demand, error: OSError | CatalogError) -> Remote:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(error, HTTPError):
        reason = f"HTTP {error.code}"
    message = f"{shown_address(address)}: cannot be read ({reason})"
    try:
        name = read_plain_file(kept / _LAST, _MAX_POINTER).decode().strip()
    except (OSError, ValueError):
        raise CatalogError(f"{message}, no copy is kept") from error
    try:
        if not _CHECKSUM.fullmatch(name):
            raise CatalogError(f"{kept / _LAST} names no copy")
        demand.check(_read_copy(kept / name))
        catalog = load(kept / name)
    except (OSError, CatalogError) as refused:
        raise CatalogError(
            f"{message}, and the copy that is kept is not used: {refused}"
        ) from error
    note = f"{shown_address(address)} cannot be read ({reason}); its last copy is used"
    return Remote(catalog, (note,))
