"""What is read from files for one call: the catalog, quotas, own machines."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic

from recommender.catalogs import MANIFEST
from recommender.catalogs.catalog import Catalog, extended, without_dates
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import load
from recommender.catalogs.schema import BOOKED
from recommender.catalogs.store import CURRENT, VERSIONS, Store, default_root, newest_good
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.screen import write_text
from recommender.inputs import units
from recommender.inputs.offers_file import read_offers
from recommender.inputs.quota_file import read_quotas
from recommender.inputs.units.times import now
from recommender.market.account_quotas import OVER, quotas_of_account
from recommender.performance.measurements import folder, holds_tables
from recommender.plan.limits import ACCOUNTS, Choice, QuotaLimit
from recommender.report import formatting as fmt
from recommender.report.formatting import age_days
from recommender.text import shown, shown_path
from recommender.traces.law_store import stored

NEW_ACCOUNT = ACCOUNTS["new"]


@dataclass(frozen=True, slots=True)
class OpenedCatalog:
    """A catalog, what to call it, and what had to be passed over on the way."""

    catalog: "Catalog"
    name: str
    notes: tuple[str, ...]
    store: "Store | None" = None  # the store it was looked for in
    version: str = ""  # of that store; "" for the shipped snapshot


def open_catalog(path: str | None) -> OpenedCatalog:
    """The catalog of a path; without one the newest good version, else the shipped snapshot."""

    if path is None:
        return open_store(Store(default_root()))
    if "://" in path:
        from recommender.catalogs.remote import default_cache, load_remote

        remote = load_remote(path, default_cache(), notify=_notify)
        address = path.partition("#")[0].partition("?")[0]
        name = f"{address} ({remote.catalog.version})"
        return OpenedCatalog(remote.catalog, name, remote.notes)
    folder = Path(path)
    if _is_store(folder):
        return open_store(Store(folder))
    if os.path.isfile(folder) and folder.name != MANIFEST:
        raise CatalogError(
            f"{shown_path(path)}: is a file; name a catalog folder or a store "
            "(recommend catalog import unpacks an archive)"
        )

    catalog = load(folder)
    return OpenedCatalog(catalog, f"{path} ({catalog.version})", ())


def _notify(progress: str) -> None:
    write_text(f"{fmt.clean(progress)}\n", sys.stderr)


def _is_store(folder: Path) -> bool:
    return os.path.isfile(folder / CURRENT) or os.path.isdir(folder / VERSIONS)


def catalog_mark(path: str | None) -> str:
    """What is another word once `load_catalog` would give another catalog; a look at one file.

    An address is not read: its mark changes every hour.
    """

    if path is not None and "://" in path:
        return f"{monotonic() // 3600:g}"
    if path is None or _is_store(Path(path)):
        return store_at(path).current_or_newest() or ""
    manifest = Path(path) if Path(path).name == MANIFEST else Path(path, MANIFEST)
    try:
        return f"{os.stat(manifest).st_mtime_ns}"
    except OSError:
        return ""  # deleted meanwhile: loading it reports that


def open_store(store: "Store") -> OpenedCatalog:
    """The version that holds in a store, or the newest good one."""

    found = newest_good(store)
    kind = f"version {found.name}" if found.name else f"shipped snapshot {found.catalog.version}"
    return OpenedCatalog(found.catalog, kind, found.skipped, store, found.name)


def store_at(path: str | None) -> "Store":
    """The store of a path, by default that of this user."""

    return Store(Path(path) if path else default_root())


def warn(notes: tuple[str, ...]) -> None:
    """Say on standard error what had to be passed over."""
    for note in notes:
        write_text(f"warning: {fmt.clean(note)}\n", sys.stderr)


def load_catalog(path: str | None) -> "Catalog":
    """The catalog of a path, or the newest good one, with the speeds that the user measured.

    Warns of what was passed over.
    """
    opened = open_catalog(path)
    warn(opened.notes)
    if not holds_tables(folder()):
        return opened.catalog
    from recommender.performance.measurements.store import with_own_speeds

    return with_own_speeds(opened.catalog)


def without_old_prices(catalog: "Catalog", max_age_s: float | None, choice: Choice) -> "Catalog":
    """The catalog without prices older than allowed; say how many those were.

    Booked capacity, which few lists renew, is missed only where it alone is asked for.

    Raises:
        CatalogError: all prices are older, or all of a provider that was named in a market.
    """
    if max_age_s is None:
        return catalog

    allowed = units.format_duration(max_age_s)
    missed = BOOKED if choice.market == "reserved" else ("on_demand", "spot")
    old = [
        f"{fmt.provider(date.provider)} {fmt.market(date.market)} {age_days(date.newest)} days"
        for date in catalog.price_dates()
        if date.market in missed
        if not choice.providers or date.provider in choice.providers
        if _is_old(date.newest, max_age_s)
    ]
    recent = without_dates(catalog, lambda as_of: _is_old(as_of, max_age_s))
    if old and (choice.providers or not len(recent.offers)):
        raise CatalogError(
            f"prices are older than --max-age {allowed}: {', '.join(old)}; "
            "allow more, or name a newer catalog with --catalog"
        )
    stale = len(catalog.offers) - len(recent.offers)
    if stale:
        warn((f"{stale:,} offers whose price is older than --max-age {allowed} are left out",))
    return recent


def _is_old(as_of: str, max_age_s: float) -> bool:
    age = age_days(as_of)
    return age is not None and age * 86_400 > max_age_s


def with_files(
    catalog: "Catalog",
    choice: Choice,
    quota: str | None,
    offers: str | None,
    errors: ErrorCollector,
) -> tuple["Catalog", Choice]:
    """The catalog with own machines, and the choice with all quotas and the laws of own traces."""
    quotas: tuple[QuotaLimit, ...] = ()
    own: tuple[QuotaLimit, ...] = ()
    if offers is not None:
        catalog, own = errors.attempt(lambda: with_own_machines(catalog, offers), (catalog, ()))
    if quota is not None:
        quotas = errors.attempt(lambda: _quotas(quota, catalog), ())
    quotas += own

    laws = errors.attempt(stored, ())
    return catalog, replace(choice, quotas=quotas, quotas_known=quota is not None, spot_laws=laws)


def _quotas(word: str, catalog: "Catalog") -> tuple[QuotaLimit, ...]:
    if word.lower() in ACCOUNTS.values():
        return quotas_of_account(word.lower(), catalog)
    names = [(each.provider, each.name) for each in catalog.quotas]
    return read_quotas(Path(word), [*names, *((p, n) for p, over in OVER.items() for n in over)])


def with_own_machines(catalog: "Catalog", path: str) -> tuple["Catalog", tuple[QuotaLimit, ...]]:
    """The catalog with the machines of an offers file, and how many of them there are."""

    memory = {name: gpu.memory_mib for name, gpu in catalog.gpus.items()}
    own = read_offers(Path(path), memory, catalog.instance_types.values(), now().date())
    if own.older:
        what = (
            "1 row gives way to one" if own.older == 1 else f"{own.older} rows give way to others"
        )
        warn((f"{shown(Path(path).name)}: {what} of the same machine with a newer date",))
    return extended(catalog, own.hardware, own.offers, own.terms), own.limits
