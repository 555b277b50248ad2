"""What changed between two catalogs, and how prices moved: shipped, and of every version kept.

`past_prices.csv.gz` holds a year of changes up to the snapshot, one line for a machine in
a region and market: "2026-04-02:8.468 2026-05-01:8.51". Prices of every version are Parquet files:

    history/date=2026-11-21/000042-20261121T020304Z-1f0c2a9b.parquet

Only offers read on that day are in it, so that every row is a price that its provider quoted on
its date. pandas, DuckDB and Dask read the folder as one table with a column `date`.
"""

import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recommender.catalogs.catalog import Catalog, Offers
from recommender.catalogs.errors import CatalogError, StoreError
from recommender.catalogs.files import Step, no_step, replace_file
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import load, load_snapshot
from recommender.catalogs.schema import Offer
from recommender.catalogs.store import Store

Key = tuple[str, str, str, str, str]  # provider, instance type, region, zone, market
_SAME = 1e-6  # prices of one type differ in the 8th digit between sources
HISTORY = "history"
MISSING = "no history is kept without pyarrow: pip install pyarrow"
SHIPPED = Path(__file__).with_name("past_prices.csv.gz")
COLUMNS = ("provider", "instance_type", "region", "market", "prices")  # of the shipped ones
ShippedKey = tuple[str, str, str, str]
_COLUMNS = (
    "provider", "instance_type", "region", "zone", "market", "usd_per_hour", "obtainable", "kind",
    "flag",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """An offer whose price differs."""

    offer: Offer  # as it is now
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """The new price over the old one."""
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes between two catalogs."""

    added: tuple[Offer, ...]
    removed: tuple[Offer, ...]
    changed: tuple[Change, ...]  # the largest first
    new_types: tuple[tuple[str, str], ...]
    removed_types: tuple[tuple[str, str], ...]

    def counts(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Added, removed and repriced offers by provider and market."""
        columns = (
            Counter((o.provider, o.market) for o in self.added),
            Counter((o.provider, o.market) for o in self.removed),
            Counter((c.offer.provider, c.offer.market) for c in self.changed),
        )
        keys = sorted({key for column in columns for key in column})
        return {key: (columns[0][key], columns[1][key], columns[2][key]) for key in keys}


def difference(before: Catalog, after: Catalog) -> Difference:
    """Compare two catalogs offer by offer."""
    old, new = _by_key(before), _by_key(after)
    changed = [
        Change(offer, old[key].usd_per_hour, offer.usd_per_hour)
        for key, offer in new.items()
        if key in old and abs(offer.usd_per_hour / old[key].usd_per_hour - 1) > _SAME
    ]
    changed.sort(key=lambda c: (-max(c.ratio, 1 / c.ratio), _key(c.offer)))
    offered = [{key[:2] for key in each} for each in (old, new)]
    return Difference(
        added=tuple(new[key] for key in sorted(new.keys() - old.keys())),
        removed=tuple(old[key] for key in sorted(old.keys() - new.keys())),
        changed=tuple(changed),
        new_types=tuple(sorted(offered[1] - offered[0])),
        removed_types=tuple(sorted(offered[0] - offered[1])),
    )


def _by_key(catalog: Catalog) -> Mapping[Key, Offer]:
    return {_key(offer): offer for offer in catalog.offers}


def _key(offer: Offer) -> Key:
    return offer.provider, offer.instance_type, offer.region, offer.zone, offer.market


@dataclass(frozen=True, slots=True)
class PricePoint:
    """The price of an offer on a day."""

    date: str
    provider: str
    region: str
    zone: str
    market: str
    usd_per_hour: float


def has_pyarrow() -> bool:
    """Whether the library for Parquet is installed."""
    return find_spec("pyarrow") is not None


def write_history(store: Store) -> tuple[str, ...]:
    """Write the history of every kept version without one; return the names of these versions.

    To be called inside `write_lock`. A version whose writer was stopped between publishing and
    this gets its history at the next call.

    Raises:
        StoreError: the disk is full or fails.
    """
    written = []
    have = {path.stem for path in (store.root / HISTORY).glob("date=*/*.parquet")}
    for name in store.names():
        if name not in have:
            try:
                _write(store, name)
            except OSError as error:
                raise StoreError(f"{store.root / HISTORY}: {error.strerror or error}") from error
            except CatalogError:
                continue  # damaged: readers pass it over as well
            written.append(name)
    return tuple(written)


def points(
    store: Store, instance_type: str, region: str, damaged: Step = no_step
) -> list[PricePoint]:
    """All known prices of a machine in a region, oldest first.

    From what is shipped, the Parquet files and the versions that are kept; `damaged` is called for
    each file or version that cannot be read.
    """
    listed = [*_of_shipped(instance_type, region), *_of(load_snapshot(), instance_type, region)]
    found = {(p.date, p.provider, p.zone, p.market): p for p in listed} | {
        (p.date, p.provider, p.zone, p.market): p
        for source in (_from_versions, _from_files)
        for p in source(store, instance_type, region, damaged)
    }
    return [found[key] for key in sorted(found)]


def recent_prices(
    store: Store, wanted: Iterable[Key], newest: int
) -> dict[Key, tuple[tuple[str, float], ...]]:
    """Day and price of offers: the shipped ones, then those of the newest kept versions.

    Oldest first, without damaged versions. An offer that was read once is listed once, however many
    versions repeat its price. Shipped prices are by region, and hold in each of its zones.
    """
    past = shipped_prices()
    found: dict[Key, dict[str, float]] = {  # in the order that is asked for
        key: dict(past.get((*key[:3], key[4]), ())) for key in wanted
    }
    for name in store.names()[-newest:]:
        try:
            columns = load(store.path(name)).offers
        except CatalogError:
            continue
        for i in _rows_of(columns, {key[1] for key in found}):
            offer = columns[i]
            if _key(offer) in found:
                found[_key(offer)][offer.as_of[:10]] = offer.usd_per_hour
    return {key: tuple(sorted(days.items())) for key, days in found.items()}


@cache
def shipped_prices() -> Mapping[ShippedKey, tuple[tuple[str, float], ...]]:
    """Day and price of a year up to the snapshot, where they changed, oldest first."""
    with gzip.open(SHIPPED, "rt", encoding="utf-8", newline="") as file:
        return {
            (r["provider"], r["instance_type"], r["region"], r["market"]): _steps(r["prices"])
            for r in csv.DictReader(file)
        }


def _steps(text: str) -> tuple[tuple[str, float], ...]:
    return tuple((day, float(usd)) for day, _, usd in (s.partition(":") for s in text.split()))


def _of_shipped(instance_type: str, region: str) -> Iterator[PricePoint]:
    for (provider, name, place, market), steps in shipped_prices().items():
        if (name, place) == (instance_type, region):
            for day, usd in steps:
                yield PricePoint(day, provider, place, "", market, usd)


def _rows_of(columns: Offers, types: set[str]) -> list[int]:
    return [i for i, name in enumerate(columns.instance_type) if name in types]


def _write(store: Store, name: str) -> None:
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    catalog = load(store.path(name))
    manifest = store.manifest(name)
    day = str(manifest.get("started", manifest.get("published", "")))[:10]
    rows = _read_on(catalog, day)
    columns = catalog.offers
    table: dict[str, Any] = {c: [getattr(columns, c)[i] for i in rows] for c in _COLUMNS}
    out = pa.BufferOutputStream()
    parquet.write_table(pa.table({**table, "version": [name] * len(rows)}), out, compression="zstd")
    path = store.root / HISTORY / f"date={day}" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, out.getvalue().to_pybytes())


