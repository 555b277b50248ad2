"""A small AWS: price lists, EC2, quotas, public files, and its bad days."""

import fnmatch
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import unquote

from recommender.catalogs.providers.aws.provider import Places
from recommender.catalogs.providers.contract import Wanted
from recommender.catalogs.providers.public.aws import LOCATIONS
from recommender.catalogs.schema import InstanceType
from tests.catalogs.providers.aws import wire
from tests.shipped import snapshot

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
CANARY = "canary/Secret+0123456789abcdefghijklmnop"
TYPES = (
    "g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge", "g6.xlarge", "g6e.48xlarge",
    "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5en.48xlarge", "c5.2xlarge",
)  # fmt: skip
REGIONS = ("eu-west-1", "us-east-1", "us-west-2")
SHUT = "me-south-1"
_AWS_GPU = {"A100-80GB": "A100", "Trainium1": "Trainium"}
_IDS = {"eu-west-1": "euw1", "us-east-1": "use1", "us-west-2": "usw2"}

Item = dict[str, Any]
Answer = tuple[int, bytes]


@dataclass
class Cloud:
    """What AWS would answer; tests change it, and put bad days into `trouble`."""

    types: dict[str, InstanceType]
    infos: dict[str, Item]
    items: list[Item]
    spot: dict[str, list[Item]]  # by region
    blocks: dict[str, list[Item]]
    quotas: dict[str, list[Item]]
    advisor: Any
    regions: tuple[str, ...]
    page: int = 7
    url: str = ""
    gone: set[tuple[str, str]] = field(default_factory=set)  # (type, region) not offered
    trouble: dict[tuple[str, str], list[Any]] = field(default_factory=lambda: defaultdict(list))
    seen: Counter[str] = field(default_factory=Counter)
    released: threading.Event = field(default_factory=threading.Event)

    def wanted(self, **more: Any) -> Wanted:
        """What a refresh would ask for."""
        gpus = snapshot().gpus
        return Wanted(types=self.types, gpus=gpus, now=NOW, **more)

    def item(self, name: str, region: str) -> Item:
        """The on-demand item of a machine in the price list."""
        return next(
            i
            for i in self.items
            if i["product"]["attributes"]["instanceType"] == name
            and i["product"]["attributes"]["regionCode"] == region
        )

    def quote(self, name: str, zone: str) -> Item:
        """The spot price of a machine in a zone, by the zone's name."""
        return next(
            q
            for q in self.spot[zone[:-1]]
            if (q["InstanceType"], q["AvailabilityZone"]) == (name, zone)
        )

    def answer(self, action: str, region: str, query: Item) -> Answer | str:
        """Answer a call, or have a bad day."""
        self.seen[action] += 1
        for key in ((action, region), (action, "")):
            if self.trouble[key]:
                bad = self.trouble[key][0]
                if bad != "always down":
                    self.trouble[key].pop(0)
                return self.bad(bad, action, region, query)
        return 200, self._good(action, region, query)

    def bad(self, bad: Any, action: str, region: str, query: Item) -> Answer | str:
        """An answer of a bad day: wrong bytes with a status, or what the server is to do."""
        if callable(bad):
            return bad(self._good(action, region, query))
        if bad == "hang":
            self.released.wait(10)
            return "drop"
        if bad in ("drop", "truncate"):
            return str(bad)
        if bad in (500, "always down"):
            return 500, b"<html>Internal Server Error</html>"
        if action in ("GetProducts", "ListServiceQuotas"):
            return 400, wire.json_error(bad)
        return (503 if bad == "RequestLimitExceeded" else 400), wire.ec2_error(bad)

    def _good(self, action: str, region: str, query: Item) -> bytes:
        made: Callable[[str, Item], bytes] = getattr(self, f"_{action}")
        return made(region, query)

    def _GetProducts(self, region: str, query: Item) -> bytes:
        found = [item for item in self.items if _passes(item, query["Filters"])]
        start, size = int(query.get("NextToken", 0)), min(self.page, query["MaxResults"])
        page: Item = {"FormatVersion": "aws_v1"}
        page["PriceList"] = [json.dumps(item) for item in found[start : start + size]]
        if start + size < len(found):
            page["NextToken"] = str(start + size)
        return json.dumps(page).encode()

    def _ListServiceQuotas(self, region: str, query: Item) -> bytes:
        start = int(query.get("NextToken", 0))
        found = self.quotas.get(region, [])
        page: Item = {"Quotas": found[start : start + self.page]}
        if start + self.page < len(found):
            page["NextToken"] = str(start + self.page)
        return json.dumps(page).encode()

    def _DescribeRegions(self, region: str, query: Item) -> bytes:
        rows = [{"RegionName": name, "OptInStatus": "opt-in-not-required"} for name in self.regions]
        rows.append({"RegionName": SHUT, "OptInStatus": "not-opted-in"})
        return wire.ec2_answer("DescribeRegions", {"Regions": rows})

    def _DescribeAvailabilityZones(self, region: str, query: Item) -> bytes:
        rows = [
            {"ZoneName": name, "ZoneId": zone, "RegionName": region, "State": "available",
             "ZoneType": "availability-zone"}
            for name, zone in zones(region).items()
        ]  # fmt: skip
        return wire.ec2_answer("DescribeAvailabilityZones", {"AvailabilityZones": rows})

    def _DescribeInstanceTypes(self, region: str, query: Item) -> bytes:
        rows = [
            info
            for name, info in sorted(self.infos.items())
            if (name, region) not in self.gone and _named(name, query)
        ]
        return self._paged("DescribeInstanceTypes", "InstanceTypes", rows, query)

    def _DescribeInstanceTypeOfferings(self, region: str, query: Item) -> bytes:
        kind = "availability-zone-id"
        rows = [
            {"InstanceType": name, "LocationType": kind, "Location": zone}
            for name in sorted(self.infos)
            for zone in zones(region).values()
            if not {(name, region), (name, zone)} & self.gone and _named(name, query)
        ]
        return self._paged("DescribeInstanceTypeOfferings", "InstanceTypeOfferings", rows, query)

    def _DescribeSpotPriceHistory(self, region: str, query: Item) -> bytes:
        asked = {v[0] for k, v in query.items() if k.startswith("InstanceType.")}
        rows = [q for q in self.spot.get(region, []) if q["InstanceType"] in asked]
        return self._paged("DescribeSpotPriceHistory", "SpotPriceHistory", rows, query)

    def _DescribeCapacityBlockOfferings(self, region: str, query: Item) -> bytes:
        name = query["InstanceType"][0]
        rows = [b for b in self.blocks.get(region, []) if b["InstanceType"] == name]
        action = "DescribeCapacityBlockOfferings"
        return wire.ec2_answer(action, {"CapacityBlockOfferings": rows})

    def _GetSpotPlacementScores(self, region: str, query: Item) -> bytes:
        asked = [v[0] for k, v in query.items() if k.startswith("InstanceType.")]
        assert len(asked) >= 3
        rows = [
            {"Region": name, "AvailabilityZoneId": zone, "Score": score}
            for name in self.regions[:2]
            for score, zone in zip((3, 9), zones(name).values(), strict=True)
        ]
        return self._paged("GetSpotPlacementScores", "SpotPlacementScores", rows, query)

    def _paged(self, action: str, name: str, rows: list[Item], query: Item) -> bytes:
        start = int(query.get("NextToken", ["0"])[0])
        size = min(self.page, int(query.get("MaxResults", ["1000"])[0]))
        fields: Item = {name: rows[start : start + size]}
        # EC2's spot price history ends with an empty token, others with none.
        more = start + size < len(rows)
        if more or action == "DescribeSpotPriceHistory":
            fields["NextToken"] = str(start + size) if more else ""
        return wire.ec2_answer(action, fields)

    def file(self, path: str) -> bytes | None:
        """A public file."""
        if path == "/spot-advisor-data.json":
            return json.dumps(self.advisor).encode()
        found = re.fullmatch(r"/pages/ec2-ondemand-without-sec-sel/([^/]+)/Linux/index.json", path)
        location = unquote(found[1]) if found else ""
        regions = [name for name, words in LOCATIONS.items() if words == location]
        return _document(self.items, regions[0], location) if regions else None

    @property
    def places(self) -> Places:
        """Where its public files are."""
        return Places(f"{self.url}/pages", f"{self.url}/spot-advisor-data.json")


