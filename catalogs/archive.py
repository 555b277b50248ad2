"""Exports a version to others and imports theirs: a folder, a tar or a zip file, with checksums.

The manifest holds the checksum of every file; `SHA256SUMS` holds that of the manifest, in the
form of `sha256sum -c`. Checksums next to the files protect from truncation, not from an attacker
who can change both.
"""

import bz2
import hashlib
import io
import json
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from recommender.catalogs import MANIFEST
from recommender.catalogs.bounds import read_at_most
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError, StoreError
from recommender.catalogs.files import gzipped, replace_file, sync_folder, write_new
from recommender.catalogs.load import load
from recommender.catalogs.pin import SIGNATURE, SUCCESSORS
from recommender.catalogs.refresh.draft import Draft, serialize_version, start_draft
from recommender.catalogs.registry import NAMES
from recommender.catalogs.store import (
    REPORT,
    FetchTime,
    Store,
    VersionFiles,
    check,
    fetch_times_of,
    newest_good,
    next_number,
    publish,
    write_lock,
)
from recommender.catalogs.tables import TABLES
from recommender.catalogs.validation import lost_offers, publication_problems

SUMS = "SHA256SUMS"
MAX_BYTES = 64_000_000  # unpacked and packed; a real version has 1 MB (2026-11)
_MAX_ENTRIES = 100
_HEADERS = 4  # of one file, at most: its name, that of a link, attributes, and its own
_MAX_HEADER = 100_000  # bytes
_LONG_TYPES = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
_WINDOW_BYTES = 100_000_000  # that unpacking xz may keep; -9 needs 65 MB
_CENTRAL_ENTRY = b"PK\x01\x02"  # begins the record of each file in a zip archive
_NAME = "name a file or folder that recommend catalog export wrote"
FILES = frozenset(
    {MANIFEST, REPORT, SUMS, SIGNATURE, SUCCESSORS, "NOTICE"}
    | {table.file for table in TABLES.values()}
    | {TABLES["offers"].part(name) for name in NAMES}
)


def export(store: Store, name: str, out: Path, more: Mapping[str, bytes] | None = None) -> Path:
    """Write a version, and `more` files with it, as OUT.tar.gz, OUT.zip, or into a new folder.

    Raises:
        CatalogError: the version is damaged, OUT exists already, or was not written.
    """
    folder = store.path(name)
    check(store, name)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())} | dict(more or {})
    files[SUMS] = "".join(
        f"{hashlib.sha256(files[each]).hexdigest()}  {each}\n" for each in sorted(files)
    ).encode()
    if os.path.lexists(out):  # a link as well, wherever it leads
        raise StoreError(f"{out}: exists already; name another file or remove it")
    try:
        if out.suffix == ".zip":
            replace_file(out, _zip(files, name))
        elif out.name.endswith((".tar", ".tar.gz", ".tgz")):
            packed = _tar(files, name)
            replace_file(out, packed if out.suffix == ".tar" else gzipped(packed))
        else:
            _write_folder(files, out)
    except OSError as error:
        raise StoreError(f"{out}: cannot be written: {error.strerror}") from error
    return out


