"""A catalog in memory: offers as columns, other tables as rows, plus the user's own machines."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import compress
from typing import Any, cast

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.instance_types import InstanceTypes
from recommender.catalogs.schema import (
    Achieved,
    BillingRule,
    Egress,
    Fee,
    Gpu,
    InstanceType,
    Kind,
    Market,
    Obtainability,
    Obtainable,
    Offer,
    OwnMachine,
    OwnSpeed,
    PriceDrift,
    Quota,
    Source,
    SpotClass,
    StartUp,
)


@dataclass(frozen=True, slots=True)
class Offers:
    """All offers as columns of equal length; `offers[i]` makes one `Offer`."""

    provider: Sequence[str]
    instance_type: Sequence[str]
    region: Sequence[str]
    zone: Sequence[str]
    market: Sequence[str]
    usd_per_hour: "array[float]"
    obtainable: Sequence[str]
    kind: Sequence[str]
    flag: Sequence[str]
    uncertainty: "array[float]"
    interruption_range: Sequence[int | None]
    source: Sequence[int]
    as_of: Sequence[str]

    def __len__(self) -> int:
        return len(self.usd_per_hour)

    def __getitem__(self, index: int) -> Offer:
        return Offer(
            provider=self.provider[index],
            instance_type=self.instance_type[index],
            region=self.region[index],
            zone=self.zone[index],
            market=cast(Market, self.market[index]),
            usd_per_hour=self.usd_per_hour[index],
            obtainable=cast(Obtainable, self.obtainable[index]),
            kind=cast(Kind, self.kind[index]),
            flag=self.flag[index],
            uncertainty=self.uncertainty[index],
            interruption_range=self.interruption_range[index],
            source=self.source[index],
            as_of=self.as_of[index],
        )

    def __iter__(self) -> Iterator[Offer]:
        return map(Offer, *(getattr(self, field.name) for field in fields(Offer)))


@dataclass(frozen=True, slots=True)
class PriceDate:
    """The dates of a provider's oldest and newest prices in a market."""

    provider: str
    market: str
    oldest: str
    newest: str
    offers: int


@dataclass(frozen=True, repr=False)
class Catalog:
    """Everything a plan may use, as one immutable set with a version."""

    offers: Offers
    instance_types: Mapping[tuple[str, str], InstanceType]  # by (provider, name)
    gpus: Mapping[str, Gpu]
    achieved: Mapping[tuple[str, str], Achieved]  # by (gpu, precision)
    sources: tuple[Source, ...]
    quotas: tuple[Quota, ...]
    spot_classes: tuple[SpotClass, ...]
    price_drift: tuple[PriceDrift, ...]
    start_up: tuple[StartUp, ...]
    obtainability: tuple[Obtainability, ...]
    fees: tuple[Fee, ...]
    billing: tuple[BillingRule, ...]
    egress: tuple[Egress, ...]
    sha256: str

    def __repr__(self) -> str:
        return f"Catalog({self.version}, {len(self.offers)} offers)"

    @property
    def version(self) -> str:
        """Name the catalog by its newest price and its content: "2026-08-21-1f0c2a9b"."""
        newest = max(self.offers.as_of, default="empty")
        return f"{newest}-{self.sha256[:8]}"

    def type_of(self, offer: Offer) -> InstanceType:
        """Return the hardware of an offer."""
        return self.instance_types[offer.provider, offer.instance_type]

    def like(self, key: tuple[str, str]) -> tuple[str, str]:
        """The representative machine with the same hardware; own machines may share one."""
        types = self.instance_types
        return types.like(key) if isinstance(types, InstanceTypes) else key

    def price_dates(self) -> tuple[PriceDate, ...]:
        """List the dates of prices, by provider and market."""
        o, held = self.offers, defaultdict[tuple[str, str], list[tuple[str, int]]](list)
        quotes = Counter(zip(o.provider, o.market, o.as_of, strict=True))
        for (provider, market, as_of), count in quotes.items():
            held[provider, market].append((as_of, count))
        return tuple(
            PriceDate(provider, market, min(days)[0], max(days)[0], sum(n for _, n in days))
            for (provider, market), days in sorted(held.items())
        )

    @cached_property
    def source_by_key(self) -> Mapping[int, Source]:
        """Return the sources by the number that rows use."""
        return {source.source: source for source in self.sources}


OWN_SOURCE = Source(0, "your own file", "yours", "row", "given with --offers")
OWN_BENCH_SOURCE = Source(
    -1, "your own benchmarks", "yours", "row", "given with recommend bench import"
)


def extended(
    catalog: Catalog,
    own: Mapping[str, OwnMachine],
    offers: Offers,
    terms: tuple[BillingRule, ...] = (),
) -> Catalog:
    """The catalog with own machines and more offers, whose source is number 0.

    `own` maps each name to a machine with its hardware; `terms` are those of some names.
    """
    return replace(
        catalog,
        offers=_appended(catalog.offers, offers),
        instance_types=InstanceTypes(catalog.instance_types, own),
        billing=(*catalog.billing, *terms),
        sources=(OWN_SOURCE, *catalog.sources),
    )


def with_speeds(catalog: Catalog, speeds: Sequence[OwnSpeed]) -> Catalog:
    """The catalog with the user's matrix speeds instead of its own; their source is number -1."""
    if not speeds:
        return catalog
    own = {(speed.gpu, speed.precision): speed for speed in speeds}
    sources = (OWN_BENCH_SOURCE, *catalog.sources)
    return replace(catalog, achieved={**catalog.achieved, **own}, sources=sources)


def with_machines(catalog: Catalog, machines: Sequence[InstanceType]) -> Catalog:
    """The catalog with the user's figures for instance types; their source is number -1."""
    if not machines:
        return catalog
    own: dict[tuple[str, str], InstanceType] = {
        (machine.provider, machine.instance_type): machine for machine in machines
    }
    known = OWN_BENCH_SOURCE in catalog.sources
    sources = catalog.sources if known else (OWN_BENCH_SOURCE, *catalog.sources)
    return replace(catalog, instance_types={**catalog.instance_types, **own}, sources=sources)


def without_dates(catalog: Catalog, too_old: Callable[[str], bool]) -> Catalog:
    """The catalog without offers whose price is too old."""
    dates = catalog.offers.as_of
    old = {date for date in set(dates) if too_old(date)}
    if not old:
        return catalog
    return _with_rows(catalog, [date not in old for date in dates])


def in_regions(catalog: Catalog, instance_type: str, regions: Sequence[str]) -> Catalog:
    """The catalog without the offers of an instance type in other regions."""
    o = catalog.offers
    rows = zip(o.instance_type, o.region, strict=True)
    return _with_rows(catalog, [name != instance_type or r in regions for name, r in rows])


def _with_rows(catalog: Catalog, keep: Sequence[bool]) -> Catalog:
    left: dict[str, Any] = {}
    for each in fields(Offers):
        column = getattr(catalog.offers, each.name)
        values = compress(column, keep)
        left[each.name] = array("d", values) if isinstance(column, array) else tuple(values)
    return replace(catalog, offers=Offers(**left))


def _appended(columns: Offers, offers: Offers) -> Offers:
    grown: dict[str, Any] = {}
    for each in fields(Offers):
        column, more = getattr(columns, each.name), getattr(offers, each.name)
        is_array = isinstance(column, array)
        grown[each.name] = array("d", [*column, *more]) if is_array else (*column, *more)
    return Offers(**grown)
