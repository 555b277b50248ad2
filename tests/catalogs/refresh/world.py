"""Three simulated clouds: what they really charge today, and clients that may return errors."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.schema import Offer, Source
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.store import Store
from recommender.catalogs.tables import TABLES
from recommender.catalogs.validation import CANARIES
from tests.shipped import snapshot

NAMES = ("aws", "gcp", "azure")
TYPES = {
    "aws": (
        "g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge", "g6.xlarge", "g6e.48xlarge",
        "p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge",
    ),
    "gcp": ("g2-standard-4", "a2-highgpu-1g", "a2-highgpu-2g", "a2-ultragpu-1g", "a3-highgpu-8g",
            "a3-highgpu-1g", "n1-standard-8+1xT4"),
    "azure": (
        "Standard_NC4as_T4_v3", "Standard_NV36ads_A10_v5", "Standard_ND96asr_v4",
        "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5",
    ),
}  # fmt: skip
MORNING = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)

Fault = Callable[[Fetched], Fetched]


def honest(fetched: Fetched) -> Fetched:
    """A client that reports what it was given."""
    return fetched


@dataclass
class Client:
    """A stand-in for a provider's client: returns true data, data changed by a fault, or raises."""

    name: str
    truth: Sequence[Offer]
    fault: Fault = honest
    error: BaseException | None = None

    def fetch(self, wanted: Wanted) -> Fetched:
        """Hand over today's offers."""
        if self.error is not None:
            raise self.error
        offers = tuple(replace(o, source=1, as_of=wanted.today, kind="quote") for o in self.truth)
        return self.fault(
            Fetched(
                provider=self.name,
                started=wanted.now,
                finished=wanted.now,
                markets=frozenset({"on_demand", "spot"}),
                offers=offers,
                sources=(Source(1, f"{self.name} price list", "facts", "row", "read nightly"),),
            )
        )


@dataclass
class World:
    """The shipped tables, the true prices, a store and a clock."""

    folder: Path
    truth: dict[str, list[Offer]]
    now: datetime = MORNING
    faults: dict[str, Fault] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """Where versions are published."""
        return Store(self.folder / "store")

    @property
    def base(self) -> Path:
        """The shipped tables of this world."""
        return self.folder / "base"

    def order(self, *names: str, **more: Any) -> RefreshRequest:
        """A refresh of some providers, by default of all."""
        return RefreshRequest(
            store=self.store,
            makers={name: self._maker(name) for name in names or NAMES},
            base=self.base,
            canaries=self.folder / "canaries.csv",
            clock=lambda: self.now,
            **more,
        )

    def _maker(self, name: str) -> Callable[[], Client]:
        fault, error = self.faults.get(name, honest), self.errors.get(name)
        return lambda: Client(name, self.truth[name], fault, error)

    def next_day(self) -> None:
        """A day passes."""
        self.now += timedelta(days=1)

    def honest_again(self) -> None:
        """All clients work again."""
        self.faults.clear()
        self.errors.clear()


def make_world(folder: Path) -> World:
    """Make a world of a few hundred offers from the shipped snapshot."""
    copytree(Path(_first_morning().name), folder, dirs_exist_ok=True)
    return World(folder, _truth())


def make_published_world(folder: Path) -> World:
    """A world with one good version of yesterday."""
    copytree(Path(_first_night().name), folder, dirs_exist_ok=True)
    made = World(folder, _truth())
    made.next_day()
    return made


@cache
def _first_night() -> "TemporaryDirectory[str]":
    """The files of a world after its first refresh, written once per process."""
    made = TemporaryDirectory()
    assert refresh(make_world(Path(made.name)).order()).outcome == "published"
    return made


@cache
def _first_morning() -> "TemporaryDirectory[str]":
    """The files of a new world, written once per process."""
    catalog, names, made = snapshot(), _names(), TemporaryDirectory()
    rows: Mapping[str, list[Any]] = {
        "offers": list(_offers()),
        "instance_types": [t for key, t in catalog.instance_types.items() if key in names],
        "gpus": list(catalog.gpus.values()),
        "achieved": list(catalog.achieved.values()),
    }
    small = {name: list(getattr(catalog, name)) for name in TABLES if name not in rows}
    small["egress"] = small["egress"][:1]
    write_catalog(Path(made.name) / "base", {**rows, **small})
    _write_canaries(Path(made.name) / "canaries.csv")
    return made


def _names() -> set[tuple[str, str]]:
    return {(provider, name) for provider in TYPES for name in TYPES[provider]}


@cache
def _offers() -> tuple[Offer, ...]:
    names = _names()
    return tuple(
        replace(o, as_of=min(o.as_of, "2026-08-21"))
        for o in snapshot().offers
        if (o.provider, o.instance_type) in names and o.kind != "derived"
        if o.market in ("on_demand", "spot")
    )


def _truth() -> dict[str, list[Offer]]:
    truth: dict[str, list[Offer]] = {name: [] for name in NAMES}
    for offer in _offers():
        truth[offer.provider].append(replace(offer, kind="quote", flag="", uncertainty=0.0))
    return truth


def _write_canaries(path: Path) -> None:
    with CANARIES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    kept = [row for row in rows[1:] if row[1] in TYPES[row[0]]]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([rows[0], *kept])
