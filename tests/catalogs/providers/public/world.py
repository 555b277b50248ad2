"""A server that speaks the formats of all public lists, at the prices of the shipped catalog."""

import csv
import io
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from recommender.catalogs.providers.azure.provider import Azure
from recommender.catalogs.providers.clients import Maker
from recommender.catalogs.providers.contract import Provider, Wanted
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.providers.public import aws, gpuhunt, ovh, skypilot
from recommender.catalogs.schema import Offer
from tests.catalogs.providers.azure.items import item, server_of
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.refresh.servers import Asked, Reply, Server, http_server
from tests.shipped import every_cloud

VERSION = "20261121-4711"  # of the day of NOW
SHA = "0123456789abcdef" * 2 + "01234567"
SKY_NAMES = ("hyperstack", "jarvislabs", "lium", "seeweb", "vast")
USD_PER_EUR = 1.25
PATIENCE = Patience(tries=2, first_wait_s=0.0, sleep=lambda seconds: None)
Rows = list[dict[str, Any]]
_HEAD = (
    "instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory",
    "spot", "disk_size", "gpu_vendor", "flags", "cpu_arch", "provider_data",
)  # fmt: skip
_CARDS = {word: card for card, word in gpuhunt._RUNPOD.items()}


def shipped(provider: str) -> list[Offer]:
    """The shipped offers of a provider with a price of its own: none derived from others."""
    priced = (o for o in every_cloud().offers if o.provider == provider and o.kind != "derived")
    return [o for o in priced if o.market in ("on_demand", "spot")]


def gpuhunt_rows(provider: str) -> Rows:
    """A provider's rows as gpuhunt publishes them."""
    rows = []
    for offer in shipped(provider):
        machine = every_cloud().type_of(offer)
        name, location = offer.instance_type, offer.zone or offer.region
        if provider == "runpod":
            name, location = _CARDS[name.split("_")[1]], "US-KS-2"
        if provider == "nebius":
            name = name.replace("_", " ")
        if provider == "gcp" and not offer.zone:
            location = f"{offer.region}-a"
        rows.append(
            {
                "instance_name": name.partition("+")[0],
                "location": location,
                "price": offer.usd_per_hour,
                "cpu": machine.vcpus,
                "memory": machine.memory_gib,
                "gpu_count": machine.gpus,
                "gpu_name": machine.gpu,
                "gpu_memory": machine.gpu_memory_mib / 1024,
                "spot": offer.market == "spot",
                "flags": "",
            }
        )
    return rows


