"""What is read from files for one call: catalog, quotas, own machines."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recommender import units
from recommender.bench.place import folder, holds_tables
from recommender.cli.opening import open_catalog, warn
from recommender.cli.reader import Reader
from recommender.clock import now
from recommender.errors import CatalogError
from recommender.limits import Choice, QuotaLimit
from recommender.report import text
from recommender.report.age import age_days

if TYPE_CHECKING:
    from catalogs.catalog import Catalog

NEWCOMER = "default-new"


def load_catalog(path: str | None) -> "Catalog":
    """The catalog of a path, or the newest good one, with the speeds that the user measured.

    Warns of what was passed over.
    """
    opened = open_catalog(path)
    warn(opened.notes)
    if not holds_tables(folder()):
        return opened.catalog
    from recommender.bench.store import with_own_speeds

    return with_own_speeds(opened.catalog)


def without_old(
    catalog: "Catalog", max_age_s: float | None, providers: tuple[str, ...]
) -> "Catalog":
    """The catalog without prices older than allowed; say how many those were.

    Raises:
        CatalogError: all prices of a provider in a market are older.
    """
    if max_age_s is None:
        return catalog
    from catalogs.extend import without_dates

    allowed = units.format_duration(max_age_s)
    dates = catalog.price_dates()
    old = [
        f"{text.provider(date.provider)} {text.market(date.market)} {age_days(date.newest)} days"
        for date in dates
        if not providers or date.provider in providers
        if _is_old(date.newest, max_age_s)
    ]
    if old:
        raise CatalogError(
            f"prices are older than --max-age {allowed}: {', '.join(old)}; "
            "allow more, or name a newer catalog with --catalog"
        )
    young = without_dates(catalog, lambda as_of: _is_old(as_of, max_age_s))
    gone = len(catalog.offers) - len(young.offers)
    if gone:
        warn((f"{gone:,} offers whose price is older than --max-age {allowed} are left out",))
    return young


def _is_old(as_of: str, max_age_s: float) -> bool:
    age = age_days(as_of)
    return age is not None and age * 86_400 > max_age_s


def with_files(
    catalog: "Catalog", choice: Choice, quota: str | None, offers: str | None, read: Reader
) -> tuple["Catalog", Choice]:
    """The catalog with own machines, and the choice with all quotas and the laws of own traces."""
    quotas: tuple[QuotaLimit, ...] = ()
    if quota is not None:
        quotas = read.attempt(lambda: _quotas(quota, catalog), ())
    if offers is not None:
        catalog, own = read.attempt(lambda: _own(offers, catalog), (catalog, ()))
        quotas += own
    from recommender.traces.store import stored  # reads YAML; help needs none

    laws = read.attempt(stored, ())
    return catalog, replace(choice, quotas=quotas, quotas_known=quota is not None, spot_laws=laws)


def _quotas(word: str, catalog: "Catalog") -> tuple[QuotaLimit, ...]:
    from recommender.userfiles import read_quotas

    return _newcomer(catalog) if word.lower() == NEWCOMER else read_quotas(Path(word))


def _newcomer(catalog: "Catalog") -> tuple[QuotaLimit, ...]:
    """What a new account may run."""
    return tuple(
        QuotaLimit(
            provider=quota.provider,
            quota_family=quota.quota_family,
            market="spot" if quota.market == "spot" else "on_demand",
            region="",
            unit="gpu" if quota.unit == "gpu" else "vcpu",
            amount=quota.default_new,
        )
        for quota in catalog.quotas
    )


def _own(path: str, catalog: "Catalog") -> tuple["Catalog", tuple[QuotaLimit, ...]]:
    from catalogs.extend import extended
    from recommender.userfiles import read_offers

    memory = {name: gpu.memory_mib for name, gpu in catalog.gpus.items()}
    own = read_offers(Path(path), memory, now().date())
    return extended(catalog, own.rows), own.limits