def zones(region: str) -> dict[str, str]:
    """Zone ids by name: "us-east-1a" is use1-az2 for this account."""
    parts = region.split("-")
    short = {"southeast": "se", "southwest": "sw", "northeast": "ne", "northwest": "nw"}
    place = short.get(parts[1], parts[1][:2])  # south and southeast are not one zone id
    head = _IDS.get(region) or "".join([parts[0], place, *parts[2:]])
    return {f"{region}{letter}": f"{head}-az{n}" for letter, n in (("a", 2), ("b", 1))}


def _named(name: str, query: Item) -> bool:
    values = [v[0] for k, v in query.items() if k.startswith("Filter.1.Value")]
    return any(fnmatch.fnmatchcase(name, value) for value in values)


def _passes(item: Item, filters: list[Item]) -> bool:
    attributes = item["product"]["attributes"]
    return all(
        attributes.get(f["Field"]) in f["Value"].split(",")
        if f["Type"] == "ANY_OF"
        else attributes.get(f["Field"]) == f["Value"] or attributes.get("mutant") == "yes"
        for f in filters
    )


def info_of(machine: InstanceType) -> Item:
    """A machine as describe-instance-types gives it."""
    info: Item = {
        "InstanceType": machine.instance_type,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "ProcessorInfo": {"SupportedArchitectures": [machine.arch]},
        "VCpuInfo": {"DefaultVCpus": machine.vcpus},
        "MemoryInfo": {"SizeInMiB": round(machine.memory_gib * 1024)},
        "NetworkInfo": {
            "EfaSupported": machine.network_kind == "rdma",
            "NetworkCards": [
                {
                    "BaselineBandwidthInGbps": machine.network_gbit_per_s or 1.0,
                    "PeakBandwidthInGbps": machine.network_gbit_per_s or 1.0,
                }
            ],
        },
    }
    if machine.gpu:
        gpu = {
            "Name": _AWS_GPU.get(machine.gpu, machine.gpu),
            "Manufacturer": "NVIDIA",
            "Count": machine.gpus,
            "LogicalGpuCount": machine.gpus,
            "GpuPartitionSize": 1.0,
            "MemoryInfo": {"SizeInMiB": machine.gpu_memory_mib},
        }
        total = machine.gpus * machine.gpu_memory_mib
        info["GpuInfo"] = {"Gpus": [gpu], "TotalGpuMemoryInMiB": total}
    if machine.local_disk_gib:
        size = round(machine.local_disk_gib * 2**30 / 1e9)
        info["InstanceStorageInfo"] = {"TotalSizeInGB": size, "Disks": [{"Type": "ssd"}]}
    if machine.instance_type.startswith(("p4", "p5")):
        info["SupportedUsageClasses"].append("capacity-block")
    return info


