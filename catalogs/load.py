"""Reads a catalog folder, and checks all of it before any figure is used."""

import csv
import gzip
import hashlib
import io
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from recommender.catalogs import MANIFEST
from recommender.catalogs.bounds import MAX_MANIFEST, check_table, read_plain_file
from recommender.catalogs.catalog import Catalog, Offers
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.files import parse_json
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import NAMES
from recommender.catalogs.tables import REQUIRED, SCHEMA_VERSION, TABLES, Table, columns_of
from recommender.catalogs.validation import hard_problems

SNAPSHOT = Path(__file__).parent / "snapshot"
MAX_BYTES = 64_000_000  # of one file; the largest real one has 1 MB (2026-11)
_SHOWN = 5  # problems named in one message

Columns = dict[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Raw:
    """A catalog folder whose files were checked one by one, but not yet together."""

    folder: Path
    tables: Mapping[str, Columns]
    sha256: str


@cache
def load_snapshot() -> Catalog:
    """Load the snapshot that ships with the package, once per process."""
    return _checked(_shipped(), None)


def load(path: Path) -> Catalog:
    """Load a catalog from its folder or its manifest.

    A catalog of one's own may contain only offers, instance types, GPUs and achieved speeds; the
    other tables are then those of the shipped snapshot.
    """
    raw = _read_folder(path.parent if path.name == MANIFEST else path)
    missing = [name for name in REQUIRED if name not in raw.tables]
    if missing:
        raise CatalogError(f"{raw.folder}: the manifest lists no table {', '.join(missing)}")
    complete = raw.tables.keys() >= TABLES.keys()
    return _checked(raw, None if complete else _shipped())


@cache
def _shipped() -> Raw:
    return _read_folder(SNAPSHOT)


def _checked(raw: Raw, shipped: Raw | None) -> Catalog:
    catalog = _catalog(raw, shipped)
    problems = [*_unresolved_sources(raw), *hard_problems(catalog)]
    if problems:
        more = f"\nand {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        listed = "\n".join(problems[:_SHOWN])
        raise CatalogError(f"{raw.folder}: not a usable catalog:\n{listed}{more}")
    return catalog


def _unresolved_sources(raw: Raw) -> list[str]:
    """Find source numbers that a catalog with its own list of sources does not list."""
    if "sources" not in raw.tables:
        return []
    listed = set(raw.tables["sources"]["source"])
    return [
        f"table {name} names source {source}, which is not listed"
        for name, columns in raw.tables.items()
        for source in sorted(set(columns["source"]) - listed)
    ]


def _read_folder(folder: Path) -> Raw:
    manifest = _manifest(folder)
    digest = hashlib.sha256()
    tables = {}
    for name, entry in sorted(manifest["tables"].items()):
        if name not in TABLES:
            raise CatalogError(f"{folder / MANIFEST}: unknown table {name!r}")
        parts = []
        for file, part in _parts(folder, TABLES[name], entry):
            content = _content(folder / file, part)
            digest.update(f"{name} {part['sha256']}\n".encode())
            parts.append(_columns(folder / file, TABLES[name], content, part.get("rows")))
        tables[name] = parts[0] if len(parts) == 1 else _joined(TABLES[name], parts)
    return Raw(folder, tables, digest.hexdigest())


def _parts(
    folder: Path, table: Table, entry: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The files of a table: one, or one for each provider."""
    parts = entry.get("parts")
    if parts is None:
        yield table.file, entry
        return
    if not isinstance(parts, dict) or not parts.keys() <= set(NAMES):
        raise CatalogError(f"{folder / MANIFEST}: table {table.name} has parts of no provider")
    for provider, part in sorted(parts.items()):
        yield table.part(provider), part


def _joined(table: Table, parts: Sequence[Columns]) -> Columns:
    return {name: [v for part in parts for v in part[name]] for name in table.columns}


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = parse_json(read_plain_file(path, MAX_MANIFEST))
    except FileNotFoundError:
        raise CatalogError(
            f"{folder}: no catalog here ({MANIFEST} is missing); name a folder that has one"
        ) from None
    except (OSError, ValueError) as error:
        raise CatalogError(f"{path}: not a manifest: {error}") from error
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if version != SCHEMA_VERSION:
        raise CatalogError(
            f"{path}: schema version {version!r}; this program reads {SCHEMA_VERSION}. "
            "Use a catalog built for it, or the program that built the catalog."
        )
    tables = manifest.get("tables")
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise CatalogError(f"{path}: lists no tables")
    return manifest


def _content(path: Path, entry: Mapping[str, Any]) -> str:
    try:
        data = read_plain_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise CatalogError(f"{path}: cannot be read: {why}") from error
    if hashlib.sha256(data).hexdigest() != entry.get("sha256"):
        raise CatalogError(
            f"{path}: sha256 differs from the manifest: truncated, changed or half-written. "
            "Install or fetch the catalog again."
        )
    try:
        if path.suffix != ".gz":
            return data.decode()
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise CatalogError(f"{path}: unpacks to more than {MAX_BYTES:,} bytes")
        return text.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CatalogError(f"{path}: not a table: {error}") from error


def _columns(path: Path, table: Table, content: str, rows: object) -> Columns:
    try:
        header, *lines = _lines(content)
        cells = list(zip(*lines, strict=True)) if lines else [()] * len(header)
    except (csv.Error, ValueError) as error:
        raise CatalogError(f"{path}: a row is broken: {error}") from error
    lacking = table.columns[len(header) :]
    if tuple(header) != table.columns[: len(header)] or not set(lacking) <= set(table.later):
        missing = sorted(set(table.columns) - set(header))
        unknown = sorted(set(header) - set(table.columns))
        raise CatalogError(
            f"{path}: wrong columns (missing: {missing}, unknown: {unknown}, "
            f"expected order: {', '.join(table.columns)})"
        )
    if len(lines) != rows:
        raise CatalogError(f"{path}: {len(lines)} rows; the manifest says {rows}")
    if len(cells) != len(header):
        raise CatalogError(f"{path}: a row is broken: {len(cells)} cells, not {len(header)}")
    found = {
        column.name: _parsed(path, column.name, column.parse, column.allowed, values)
        for column, values in zip(columns_of(table), cells, strict=False)
    }
    return found | {name: [table.later[name]] * len(lines) for name in lacking}


def _lines(content: str) -> list[list[str]]:
    check_table(content)
    if '"' in content:
        return list(csv.reader(io.StringIO(content, newline=""), strict=True))
    # Without quotes splitting gives the same in half the time.
    return [line.split(",") for line in content.removesuffix("\n").split("\n")]


def _parsed(
    path: Path,
    name: str,
    parse: Callable[[Sequence[str]], Sequence[Any]],
    allowed: frozenset[str] | None,
    cells: Sequence[str],
) -> Sequence[Any]:
    try:
        values = parse(cells)
    except ValueError as error:
        raise CatalogError(f"{path}: column {name}: {error}") from error
    if allowed is not None and not allowed.issuperset(cells):
        wrong = sorted(set(cells) - allowed)
        raise CatalogError(f"{path}: column {name}: {wrong} is none of {sorted(allowed)}")
    return values


def _rows(raw: Raw, name: str, shift: int = 0) -> list[Any]:
    columns = raw.tables.get(name)
    if columns is None:
        return []
    rows = [TABLES[name].row(*values) for values in zip(*columns.values(), strict=True)]
    return [replace(row, source=row.source + shift) for row in rows] if shift else rows


def _catalog(raw: Raw, shipped: Raw | None) -> Catalog:
    own = {name: _rows(raw, name) for name in raw.tables if name != "offers"}
    if shipped is not None:
        own = _with_shipped_tables(raw, shipped, own)
    columns = dict(raw.tables["offers"])
    columns["usd_per_hour"] = array("d", columns["usd_per_hour"])
    columns["uncertainty"] = array("d", columns["uncertainty"])
    return Catalog(
        offers=Offers(**columns),  # type: ignore[arg-type]
        instance_types=_by_key("instance_types", own["instance_types"]),
        gpus=_by_key("gpus", own["gpus"]),
        achieved=_by_key("achieved", own["achieved"]),
        sha256=raw.sha256,
        **{name: tuple(own[name]) for name in TABLES if name not in REQUIRED},
    )


def _with_shipped_tables(
    raw: Raw, shipped: Raw, own: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """Fill in the tables a catalog lacks; lent rows keep their sources under new numbers."""
    shift = max((row.source for row in own.get("sources", [])), default=0)
    added = {name: _rows(shipped, name, shift) for name in TABLES if name not in raw.tables}
    sources = [*own.get("sources", []), *_rows(shipped, "sources", shift)]
    return {**own, **added, "sources": sources}


def _by_key(name: str, rows: Iterable[Any]) -> dict[Any, Any]:
    identity = TABLES[name].identity()
    return {identity(row): row for row in rows}
