"""Nights of lies, told by the servers of three clouds to the real clients.

Each lie changes an honest price list: one row, a machine, a region or all; for a night, or a little
more each night. The world is that of `world.py`: its tables, all regions of its machines.
"""

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any
from unittest.mock import patch

from recommender.catalogs.refresh.report import ProviderReport
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store, newest_good
from tests.catalogs.providers.aws.full import FullCloud
from tests.catalogs.providers.aws.server import serving
from tests.catalogs.providers.aws.test_prices import dimension_of
from tests.catalogs.providers.aws.test_random_faults import Late
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp import skus as gcp_skus
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.refresh.servers import http_server
from tests.catalogs.refresh.world import make_world

Raw = dict[str, Any]
Key = tuple[str, str, str, str]


@dataclass
class Row:
    """A price of a list, wherever it stands."""

    raw: Raw
    name: str  # of the machine, or of the part
    region: str
    market: str
    usd: float

    def set(self, usd: float) -> None:
        """Write another price into the list."""
        if "pricingInfo" in self.raw:
            gcp_skus.priced(self.raw, usd)
        elif "SpotPrice" in self.raw:
            self.raw["SpotPrice"] = f"{usd:.6f}"
        elif "terms" in self.raw:
            dimension_of(self.raw)["pricePerUnit"] = {"USD": f"{usd:.10f}"}
        else:
            self.raw["retailPrice"] = self.raw["unitPrice"] = usd