def zipped(provider: str, rows: Rows) -> bytes:
    """The published file of these rows."""
    text, packed = io.StringIO(newline=""), io.BytesIO()
    table = csv.DictWriter(text, _HEAD, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(f"{gpuhunt.NAMES[provider]}.csv", text.getvalue())
    return packed.getvalue()


def skypilot_rows(provider: str) -> Rows:
    """A provider's rows as SkyPilot publishes them: both markets in one row."""
    found: dict[tuple[str, str, str], dict[str, Any]] = defaultdict(dict)
    for offer in shipped(provider):
        machine = every_cloud().type_of(offer)
        column = "SpotPrice" if offer.market == "spot" else "Price"
        found[offer.instance_type, offer.region, offer.zone] |= {
            "InstanceType": offer.instance_type,
            "AcceleratorName": machine.gpu,
            "AcceleratorCount": machine.gpus,
            "Region": offer.region,
            "AvailabilityZone": offer.zone,
            column: offer.usd_per_hour / (USD_PER_EUR if provider == "seeweb" else 1.0),
        }
    return list(found.values())


def plain_rows(provider: str) -> Rows:
    """A provider's machines and prices, in no list's own columns."""
    return [
        {"instance_name": o.instance_type, "location": o.region, "price": o.usd_per_hour,
         "spot": o.market == "spot"}
        for o in shipped(provider)
    ]  # fmt: skip


def order_catalog(rows: Rows, currency: str = "USD") -> Any:
    """OVHcloud's order catalog: GPU instances by the hour, by the month, and other addons."""
    technical = {"gpu": {"model": "H100", "number": 1}, "os": {"family": "linux"}}
    brick = {"commercial": {"brick": "gpu"}, "technical": technical}
    windows = {**brick, "technical": {**technical, "os": {"family": "windows"}}}
    addons: list[Any] = [
        {"planCode": "ai-app.l4-1-gpu", "pricings": [{"price": 1}], "blobs": None},
        {"planCode": "backup", "pricings": [], "blobs": {"commercial": {"brick": None}}},
    ]
    for row in rows:
        name, usd = row["instance_name"], row["price"]
        price = round(usd * 1e8) if isinstance(usd, float) else usd
        hourly = [{"price": price, "interval": 1, "intervalUnit": "hour"}]
        addons += [
            {"planCode": f"{name}.consumption", "pricings": hourly, "blobs": brick},
            {"planCode": f"{name}.monthly.postpaid", "pricings": hourly, "blobs": brick},
            {"planCode": f"win-{name}.consumption", "pricings": hourly, "blobs": windows},
        ]
    return {"locale": {"currencyCode": currency, "subsidiary": "WE"}, "addons": addons}


def csv_text(rows: Rows) -> bytes:
    """The rows as SkyPilot's file."""
    head = (*skypilot._COLUMNS, "AvailabilityZone")
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, head, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode()


def document(location: str, prices: Mapping[str, float]) -> Any:
    """A region's list prices, as the price page reads them."""
    rows = {
        f"{name} key": {"rateCode": "X.Y.Z", "price": f"{usd:.10f}", "Instance Type": name}
        for name, usd in prices.items()
    }
    return {"manifest": {"serviceId": "ec2"}, "regions": {location: rows}, "sets": {}}


def feed(prices: Mapping[tuple[str, str], str]) -> Any:
    """The spot feed, by (type, region)."""
    by_region: dict[str, list[Any]] = defaultdict(list)
    for (name, region), usd in prices.items():
        columns = [
            {"name": "linux", "prices": {"USD": usd}},
            {"name": "mswin", "prices": {"USD": "99.0"}},
        ]
        by_region[region].append({"size": name, "valueColumns": columns})
    regions = [
        {"region": region, "instanceTypes": [{"type": "gpu", "sizes": sizes}]}
        for region, sizes in by_region.items()
    ]
    return {"vers": 0.01, "config": {"rate": "perhr", "regions": regions}}


@dataclass
class World:
    """What each list says; a path that begins like one of `down` is not answered."""

    gpuhunt: dict[str, Rows] = field(default_factory=dict)
    sky: dict[str, Rows] = field(default_factory=dict)
    listed: dict[str, dict[str, float]] = field(default_factory=dict)  # AWS, by region
    spot: dict[tuple[str, str], str] = field(default_factory=dict)
    azure: Sequence[dict[str, Any]] = ()
    ovh: Rows = field(default_factory=list)
    version: str = VERSION
    down: tuple[str, ...] = ()

    def answer(self, asked: Asked) -> Reply:
        """Answer like the list whose path was asked."""
        path = unquote(asked.path)
        if path.startswith(self.down):
            return Reply({"error": "down"}, status=503)
        head, _, rest = path.lstrip("/").partition("/")
        return getattr(self, f"_{head}")(rest, asked)

    def _v3(self, rest: str, asked: Asked) -> Reply:
        name, _, file = rest.partition("/")
        ours = next(mine for mine, theirs in gpuhunt.NAMES.items() if theirs == name)
        if file == "version":
            return Reply(f"{self.version}\n".encode())
        assert file == f"{self.version}/catalog.zip"
        return Reply(zipped(ours, self.gpuhunt[ours]))

    def _commits(self, rest: str, asked: Asked) -> Reply:
        assert asked.query["path"].startswith("catalogs/v8/")
        committed = {"committer": {"date": "2026-11-20T07:30:00Z"}}
        return Reply([{"sha": SHA, "commit": committed}])

    def _files(self, rest: str, asked: Asked) -> Reply:
        sha, _, path = rest.partition("/")
        assert sha == SHA
        return Reply(csv_text(self.sky[path.split("/")[2]]))

    def _ec2(self, rest: str, asked: Asked) -> Reply:
        location = rest.split("/")[1]
        region = next(name for name, words in aws.LOCATIONS.items() if words == location)
        return Reply(document(location, self.listed.get(region, {})))

    def _feed(self, rest: str, asked: Asked) -> Reply:
        return Reply(feed(self.spot))

    def _rates(self, rest: str, asked: Asked) -> Reply:
        rates = f"<Cube currency='USD' rate='{USD_PER_EUR}'/><Cube currency='JPY' rate='190'/>"
        return Reply(f"<Cube time='2026-11-20'>{rates}</Cube>".encode())

    def _order(self, rest: str, asked: Asked) -> Reply:
        return Reply(order_catalog(self.ovh))

    def _retail(self, rest: str, asked: Asked) -> Reply:
        return server_of(self.azure)(asked)


def whole_world() -> World:
    """Every list at the shipped prices."""
    found = World(
        gpuhunt={name: gpuhunt_rows(name) for name in gpuhunt.NAMES},
        sky={name: skypilot_rows(name) for name in (*SKY_NAMES, "aws")},
        ovh=plain_rows("ovh"),
        azure=[
            item(o.instance_type, o.region, o.usd_per_hour, spot=o.market == "spot")
            for o in shipped("azure")
        ],
    )
    least: dict[tuple[str, str], float] = {}
    for offer in shipped("aws"):
        key = (offer.instance_type, offer.region)
        if offer.market == "on_demand":
            found.listed.setdefault(offer.region, {})[offer.instance_type] = offer.usd_per_hour
        elif offer.market == "spot":
            least[key] = min(offer.usd_per_hour, least.get(key, offer.usd_per_hour))
    found.spot = {key: f"{usd:.4f}" for key, usd in least.items()}
    return found


def readers(address: str) -> dict[str, Maker]:
    """The real readers on a server of ours."""
    zones = skypilot.Places(f"{address}/files", f"{address}/commits", f"{address}/rates")
    places = aws.Places(f"{address}/ec2", f"{address}/feed", zones)

    def gpuhunt_of(name: str) -> Maker:
        return lambda: gpuhunt.GpuhuntCatalog(name, f"{address}/v3", PATIENCE)

    def sky_of(name: str) -> Maker:
        return lambda: skypilot.SkyPilotCatalog(name, zones, PATIENCE)

    def azure() -> Provider:
        return Azure(f"{address}/retail", PATIENCE)

    return {
        "aws": lambda: aws.AwsLists(places, PATIENCE),
        "azure": azure,
        "ovh": lambda: ovh.OvhCatalog("ovh", f"{address}/order", PATIENCE),
        **{name: gpuhunt_of(name) for name in gpuhunt.NAMES},
        **{name: sky_of(name) for name in SKY_NAMES},
    }


@contextmanager
def served(world: World) -> Iterator[Server]:
    """The lists of a world on a local server."""
    with http_server(world.answer) as server:
        yield server


def wanted(provider: str, **more: Any) -> Wanted:
    """All machines of a provider."""
    catalog = every_cloud()
    types = {
        machine.instance_type: machine
        for machine in catalog.instance_types.values()
        if machine.provider == provider
    }
    return Wanted(**{"types": types, "gpus": catalog.gpus, "now": NOW, **more})