def _zip(files: Mapping[str, bytes], name: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for each in sorted(files):
            archive.writestr(zipfile.ZipInfo(f"{name}/{each}"), files[each])
    return made.getvalue()


def _tar(files: Mapping[str, bytes], name: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:") as archive:
        for each in sorted(files):
            entry = tarfile.TarInfo(f"{name}/{each}")
            entry.size = len(files[each])
            archive.addfile(entry, io.BytesIO(files[each]))
    return made.getvalue()


def _write_folder(files: Mapping[str, bytes], out: Path) -> None:
    """Write a new folder in one step, or none: half a catalog would be in the way of the next."""
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(f".new-{os.urandom(8).hex()}")
    try:
        new.mkdir()
        for each in files:
            write_new(new / each, files[each])
        sync_folder(new)
        os.rename(new, out)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    with suppress(OSError):  # it is there
        sync_folder(out.parent)


def import_into(store: Store, source: Path, base: Path, now: datetime) -> tuple[str, list[str]]:
    """Publish a foreign version here; return its name and the warnings of the checks.

    Schema, checksums and hard guards refuse; the statistical guards only warn. Its offers are
    flagged "imported", so that every plan that uses them says so.

    Raises:
        CatalogError: the file is no such version, or the store cannot be written.
    """
    with write_lock(store):
        temporary = store.folder / ".new-import"
        files = read_files(source)
        try:
            _unpack(files, temporary)
            catalog = load(temporary)
            fetch_times = fetch_times_of(json.loads(files[MANIFEST]))
        except OSError as error:
            raise StoreError(f"{store.root}: cannot be written: {error.strerror}") from error
        finally:
            _discard(temporary)
        return _imported(store, catalog, files[MANIFEST], str(source), base, now, fetch_times)


def import_published(
    store: Store, catalog: Catalog, manifest: bytes, address: str, base: Path, now: datetime
) -> tuple[str, list[str]]:
    """Publish here what an address serves, whose manifest was verified; "" if it is held already.

    Raises:
        CatalogError: as for `import_into`.
    """
    held = store.current_or_newest()
    digest = hashlib.sha256(manifest).hexdigest()
    if held is not None and store.report(held).get("manifest") == digest:
        return "", []
    with write_lock(store):
        fetch_times = fetch_times_of(json.loads(manifest))
        return _imported(store, catalog, manifest, address, base, now, fetch_times)


def _imported(
    store: Store,
    catalog: Catalog,
    manifest: bytes,
    source: str,
    base: Path,
    now: datetime,
    fetch_times: tuple[FetchTime, ...],
) -> tuple[str, list[str]]:
    held = newest_good(store)
    problems = list(lost_offers(catalog, held.catalog if held.name else load(base)))
    if problems:
        raise CatalogError(
            f"{source}: more than half of the offers would be lost ({'; '.join(problems)}); "
            "plan with it as it is: --catalog, or take the versions here away first"
        )
    origin = {"source": source, "manifest": hashlib.sha256(manifest).hexdigest()}
    made = _content(catalog, fetch_times, base, now, next_number(store), origin)
    return publish(store, made, now), publication_problems(catalog)


def _content(
    catalog: Catalog,
    fetch_times: tuple[FetchTime, ...],
    base_folder: Path,
    now: datetime,
    sequence: int,
    origin: Mapping[str, str],
) -> VersionFiles:
    base = load(base_folder)
    draft = start_draft(base, catalog, fetch_times)
    offers = {
        name: tuple(replace(o, flag=o.flag or "imported") for o in rows)
        for name, rows in draft.offers.items()
    }
    ages = tuple(replace(f, reason="imported", by_refresh=False) for f in draft.fetch_times)
    report = {"schema": "recommend.catalog-import/v1", "version": catalog.version, **origin}
    made = Draft(offers, draft.types, draft.sources, ages)
    return serialize_version(base_folder, base, made, report, now, sequence)


def read_files(source: Path) -> dict[str, bytes]:
    """Read the files of a folder or an archive, and refuse any that a version does not have.

    Raises:
        CatalogError: it cannot be read, is too large, or holds anything else.
    """
    if not source.exists():  # else tarfile would say so in the words of the system
        raise CatalogError(f"{source}: no such file or folder")
    try:
        if source.is_dir():
            found = {path.name: path.read_bytes() for path in _plain_files(source)}
        elif zipfile.is_zipfile(content := _content_of(source)):
            found = _from_zip(source, content)
        else:
            found = _from_tar(source, content)
    except _BROKEN as error:
        # tarfile tells of every compression that it tried, one line each
        reason = "" if "\n" in str(error) else f" ({error})"
        raise CatalogError(f"{source}: not a catalog archive{reason}; {_NAME}") from error
    if MANIFEST not in found:
        raise CatalogError(f"{source}: holds no {MANIFEST}; {_NAME}")
    _check_sums(source, found)
    return found


_BROKEN = (
    OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,  # a zip of a method that Python lacks
    RuntimeError,  # an encrypted one
)  # fmt: skip


def _content_of(source: Path) -> io.BytesIO:
    """The bytes of a plain file; a device would never end."""
    if not source.is_file():
        raise CatalogError(f"{source}: no plain file; {_NAME}")
    return io.BytesIO(read_at_most(source, MAX_BYTES))


def _plain_files(folder: Path) -> list[Path]:
    paths = [path for path in folder.iterdir() if path.is_file()]
    _check_names(folder, [(path.name, path.stat().st_size) for path in paths])
    return paths


def _from_zip(source: Path, content: io.BytesIO) -> dict[str, bytes]:
    if content.getvalue().count(_CENTRAL_ENTRY) > _MAX_ENTRIES:
        raise CatalogError(f"{source}: holds more than {_MAX_ENTRIES} files; {_NAME}")
    with zipfile.ZipFile(content) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        _check_names(source, [(_base_name(source, e.filename), e.file_size) for e in entries])
        return {_base_name(source, e.filename): _limited(archive.open(e)) for e in entries}


def _from_tar(source: Path, content: io.BytesIO) -> dict[str, bytes]:
    # Unpacked first: tarfile would believe any size that a header inside claims.
    unpacked = _unpacked(source, content.getvalue())
    _refuse_long_headers(source, unpacked)
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as tar:
        entries = list(islice((entry for entry in tar if not entry.isdir()), _MAX_ENTRIES + 1))
        if len(entries) > _MAX_ENTRIES:
            raise CatalogError(f"{source}: holds more than {_MAX_ENTRIES} files; {_NAME}")
        _check_names(source, [(_base_name(source, e.name), e.size) for e in entries])
        found = {}
        for entry in entries:
            name = _base_name(source, entry.name)
            file = tar.extractfile(entry) if entry.isfile() else None
            if file is None:
                raise CatalogError(f"{source}: {name} is no plain file")
            found[name] = _limited(file)
    return found


def _refuse_long_headers(source: Path, unpacked: bytes) -> None:
    """Names and attributes of files have headers of their own, which tarfile reads slowly."""
    place = 0
    for _ in range(_HEADERS * _MAX_ENTRIES):
        try:
            block = unpacked[place : place + tarfile.BLOCKSIZE]
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError:  # the end, or damaged: tarfile says which
            return
        if header.type in _LONG_TYPES and header.size > _MAX_HEADER:
            raise CatalogError(f"{source}: a header of {header.size:,} bytes; {_NAME}")
        blocks = -(-max(0, header.size) // tarfile.BLOCKSIZE)
        place += tarfile.BLOCKSIZE * (1 + blocks)
    raise CatalogError(f"{source}: holds more than {_MAX_ENTRIES} files; {_NAME}")


def _unpacked(source: Path, content: bytes) -> bytes:
    """What a tar file holds unpacked, of any compression, no more of it than allowed."""
    if content[:2] == b"\x1f\x8b":
        found = zlib.decompressobj(wbits=31).decompress(content, MAX_BYTES + 1)
    elif content[:3] == b"BZh":
        found = bz2.BZ2Decompressor().decompress(content, MAX_BYTES + 1)
    elif content[:6] == b"\xfd7zXZ\x00":
        unpack = lzma.LZMADecompressor(memlimit=_WINDOW_BYTES)
        found = unpack.decompress(content, MAX_BYTES + 1)
    else:
        return content
    if len(found) > MAX_BYTES:
        raise CatalogError(f"{source}: unpacks to more than {MAX_BYTES:,} bytes")
    return found


def _base_name(source: Path, name: str) -> str:
    """The name of a file at the top or in one folder; nothing that leads elsewhere."""
    parts = name.split("/")
    if len(parts) > 2 or parts[0] in ("", ".."):
        raise CatalogError(f"{source}: holds {name!r}, which no catalog has")
    return parts[-1]


def _check_names(source: Path, files: Sequence[tuple[str, int]]) -> None:
    """Only files that a version has, each once, and together not too large."""
    for name, _ in files:
        if name not in FILES:
            raise CatalogError(f"{source}: holds {name!r}, which no catalog has; {_NAME}")
    if len({name for name, _ in files}) < len(files):
        raise CatalogError(f"{source}: holds a file twice")
    if sum(size for _, size in files) > MAX_BYTES:
        raise CatalogError(f"{source}: unpacks to more than {MAX_BYTES:,} bytes")


def _limited(file: Any) -> bytes:
    content: bytes = file.read(MAX_BYTES)
    return content


def _check_sums(source: Path, files: Mapping[str, bytes]) -> None:
    for line in files.get(SUMS, b"").decode("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        if name not in files or hashlib.sha256(files[name]).hexdigest() != digest:
            raise CatalogError(f"{source}: {name!r} is missing or differs from {SUMS}")


def _unpack(files: Mapping[str, bytes], folder: Path) -> None:
    _discard(folder)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