def gcp_row(raw: Raw) -> Row:
    """A SKU."""
    name = raw["description"].partition(" running in ")[0].partition(" attached to ")[0]
    spot = "Preemptible" in raw["description"]
    price = raw["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]
    usd = int(price["units"]) + price["nanos"] / 1e9
    market = "spot" if spot else "on_demand"
    return Row(raw, name, raw["serviceRegions"][0], market, usd)


def azure_row(raw: Raw) -> Row:
    """A retail price."""
    market = "spot" if raw["meterName"].endswith(" Spot") else "on_demand"
    return Row(raw, raw["armSkuName"], raw["armRegionName"], market, raw["retailPrice"])


def aws_rows(lists: Sequence[Raw]) -> list[Row]:
    """Items of the price list and spot quotes."""
    found = []
    for raw in lists:
        if "SpotPrice" in raw:
            region = raw["AvailabilityZone"][:-1]
            found.append(Row(raw, raw["InstanceType"], region, "spot", float(raw["SpotPrice"])))
        else:
            about, usd = raw["product"]["attributes"], dimension_of(raw)["pricePerUnit"]["USD"]
            found.append(
                Row(raw, about["instanceType"], about["regionCode"], "on_demand", float(usd))
            )
    return found


Lists = list[Raw]
Lie = Callable[[list[Row], Lists, Random, int], None]  # rows, their list, random, number of night


@dataclass
class Cloud:
    """A provider's honest list, and how it is served."""

    name: str
    honest: Lists
    rows: Callable[[Lists], list[Row]]
    serve: Callable[[Lists, datetime], Any]  # a context with a maker of clients


@contextmanager
def serve_gcp(lists: Lists, now: datetime) -> Iterator[Any]:
    """Google's price list, in force since some hours."""
    for raw in lists:
        for info in raw["pricingInfo"]:
            ahead = timedelta(days=info.get("ahead", 0)) - timedelta(hours=6)
            info["effectiveTime"] = f"{now + ahead:%Y-%m-%dT%H:%M:%SZ}"
            info.pop("ahead", None)
    with http_server(gcp_skus.pages_of(lists)) as server:
        yield lambda: gcp_skus.client(server)


@contextmanager
def serve_azure(lists: Lists, now: datetime) -> Iterator[Any]:
    """Azure's retail prices."""
    with http_server(azure_items.server_of(lists)) as server:
        yield lambda: azure_items.client(server)


def aws_server(cloud: FullCloud) -> Callable[[Lists, datetime], Any]:
    """AWS's services, which are made once."""

    @contextmanager
    def serve(lists: Lists, now: datetime) -> Iterator[Any]:
        cloud.items = [raw for raw in lists if "terms" in raw]
        cloud.spot = {region: [] for region in cloud.spot}
        for raw in lists:
            if "SpotPrice" in raw:
                cloud.spot[raw["AvailabilityZone"][:-1]].append(raw)
        cloud.prices_changed()
        with serving(cloud):
            own = {f"AWS_ENDPOINT_URL_{service}": cloud.url for service in ("EC2", "PRICING")}
            with patch.dict(os.environ, own):
                yield lambda: Late(cloud, now)

    return serve


class Nights:
    """A store with one honest night, and what becomes of lies after it."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud, self.folder = cloud, folder
        self.world = make_world(folder / "world")
        report = self._night(Store(folder / "honest"), cloud.honest, NOW)
        assert report.result != "kept", report  # else no lie would be heard
        self.honest = pickle.dumps(cloud.honest)
        self.truth = {key: usd for key, (usd, _) in self.offered(Store(folder / "honest")).items()}
        assert len(self.truth) > 100

    def offered(self, store: Store) -> dict[Key, tuple[float, str]]:
        """What is offered of the provider: price and date."""
        return {
            (o.instance_type, o.region, o.zone, o.market): (o.usd_per_hour, o.as_of)
            for o in newest_good(store).catalog.offers
            if o.provider == self.cloud.name
        }

    def _night(self, store: Store, lists: Lists, now: datetime) -> ProviderReport:
        with self.cloud.serve(lists, now) as maker:
            order = RefreshRequest(
                store, {self.cloud.name: maker}, base=self.world.base,
                canaries=self.world.folder / "canaries.csv", clock=lambda: now,
            )  # fmt: skip
            (report,) = refresh(order).providers
        return report

    def after(self, name: str, lie: Lie, nights: int = 1) -> "Outcome":
        """What is published after some nights of a lie."""
        store = Store(self.folder / "lies" / name.replace("/", "-").replace(" ", "-"))
        copytree(self.folder / "honest", store.root)
        wrong: dict[Any, float] = {}
        silent = 0
        for number in range(1, nights + 1):
            lists, random = pickle.loads(self.honest), Random(f"{name} {number}")
            lie(self.cloud.rows(lists), lists, random, number)
            now = NOW + timedelta(days=number)
            report = self._night(store, lists, now)
            said = report.alerts or report.reasons or report.failed
            found, today = self.offered(store), now.date().isoformat()
            new = {key: usd for key, (usd, as_of) in found.items() if as_of == today}
            true = {key: self.truth.get(key, 0.01) for key in new}
            here = {key: max(usd / true[key], true[key] / usd) for key, usd in new.items()}
            here = {key: factor for key, factor in here.items() if factor > 1.001}
            lost = self.truth.keys() - found.keys()
            silent += len(here) + len(lost) if not said else 0
            wrong |= here
        worst = max(wrong.values(), default=1.0)
        return Outcome(name, len(wrong), sum(f >= 1.1 for f in wrong.values()), worst, silent)


@dataclass(frozen=True)
class Outcome:
    """What a lie led to: wrong prices published, those off by a tenth, wrong or lost in silence."""

    name: str
    wrong: int
    far: int
    worst: float
    silent: int


SCOPES = ("a row", "a machine", "a region", "all")


def middle(rows: Sequence[Row], market: str) -> Row:
    """A row in the middle of the market's."""
    own = sorted((r for r in rows if r.market == market), key=lambda r: (r.name, r.region))
    return own[len(own) // 2]


def some(rows: Sequence[Row], market: str, scope: str) -> list[Row]:
    """The rows that are lied about: one, those of a machine, of a region, or all."""
    one = middle(rows, market)
    kept = {
        "a row": lambda r: r is one,
        "a machine": lambda r: r.name == one.name,
        "a region": lambda r: r.region == one.region,
        "all": lambda r: True,
    }[scope]
    return [r for r in rows if r.market == market and kept(r)]


def priced(market: str, scope: str, factor: Callable[[Random, int], float]) -> Lie:
    """Prices of a market are multiplied."""

    def lie(rows: list[Row], lists: Lists, random: Random, night: int) -> None:
        for row in some(rows, market, scope):
            row.set(row.usd * factor(random, night))

    return lie


def partly(market: str, share: float, change: Callable[[float, Random], float]) -> Lie:
    """A share of a market's prices is changed."""

    def lie(rows: list[Row], lists: Lists, random: Random, night: int) -> None:
        for row in rows:
            if row.market == market and random.random() < share:
                row.set(change(row.usd, random))

    return lie


def without(market: str, scope: str) -> Lie:
    """Rows are missing."""

    def lie(rows: list[Row], lists: Lists, random: Random, night: int) -> None:
        gone = {id(r.raw) for r in some(rows, market, scope)}
        lists[:] = [raw for raw in lists if id(raw) not in gone]

    return lie


def changed(change: Callable[[Raw], None], market: str, scope: str, usd: float = 1.0) -> Lie:
    """Rows say something else in a field, and have another price."""

    def lie(rows: list[Row], lists: Lists, random: Random, night: int) -> None:
        for row in some(rows, market, scope):
            row.set(row.usd * usd)
            change(row.raw)

    return lie


def twin(change: Callable[[Raw], None], market: str, scope: str, usd: float) -> Lie:
    """Rows come twice, once at another price and with another field."""

    def lie(rows: list[Row], lists: Lists, random: Random, night: int) -> None:
        for row in some(rows, market, scope):
            more = Row(deepcopy(row.raw), row.name, row.region, row.market, row.usd)
            more.set(row.usd * usd)
            change(more.raw)
            lists.append(more.raw)

    return lie


def swapped(market: str, apart: int) -> Lie:
    """Two regions have each other's prices of a machine or part."""

    def lie(rows: list[Row], lists: Lists, random: Random, night: int) -> None:
        name = middle(rows, market).name
        own = sorted((r for r in rows if (r.name, r.market) == (name, market)), key=lambda r: r.usd)
        one, other = own[0], own[-apart]
        one.set(other.usd)
        other.set(one.usd)

    return lie


def old_lies() -> Iterator[tuple[str, Lie, int]]:
    """Kinds of lies that were told before: one factor on a row, a machine, a region or all."""
    for market in ("on_demand", "spot"):
        for scope in SCOPES:
            for factor in (0.125, 0.75, 0.89, 1.11, 1.2, 2.0):
                times = lambda random, night, factor=factor: factor  # noqa: E731
                yield f"{market} {scope} x{factor}", priced(market, scope, times), 1


def new_lies() -> Iterator[tuple[str, Lie, int]]:
    """Creep, mass moves, rounded lists, rows that vanish, prices of another region."""
    for market in ("on_demand", "spot"):
        for factor in (1.049, 1.03, 0.955):
            for scope in ("a row", "a machine", "all"):
                times = lambda random, night, factor=factor: factor**night  # noqa: E731
                yield f"{market} {scope} creeps x{factor}", priced(market, scope, times), 5
        for share in (0.3, 0.5, 0.75):
            for factor in (0.92, 0.955, 1.08):
                times = lambda usd, random, factor=factor: usd * factor  # noqa: E731
                yield f"{market} {share:.0%} x{factor}", partly(market, share, times), 1
            drift = lambda usd, random: usd * random.uniform(0.9, 1.1)  # noqa: E731
            yield f"{market} {share:.0%} x0.9 to 1.1", partly(market, share, drift), 1
        for digits in (0, 1, 2):
            cut = lambda usd, random, digits=digits: max(round(usd, digits), 0.01)  # noqa: E731
            yield f"{market} rounded to {digits} digits", partly(market, 1.0, cut), 1
        for scope in SCOPES:
            yield f"{market} {scope} gone", without(market, scope), 1
        for apart in (1, 2):
            yield f"{market} swapped with the {apart}. highest", swapped(market, apart), 1