def item_of(machine: InstanceType, region: str, usd: float) -> Item:
    """An item of the price list as `get_products` gives it."""
    prefix = {"us-east-1": "", "eu-west-1": "EU-", "us-west-2": "USW2-"}.get(region, "APS1-")
    attributes = {
        "instanceType": machine.instance_type, "regionCode": region, "operatingSystem": "Linux",
        "tenancy": "Shared", "preInstalledSw": "NA", "licenseModel": "No License required",
        "capacitystatus": "Used", "marketoption": "OnDemand", "locationType": "AWS Region",
        "usagetype": f"{prefix}BoxUsage:{machine.instance_type}", "operation": "RunInstances",
        "vcpu": str(machine.vcpus), "memory": f"{machine.memory_gib:,.0f} GiB",
    }  # fmt: skip
    if machine.gpu:
        attributes["gpu"] = str(machine.gpus)
    sku = f"SKU-{machine.instance_type}-{region}"
    dimension = {
        "unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": [],
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7", "pricePerUnit": {"USD": f"{usd:.10f}"},
        "description": f"${usd} per On Demand Linux {machine.instance_type} Instance Hour",
    }  # fmt: skip
    term = {
        "priceDimensions": {f"{sku}.JRTCKXETXF.6YS6EN2CT7": dimension},
        "effectiveDate": "2026-11-01T00:00:00Z", "offerTermCode": "JRTCKXETXF",
    }  # fmt: skip
    return {
        "product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": sku},
        "serviceCode": "AmazonEC2", "version": "20261120", "publicationDate": "2026-11-20",
        "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
    }  # fmt: skip