def _read_on(catalog: "Catalog", day: str) -> list[int]:
    return [i for i, as_of in enumerate(catalog.offers.as_of) if as_of[:10] == day]


def _from_versions(
    store: Store, instance_type: str, region: str, damaged: Step
) -> Iterator[PricePoint]:
    for name in store.names():
        try:
            catalog = load(store.path(name))
        except CatalogError as error:
            damaged(f"version {name} passed over: {error}")
            continue
        yield from _of(catalog, instance_type, region)


def _of(catalog: "Catalog", instance_type: str, region: str) -> Iterator[PricePoint]:
    columns = catalog.offers
    for i, (name, place) in enumerate(zip(columns.instance_type, columns.region, strict=True)):
        if name == instance_type and place == region:
            o = columns[i]
            yield PricePoint(o.as_of[:10], o.provider, place, o.zone, o.market, o.usd_per_hour)


def _from_files(
    store: Store, instance_type: str, region: str, damaged: Step
) -> Iterator[PricePoint]:
    files = sorted((store.root / HISTORY).glob("date=*/*.parquet"))
    if not files or not has_pyarrow():
        return
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    columns = ["provider", "region", "zone", "market", "usd_per_hour"]
    wanted = [("instance_type", "=", instance_type), ("region", "=", region)]
    for file in files:
        try:
            table = parquet.read_table(file, columns=columns, filters=wanted, partitioning=None)
        except (OSError, pa.ArrowException):
            damaged(f"{file}: cannot be read; remove it")
            continue
        yield from _points(file, table.to_pylist())


def _points(file: Path, rows: Iterable[dict[str, Any]]) -> Iterator[PricePoint]:
    day = file.parent.name.removeprefix("date=")
    for row in rows:
        yield PricePoint(
            date=day,
            provider=row["provider"],
            region=row["region"],
            zone=row["zone"],
            market=row["market"],
            usd_per_hour=row["usd_per_hour"],
        )
