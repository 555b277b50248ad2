"""One harness for all providers: their list in its real format, and faults made, not written.

A provider with a public list is read by the real reader from a server of ours; what the list
holds is the shipped prices, so every other price that is published is a lie. A provider without
one (its price page is no interface) hands the same rows to the same checks. Faults are drawn from
the provider's name: values, rows, and the bytes that carry them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.load import load
from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.providers.http import Web
from recommender.catalogs.providers.public import gpuhunt
from recommender.catalogs.providers.public.listed import PublicList, Row, fetched
from recommender.catalogs.refresh.report import RefreshReport
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS
from recommender.catalogs.schema import Offer, Source
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.store import Store
from recommender.catalogs.tables import TABLES
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.providers.public.world import (
    SKY_NAMES,
    Rows,
    World,
    gpuhunt_rows,
    plain_rows,
    readers,
    served,
    skypilot_rows,
)
from tests.catalogs.refresh.servers import Asked, Reply
from tests.shipped import every_cloud

NAMES = tuple(name for name in CLOUDS if name not in OWN_CLIENTS)  # these have suites of their own
READ = (*SKY_NAMES, *gpuhunt.NAMES, "ovh")  # by a reader; the others have no public list
LARGE = 0.10  # nothing may be published that is off by as much
FACTORS = (0.0, -1.0, 1e-3, 0.01, 0.1, 0.125, 0.25, 0.5, 0.85, 1.15, 2.0, 4.0, 8.0, 100.0, 730.0)
YESTERDAY = "2026-11-19"  # when the last good prices were read: every night has such a night before
CELLS = ("nan", "inf", "N/A*", "", "free", "12,50", "1e400", "None", "0x10", "-0")
Key = tuple[str, str, str]  # instance type, region, market


@dataclass(frozen=True)
class Fault:
    """Something wrong with what a list says, or with how it says it."""

    name: str
    rows: Callable[[Rows, Random], Rows] = lambda rows, draw: rows
    reply: Callable[[bytes], Reply] | None = None  # of the file that carries the rows
    version: str = ""  # of a file that states its own


@dataclass(frozen=True)
class Outcome:
    """What a night made of a fault."""

    report: RefreshReport
    worst: float  # the largest share by which a published price is off
    renewed: bool  # whether every offer was read anew, at its true price: nothing was wrong

    @property
    def held(self) -> bool:
        """Whether no price was published that is off by a tenth or more."""
        return self.worst < LARGE

    @property
    def told(self) -> bool:
        """Whether the report says that something was wrong, if something was."""
        (found,) = self.report.providers
        said = (found.reasons, found.alerts, found.quarantined, found.failed, found.gone)
        return self.renewed or found.result != "published" or any(said) or found.kept > 0


def columns(name: str) -> tuple[str, str, str]:
    """Which columns of a list state the machine, the place and the price."""
    sky = name in SKY_NAMES
    return ("InstanceType", "Region", "Price") if sky else ("instance_name", "location", "price")


def recorded(name: str) -> Rows:
    """A provider's answer: its list in the list's own columns, at the shipped prices."""
    if name in SKY_NAMES:
        return skypilot_rows(name)
    if name in gpuhunt.NAMES:
        return gpuhunt_rows(name)
    return plain_rows(name)


def faults(name: str) -> list[Fault]:
    """All faults of a provider, in an order drawn from its name."""
    found = [*_of_prices(name), *_of_rows(name)]
    if name in READ:
        found += [*_of_cells(name), *_of_bytes(name)]
    Random(name).shuffle(found)
    return found


def _of_prices(name: str) -> Iterator[Fault]:
    """Prices times a factor: of one row, of every second one, of all."""
    price = columns(name)[2]
    for factor in FACTORS:
        for word, some in _PARTS.items():
            yield Fault(f"{word} × {factor:g}", _changed(price, some, lambda v, f=factor: f * v))


def _of_cells(name: str) -> Iterator[Fault]:
    """Prices that are no numbers."""
    price = columns(name)[2]
    for cell in CELLS:
        for word in ("one", "all"):
            change = _changed(price, _PARTS[word], lambda _, c=cell: c)
            yield Fault(f"{word} {cell!r}", change)


_PARTS: Mapping[str, Callable[[int, int], bool]] = {
    "one": lambda row, drawn: row == drawn,
    "half": lambda row, drawn: row % 2 == drawn % 2,
    "all": lambda row, drawn: True,
}


def _changed(
    column: str, some: Callable[[int, int], bool], change: Callable[[Any], Any]
) -> Callable[[Rows, Random], Rows]:
    def rows(found: Rows, draw: Random) -> Rows:
        priced = [row for row, cells in enumerate(found) if cells.get(column) not in (None, "")]
        drawn = draw.randrange(len(priced))
        wrong = {row for at, row in enumerate(priced) if some(at, drawn)}
        return [
            {**cells, column: change(cells[column])} if row in wrong else cells
            for row, cells in enumerate(found)
        ]

    return rows


def _of_rows(name: str) -> Iterator[Fault]:
    """Rows that are gone, doubled, of another place, or another machine's."""
    machine, place, price = columns(name)
    yield Fault("half of the rows", lambda rows, draw: rows[::2])
    yield Fault("one row", lambda rows, draw: rows[:1])
    yield Fault("no row", lambda rows, draw: [])
    yield Fault("twice, at two prices", lambda rows, draw: [*rows, *_doubled(rows, price)])
    yield Fault("prices of each other", lambda rows, draw: _rotated(rows, price))
    yield Fault("names of each other", lambda rows, draw: _rotated(rows, machine))
    yield Fault("another place", lambda rows, draw: [{**r, place: "moon-1"} for r in rows])
    yield Fault("names nobody knows", lambda rows, draw: [{**r, machine: "gpu_9x"} for r in rows])


