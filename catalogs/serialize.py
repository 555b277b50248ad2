"""Writes a catalog folder: sorted rows, the same bytes each time, the manifest last."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from recommender.catalogs import MANIFEST
from recommender.catalogs.files import gzipped
from recommender.catalogs.schema import Offer
from recommender.catalogs.tables import SCHEMA_VERSION, TABLES, Row, Table, cell


def csv_of_table(table: Table, rows: Iterable[Row]) -> str:
    """Write rows as CSV, sorted by their identity."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    values = attrgetter(*table.columns)
    for row in sorted(rows, key=table.identity()):
        writer.writerow([cell(value) for value in values(row)])
    return out.getvalue()


def bytes_of_table(table: Table, rows: Iterable[Row]) -> bytes:
    """The content of a table's file; gzip without a date, so that it is reproducible."""
    content = csv_of_table(table, rows).encode()
    return gzipped(content) if _zipped(table) else content


def write_catalog(folder: Path, tables: Mapping[str, Sequence[Row]]) -> Path:
    """Write the tables into a folder and return the path of its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = {}
    for name in sorted(tables):
        content = table_bytes(TABLES[name], tables[name])
        (folder / TABLES[name].file).write_bytes(content)
        entries[name] = {"file": TABLES[name].file, **manifest_entry(content, len(tables[name]))}
    path = folder / MANIFEST
    path.write_text(manifest_text(entries, tables), encoding="utf-8")
    return path


def table_bytes(table: Table, rows: Sequence[Row]) -> bytes:
    """The content of a table's file; refuse two rows with the same identity.

    Raises:
        ValueError: two rows have the same identity.
    """
    _refuse_duplicates(table, rows)
    return bytes_of_table(table, rows)


def manifest_entry(content: bytes, rows: int) -> dict[str, str | int]:
    """A file's entry in the manifest."""
    return {"rows": rows, "sha256": hashlib.sha256(content).hexdigest()}


def manifest_text(
    entries: Mapping[str, object], tables: Mapping[str, Sequence[Row]], **more: object
) -> str:
    """Write the manifest: the files, how old the prices are, the dates of the sources."""
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "tables": entries,
        "prices": _price_entries(tables.get("offers", ())),
        "sources": _source_entries(tables),
        **more,
    }
    return json.dumps(manifest, indent=1, sort_keys=True) + "\n"


def _zipped(table: Table) -> bool:
    return table.file.endswith(".gz")


def _refuse_duplicates(table: Table, rows: Sequence[Row]) -> None:
    identity = table.identity()
    seen: set[Any] = set()
    for row in rows:
        key = identity(row)
        if key in seen:
            raise ValueError(f"table {table.name}: two rows for {key}")
        seen.add(key)


def _price_entries(offers: Sequence[Row]) -> list[dict[str, str | int]]:
    groups: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        assert isinstance(offer, Offer)
        groups.setdefault((offer.provider, offer.market), []).append(offer)
    return [
        {
            "provider": provider,
            "market": market,
            "oldest": min(o.as_of for o in group),
            "newest": max(o.as_of for o in group),
            "offers": len(group),
            "regions": len({o.region for o in group}),
            "instance_types": len({o.instance_type for o in group}),
        }
        for (provider, market), group in sorted(groups.items())
    ]


def _source_entries(tables: Mapping[str, Sequence[Row]]) -> list[dict[str, str | int]]:
    dates: dict[int, set[str]] = {}
    for name, rows in tables.items():
        if name != "sources":
            for row in rows:
                dates.setdefault(row.source, set()).add(row.as_of)  # type: ignore[union-attr]
    return [
        {"source": source, "oldest": min(held), "newest": max(held)}
        for source, held in sorted(dates.items())
    ]
