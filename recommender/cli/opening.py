"""Finds the catalog to plan with: a folder, an address, a store, or what ships with the tool."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recommender.cli.screen import put
from recommender.errors import CatalogError
from recommender.report import text
from recommender.text import shown_path

if TYPE_CHECKING:
    from catalogs.catalog import Catalog
    from catalogs.versions import Store


@dataclass(frozen=True, slots=True)
class Opened:
    """A catalog, what to call it, and what had to be passed over on the way."""

    catalog: "Catalog"
    name: str
    notes: tuple[str, ...]
    store: "Store | None" = None  # the store it was looked for in
    version: str = ""  # of that store; "" for the shipped snapshot


def open_catalog(path: str | None) -> Opened:
    """The catalog of a path; without one the newest good version, else the shipped snapshot."""
    from catalogs import MANIFEST
    from catalogs.versions import CURRENT, VERSIONS, Store, default_root

    if path is None:
        return open_store(Store(default_root()))
    if "://" in path:
        from catalogs.remote import default_cache, load_remote

        remote = load_remote(path, default_cache())
        address = path.partition("#")[0].partition("?")[0]
        name = f"{address} ({remote.catalog.version})"
        return Opened(remote.catalog, name, remote.notes)
    folder = Path(path)
    if (folder / CURRENT).is_file() or (folder / VERSIONS).is_dir():
        return open_store(Store(folder))
    if folder.is_file() and folder.name != MANIFEST:
        raise CatalogError(
            f"{shown_path(path)}: is a file; name a catalog folder or a store "
            "(recommend catalog import unpacks an archive)"
        )
    from catalogs.load import load

    catalog = load(folder)
    return Opened(catalog, f"{path} ({catalog.version})", ())


def open_store(store: "Store") -> Opened:
    """The version that holds in a store, or the newest good one."""
    from catalogs.versions import newest_good

    found = newest_good(store)
    kind = f"version {found.name}" if found.name else f"shipped snapshot {found.catalog.version}"
    return Opened(found.catalog, kind, found.skipped, store, found.name)


def store_at(path: str | None) -> "Store":
    """The store of a path, by default that of this user."""
    from catalogs.versions import Store, default_root

    return Store(Path(path) if path else default_root())


def warn(notes: tuple[str, ...]) -> None:
    """Say on standard error what had to be passed over."""
    for note in notes:
        put(f"warning: {text.clean(note)}\n", sys.stderr)
