"""The files of a version: the shipped tables as they are, the offers of each provider anew."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from catalogs.catalog import Catalog
from catalogs.errors import CatalogError
from catalogs.publish import Content
from catalogs.refresh.draft import Draft
from catalogs.tables import REQUIRED, TABLES, Row
from catalogs.versions import REPORT
from catalogs.writer import MANIFEST, entry_of, manifest_text, table_bytes

_WRITTEN = ("offers", "instance_types", "sources")


def content_of(
    folder: Path, base: Catalog, draft: Draft, report: Mapping[str, Any], now: datetime
) -> Content:
    """Make the files of a version from the shipped folder and a draft."""
    files: dict[str, bytes] = {}
    entries: dict[str, Any] = {}
    for name, entry in _shipped(folder).items():
        if name not in _WRITTEN:
            files[TABLES[name].file] = _copied(folder / TABLES[name].file, entry["sha256"])
            entries[name] = entry
    types = [*base.instance_types.values(), *draft.types]
    for name, rows in (("instance_types", types), ("sources", list(draft.sources))):
        content = table_bytes(TABLES[name], rows)
        files[TABLES[name].file] = content
        entries[name] = {"file": TABLES[name].file, **entry_of(content, len(rows))}
    parts = {}
    for provider, offers in sorted(draft.offers.items()):
        content = table_bytes(TABLES["offers"], offers)
        files[TABLES["offers"].part(provider)] = content
        parts[provider] = entry_of(content, len(offers))
    rows_in_all = sum(len(offers) for offers in draft.offers.values())
    entries["offers"] = {"rows": rows_in_all, "parts": parts}
    said = (json.dumps(report, indent=1) + "\n").encode()
    published = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    files[REPORT] = said
    files[MANIFEST] = manifest_text(
        entries,
        _rows(base, draft),
        fetched=[asdict(each) for each in draft.fetched],
        started=report.get("started", published),  # its day is that of the prices read
        published=published,
        report={"file": REPORT, "sha256": hashlib.sha256(said).hexdigest()},
    ).encode()
    return Content(files)


def _shipped(folder: Path) -> dict[str, Any]:
    tables = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["tables"]
    missing = [name for name in REQUIRED if name not in tables]
    if missing:
        raise CatalogError(f"{folder}: the manifest lists no table {', '.join(missing)}")
    found: dict[str, Any] = tables
    return found


def _copied(path: Path, sha256: str) -> bytes:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CatalogError(f"{path}: sha256 differs from the manifest; install recommend again")
    return content


def _rows(base: Catalog, draft: Draft) -> dict[str, Sequence[Row]]:
    """All rows with a date, for the manifest's list of ages."""
    offers = [offer for rows in draft.offers.values() for offer in rows]
    return {
        "offers": offers,
        "instance_types": [*base.instance_types.values(), *draft.types],
        "gpus": list(base.gpus.values()),
        "achieved": list(base.achieved.values()),
        "quotas": base.quotas,
        "spot_classes": base.spot_classes,
        "price_drift": base.price_drift,
        "start_up": base.start_up,
        "obtainability": base.obtainability,
        "fees": base.fees,
        "billing": base.billing,
        "egress": base.egress,
    }
