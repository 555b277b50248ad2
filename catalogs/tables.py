"""The tables of a catalog folder: their names, row classes, columns and order."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from functools import cache
from math import isfinite
from operator import attrgetter
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import NAMES
from recommender.catalogs.schema import (
    Achieved,
    BillingRule,
    Egress,
    Fee,
    Gpu,
    InstanceType,
    Obtainability,
    Offer,
    PriceDrift,
    Quota,
    Source,
    SpotClass,
    StartUp,
)

SCHEMA_VERSION = 1

Row = (
    Achieved
    | BillingRule
    | Egress
    | Fee
    | Gpu
    | InstanceType
    | Obtainability
    | Offer
    | PriceDrift
    | Quota
    | Source
    | SpotClass
    | StartUp
)
_OFFER_KEY = ("provider", "instance_type", "region", "zone", "market")
# A catalog of own machines needs these; the rest comes from the shipped snapshot.
REQUIRED = ("offers", "instance_types", "gpus", "achieved")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, the class of its rows, and the columns that identify a row."""

    name: str
    row: type[Any]
    key: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name of its file; the sources stay readable without a tool."""
        return "sources.csv" if self.name == "sources" else f"{self.name}.csv.gz"

    def part(self, provider: str) -> str:
        """The name of the file of one provider's rows."""
        return f"{self.name}-{provider}.csv.gz"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(field.name for field in fields(self.row))

    @property
    def later(self) -> dict[str, Any]:
        """The last columns, which a catalog of an older program may lack, and their values then."""
        found = {field.name: field.default for field in fields(self.row)}
        return {name: value for name, value in found.items() if value is not MISSING}

    def identity(self) -> Callable[[Any], Any]:
        """A function from a row to its identity."""
        return attrgetter(*self.key)


TABLES = MappingProxyType(
    {
        table.name: table
        for table in (
            Table("offers", Offer, _OFFER_KEY),
            Table("instance_types", InstanceType, ("provider", "instance_type")),
            Table("gpus", Gpu, ("gpu",)),
            Table("achieved", Achieved, ("gpu", "precision")),
            Table("sources", Source, ("source",)),
            Table("quotas", Quota, ("provider", "quota_family", "market")),
            Table("spot_classes", SpotClass, ("spot_class",)),
            Table("price_drift", PriceDrift, ("provider", "market", "age_days")),
            Table("start_up", StartUp, ("provider", "gpus_min")),
            Table("obtainability", Obtainability, ("gpus",)),
            Table("fees", Fee, ("provider", "item")),
            Table("billing", BillingRule, ("provider", "market", "instance_type")),
            Table("egress", Egress, ("provider", "from_region", "to_region")),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Column:
    """Conversion of one column between text and values."""

    name: str
    parse: Callable[[Sequence[str]], Sequence[Any]]
    allowed: frozenset[str] | None  # the words a column of names may hold


def _texts(cells: Sequence[str]) -> Sequence[str]:
    return cells


def _wholes(cells: Sequence[str]) -> Sequence[int]:
    return list(map(int, cells))


def _numbers(cells: Sequence[str]) -> Sequence[float]:
    found = list(map(float, cells))
    if not all(map(isfinite, found)):  # no table has such a figure, and plans would hold them
        raise ValueError("holds a number that is not finite")
    return found


def _optional_wholes(cells: Sequence[str]) -> Sequence[int | None]:
    return [int(cell) if cell else None for cell in cells]


def _optional_numbers(cells: Sequence[str]) -> Sequence[float | None]:
    known = iter(_numbers([cell for cell in cells if cell]))
    return [next(known) if cell else None for cell in cells]


def _flags(cells: Sequence[str]) -> Sequence[bool]:
    words = {"yes": True, "no": False}
    if not words.keys() >= set(cells):
        raise ValueError(f"could not convert to yes or no: {set(cells) - words.keys()}")
    return [words[cell] for cell in cells]


def _names(cells: Sequence[str]) -> Sequence[tuple[str, ...]]:
    return [tuple(cell.split()) for cell in cells]


_PARSERS: dict[Any, Callable[[Sequence[str]], Sequence[Any]]] = {
    str: _texts,
    int: _wholes,
    float: _numbers,
    bool: _flags,
    int | None: _optional_wholes,
    float | None: _optional_numbers,
    tuple[str, ...]: _names,
}


@cache
def columns_of(table: Table) -> tuple[Column, ...]:
    """List the columns of a table with their parsers."""
    columns = []
    for name, hint in get_type_hints(table.row).items():
        parse = _PARSERS.get(hint, _texts)
        allowed = frozenset(get_args(hint)) if hint not in _PARSERS else None
        if name == "provider":
            allowed = frozenset(NAMES)
        columns.append(Column(name, parse, allowed))
    return tuple(columns)


def cell(value: object) -> str:
    """Write a value as the text of a cell: nothing for None, the shortest exact number."""
    if isinstance(value, str):  # most are
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)