def dimension_of(item: Item) -> Item:
    """The one price of an item."""
    (term,) = item["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    return dimension  # type: ignore[no-any-return]


def _document(items: list[Item], region: str, location: str) -> bytes:
    """The list prices of a region, as the price pages read them."""
    rows = {
        item["product"]["sku"]: {
            "Instance Type": item["product"]["attributes"]["instanceType"],
            "price": dimension_of(item)["pricePerUnit"].get("USD", ""),
        }
        for item in items
        if item["product"]["attributes"]["regionCode"] == region
    }
    return json.dumps({"regions": {location: rows}}).encode()


@cache
def _listed() -> tuple[tuple[tuple[str, str], float], ...]:
    """The shipped on-demand prices by machine and region."""
    listed = {
        (o.instance_type, o.region): o.usd_per_hour
        for o in snapshot().offers
        if o.provider == "aws" and o.market == "on_demand"
    }
    return tuple(sorted(listed.items()))


def make_cloud(names: tuple[str, ...] = TYPES, regions: tuple[str, ...] = REGIONS) -> Cloud:
    """An AWS of a few regions with the prices of the shipped snapshot."""
    catalog = snapshot()
    types = {name: catalog.instance_types["aws", name] for name in names}
    found = {key: usd for key, usd in _listed() if key[0] in types and key[1] in regions}
    spot: dict[str, list[Item]] = {region: [] for region in regions}
    for (name, region), usd in found.items():
        if types[name].gpu:
            spot[region] += quotes_of(name, region, usd)
    rows = [
        {"QuotaName": "Running On-Demand P instances", "QuotaCode": "L-417A185B", "Value": 192.0},
        {"QuotaName": "All P5 Spot Instance Requests", "QuotaCode": "L-C4BD4855", "Value": 0.0},
        {"QuotaName": "Running On-Demand F instances", "QuotaCode": "L-74FC7D96", "Value": 64.0},
        {"QuotaName": "Running Dedicated p5 Hosts", "QuotaCode": "L-1", "Value": 1.0},
    ]
    advisor = {
        "ranges": [
            {"index": i, "label": label, "dots": i, "max": 5 * i + 6}
            for i, label in enumerate(("<5%", "5-10%", "10-15%", "15-20%", ">20%"))
        ],
        "spot_advisor": {
            region: {"Linux": {name: {"s": 60, "r": 3} for name in types}} for region in regions
        },
    }
    return Cloud(
        types=types,
        infos={name: info_of(machine) for name, machine in types.items()},
        items=[item_of(types[name], region, usd) for (name, region), usd in found.items()],
        spot=spot,
        blocks={"us-east-1": [block_of("p5.48xlarge", "us-east-1a", "900.48")]},
        quotas={region: rows for region in regions},
        advisor=advisor,
        regions=regions,
    )


def quotes_of(name: str, region: str, usd: float) -> list[Item]:
    """Spot prices of a machine: 0.3 of the list price in one zone, 0.45 in the other."""
    return [
        {
            "InstanceType": name, "AvailabilityZone": zone, "AvailabilityZoneId": zone_id,
            "ProductDescription": "Linux/UNIX", "SpotPrice": f"{usd * share:.6f}",
            "Timestamp": NOW - timedelta(days=20),
        }
        for (zone, zone_id), share in zip(zones(region).items(), (0.3, 0.45), strict=True)
    ]  # fmt: skip


def block_of(name: str, zone: str, fee: str, days: int = 1) -> Item:
    """An offering of a Capacity Block."""
    return {
        "CapacityBlockOfferingId": "cb-1", "InstanceType": name, "AvailabilityZone": zone,
        "InstanceCount": 1, "StartDate": NOW + timedelta(days=days),
        "EndDate": NOW + timedelta(days=days + 1), "CapacityBlockDurationHours": 24,
        "UpfrontFee": fee, "CurrencyCode": "USD", "Tenancy": "default",
    }  # fmt: skip