def _doubled(rows: Rows, price: str) -> Rows:
    return [{**row, price: 3.0 * float(row[price])} for row in rows if row.get(price)]


def _rotated(rows: Rows, column: str) -> Rows:
    values = [row.get(column, "") for row in rows]
    turned = [*values[1:], *values[:1]]
    return [{**row, column: value} for row, value in zip(rows, turned, strict=True)]


def _of_bytes(name: str) -> Iterator[Fault]:
    """What carries the rows is cut, another thing, or of another day."""
    yield Fault("half of the file", reply=lambda content: Reply(content[: len(content) // 2]))
    yield Fault("no file", reply=lambda content: Reply(b""))
    yield Fault("a page", reply=lambda content: Reply(b"<html><body>Sign in</body></html>"))
    yield Fault("HTTP 500", reply=lambda content: Reply(b"", status=500))
    yield Fault("HTTP 404", reply=lambda content: Reply(b"", status=404))
    yield Fault("commas", reply=lambda content: Reply(b"," * 200_000))
    yield Fault("no text", reply=lambda content: Reply(bytes(range(256)) * 8))
    if name in gpuhunt.NAMES:
        for word, version in (("tomorrow", "20261122-1"), ("no day", "20261399-1"), ("no", "?")):
            yield Fault(f"version of {word}", version=version)


def night(name: str, fault: Fault, root: Path) -> Outcome:
    """Refresh a provider from an answer with a fault, and compare with the truth."""
    rows = fault.rows(recorded(name), Random(f"{name} {fault.name}"))
    with served(_world(name, rows, fault)) as server:
        if name in READ:
            maker = readers(server.address)[name]
        else:
            maker = lambda: cast(Any, Handed(name, rows))  # noqa: E731
        request = RefreshRequest(
            store=Store(root / "store"), makers={name: maker}, base=base(root), clock=lambda: NOW
        )
        report = refresh(request)
    return Outcome(report, *_compared(name, root / "store"))


@dataclass
class Faulty(World):
    """A world whose file of a provider is carried wrongly."""

    reply: Callable[[bytes], Reply] | None = None

    def answer(self, asked: Asked) -> Reply:
        """Answer as a world does, and spoil the file."""
        usual = World.answer(self, asked)
        if self.reply is None or not asked.path.endswith((".zip", ".csv", "/order")):
            return usual
        body = usual.body if isinstance(usual.body, bytes) else json.dumps(usual.body).encode()
        return self.reply(body)


def _world(name: str, rows: Rows, fault: Fault) -> World:
    version = {"version": fault.version} if fault.version else {}
    return Faulty(gpuhunt={name: rows}, sky={name: rows}, ovh=rows, reply=fault.reply, **version)


@dataclass(frozen=True)
class Handed:
    """A provider without an interface: rows that somebody has read from its page."""

    name: str
    rows: Rows

    def fetch(self, wanted: Wanted) -> Fetched:
        """The rows as a list of today."""
        source = Source(1, "a price page", "facts of public pages", "row", self.name)
        rows = tuple(
            Row(r["instance_name"], r["location"], "", "spot" if r["spot"] else "on_demand",
                r["price"])
            for r in self.rows
        )  # fmt: skip
        web = cast(Web, SimpleNamespace(calls=0, retries=0, bytes=0))
        day = date(NOW.year, NOW.month, NOW.day)
        return fetched(self.name, wanted, web, PublicList(rows, day, source))


def _compared(name: str, root: Path) -> tuple[float, bool]:
    """How far a published price is off at most, and whether all were read anew and are true."""
    store = Store(root)
    held = store.current()
    offers = [o for o in load(store.path(held)).offers if o.provider == name] if held else []
    truth = {_key(o): o for o in every_cloud().offers if o.provider == name}
    off = [
        abs(o.usd_per_hour / truth[_key(o)].usd_per_hour - 1.0) if _key(o) in truth else 1.0
        for o in offers
    ]
    anew = [o for o in offers if _key(o) in truth and o.as_of > truth[_key(o)].as_of]
    worst = max(off, default=0.0)
    return worst, worst < 1e-9 and len(anew) == len(truth)


def _key(offer: Offer) -> Key:
    return offer.instance_type, offer.region, offer.market


def base(root: Path) -> Path:
    """A catalog of the GPU clouds and AWS in one region, read the night before."""
    folder = root.parent / "base-of-gpu-clouds"
    if not (folder / "manifest.json").exists():
        write_catalog(folder, _small())
    return folder


@cache
def _small() -> dict[str, Any]:
    whole: Catalog = every_cloud()
    kept = [
        replace(o, as_of=YESTERDAY)
        for o in whole.offers
        if o.provider not in OWN_CLIENTS or (o.provider, o.region) == ("aws", "us-east-1")
    ]
    named = {(o.provider, o.instance_type) for o in kept}
    types = [t for key, t in whole.instance_types.items() if key in named]
    tables: dict[str, Any] = {"offers": kept, "instance_types": types}
    for name in TABLES.keys() - tables.keys():
        held = getattr(whole, name)
        tables[name] = list(held.values()) if isinstance(held, Mapping) else list(held)
    return tables
