"""Adds machines from elsewhere to a catalog, and leaves out prices that are too old."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import compress
from typing import Any

from catalogs.catalog import Catalog, Offers
from catalogs.schema import InstanceType, Offer, OwnSpeed, Source

OWN_SOURCE = Source(0, "your own file", "yours", "row", "given with --offers")
OWN_BENCH_SOURCE = Source(
    -1, "your own benchmarks", "yours", "row", "given with recommend bench import"
)


def extended(catalog: Catalog, machines: Sequence[tuple[InstanceType, Offer]]) -> Catalog:
    """The catalog with more instance types and offers; their source is number 0."""
    if not machines:
        return catalog
    types: dict[tuple[str, str], InstanceType] = {
        (t.provider, t.instance_type): t for t, _ in machines
    }
    return replace(
        catalog,
        offers=_appended(catalog.offers, [offer for _, offer in machines]),
        instance_types={**catalog.instance_types, **types},
        sources=(OWN_SOURCE, *catalog.sources),
    )


def with_speeds(catalog: Catalog, speeds: Sequence[OwnSpeed]) -> Catalog:
    """The catalog with the user's matrix speeds in place of its own; their source is number -1."""
    if not speeds:
        return catalog
    own = {(speed.gpu, speed.precision): speed for speed in speeds}
    sources = (OWN_BENCH_SOURCE, *catalog.sources)
    return replace(catalog, achieved={**catalog.achieved, **own}, sources=sources)


def with_machines(catalog: Catalog, machines: Sequence[InstanceType]) -> Catalog:
    """The catalog with the user's figures of instance types; their source is number -1."""
    if not machines:
        return catalog
    own: dict[tuple[str, str], InstanceType] = {
        (machine.provider, machine.instance_type): machine for machine in machines
    }
    known = OWN_BENCH_SOURCE in catalog.sources
    sources = catalog.sources if known else (OWN_BENCH_SOURCE, *catalog.sources)
    return replace(catalog, instance_types={**catalog.instance_types, **own}, sources=sources)


def without_dates(catalog: Catalog, too_old: Callable[[str], bool]) -> Catalog:
    """The catalog without the offers whose price is of a date that is too old."""
    dates = catalog.offers.as_of
    old = {date for date in set(dates) if too_old(date)}
    if not old:
        return catalog
    keep = [date not in old for date in dates]
    left: dict[str, Any] = {}
    for each in fields(Offers):
        column = getattr(catalog.offers, each.name)
        values = compress(column, keep)
        left[each.name] = array("d", values) if isinstance(column, array) else tuple(values)
    return replace(catalog, offers=Offers(**left))


def _appended(columns: Offers, offers: Sequence[Offer]) -> Offers:
    grown: dict[str, Any] = {}
    for each in fields(Offers):
        more = [getattr(offer, each.name) for offer in offers]
        column = getattr(columns, each.name)
        is_array = isinstance(column, array)
        grown[each.name] = array("d", [*column, *more]) if is_array else (*column, *more)
    return Offers(**grown)
