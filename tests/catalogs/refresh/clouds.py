"""Google Cloud and Azure as large as they are: price lists made back from the shipped prices.

The shipped prices were collected by others. Google's are taken apart into parts: host parts in
the proportions of us-central1, what is left of a family's smallest machine is its GPU's price.
So larger machines come out right only if they are added up right.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.schema import InstanceType
from tests.catalogs.providers.azure import items as azure_items
from tests.catalogs.providers.gcp.skus import Raw, sku
from tests.shipped import snapshot

# Core and GiB of RAM in us-central1, USD per hour; A3, A3Ultra and G4 are about right.
HOSTS = MappingProxyType(
    {
        "A2 Instance": (0.031611, 0.004237),
        "A3 Instance": (0.0255, 0.00222),
        "A3Plus Instance": (0.026924, 0.002344),
        "A3Ultra Instance": (0.0269, 0.0023),
        "G2 Instance": (0.024988, 0.002927),
        "G4 Instance": (0.02, 0.002),
        "N1 Predefined Instance": (0.031611, 0.004237),
        "N2 Instance": (0.031611, 0.004237),
        "E2 Instance": (0.02181159, 0.00292353),
        "Compute optimized": (0.03398, 0.00455),
        "C3 Instance": (0.03398, 0.00456),
        "T2D AMD Instance": (0.027502, 0.003686),
    }
)
FAMILIES = MappingProxyType(
    {
        "n2-standard": "N2 Instance",
        "e2-standard": "E2 Instance",
        "c2-standard": "Compute optimized",
        "c3-standard": "C3 Instance",
        "t2d-standard": "T2D AMD Instance",
    }
)
# The machine whose price gives the GPU's, the host that it has, and the GPU's name.
GPUS = MappingProxyType(
    {
        "a2-highgpu-1g": ("A2 Instance", "Nvidia Tesla A100 GPU"),
        "a2-ultragpu-1g": ("A2 Instance", "Nvidia Tesla A100 80GB GPU"),
        "a3-highgpu-8g": ("A3 Instance", "Nvidia H100 80GB GPU"),
        "a3-megagpu-8g": ("A3Plus Instance", "Nvidia H100 80GB Mega GPU"),
        "a3-ultragpu-8g-nolssd": ("A3Ultra Instance", "H200 141GB GPU"),
        "g2-standard-4": ("G2 Instance", "Nvidia L4 GPU"),
        "g4-standard-48": ("G4 Instance", "RTX 6000 96GB"),
        "n1-standard-8+1xT4": ("N1 Predefined Instance", "Nvidia Tesla T4 GPU"),
        "n1-standard-8+1xP4": ("N1 Predefined Instance", "Nvidia Tesla P4 GPU"),
        "n1-standard-8+1xP100": ("N1 Predefined Instance", "Nvidia Tesla P100 GPU"),
        "n1-standard-8+1xV100": ("N1 Predefined Instance", "Nvidia Tesla V100 GPU"),
    }
)
SSD_MONTH, SPOT_HOST, SPOT_SSD = 0.08, 0.25, 0.5

Prices = Mapping[tuple[str, str, str], float]


def shipped_prices(catalog: Catalog, provider: str) -> dict[tuple[str, str, str], float]:
    """The price of each machine by region and market that a refresh reads; the least over zones."""
    found: dict[tuple[str, str, str], float] = {}
    for o in catalog.offers:
        if o.provider == provider and o.market in ("on_demand", "spot"):
            key = (o.instance_type, o.region, o.market)
            found[key] = min(o.usd_per_hour, found.get(key, o.usd_per_hour))
    return found


def gcp_list(padding: int = 0) -> list[Raw]:
    """Google's price list, with so many rows for other things."""
    catalog = snapshot()
    types = {t.instance_type: t for t in catalog.instance_types.values() if t.provider == "gcp"}
    prices = shipped_prices(catalog, "gcp")
    regions = sorted({region for _, region, _ in prices})
    rows = [row for region in regions for row in _region(region, types, prices)]
    return [*rows, *other_skus(padding, regions)]


def _region(region: str, types: Mapping[str, InstanceType], prices: Prices) -> Iterator[Raw]:
    place = region.title()
    spot_vms = "attached to Spot Preemptible VMs"
    for market, prefix, behind in (("on_demand", "", ""), ("spot", "Spot Preemptible ", spot_vms)):
        at = _Market(region, market, types, prices)
        for host, (core, ram) in HOSTS.items():
            level = at.host_level(host)
            yield sku(f"{prefix}{host} Core running in {place}", core * level, "h", [region])
            yield sku(f"{prefix}{host} Ram running in {place}", ram * level, "GiBy.h", [region])
        text = " ".join(f"SSD backed Local Storage {behind} in {place}".split())
        yield sku(text, at.ssd_month(), "GiBy.mo", [region], usage="OnDemand")
        for name, (host, gpu) in GPUS.items():
            usd = at.gpu_usd(name, host)
            if usd is not None:
                text = " ".join(f"{gpu} {behind} running in {place}".split())
                yield sku(text, usd, "h", [region], group="GPU")
    if usd := prices.get(("a4-highgpu-8g", region, "spot")):
        text = f"A4 Nvidia B200 (1 gpu slice) running in {place}"
        yield sku(text, 16.11, "h", [region], group="GPU")
        yield sku(f"Spot Preemptible {text}", usd / 8, "h", [region], "OnDemand", "GPU")


class _Market:
    """What parts cost in a region and a market, taken back from the prices of machines."""

    def __init__(
        self, region: str, market: str, types: Mapping[str, InstanceType], prices: Prices
    ) -> None:
        self.region, self.market, self.types, self.all = region, market, types, prices

    def usd(self, name: str) -> float:
        """What a machine costs; 0 where it is not offered."""
        return self.all.get((name, self.region, self.market), 0.0)

    def host_level(self, host: str) -> float:
        """The price of a host as a share of that in us-central1."""
        core, ram = HOSTS[host]
        small, large = self.usd("g2-standard-4"), self.usd("g2-standard-8")
        if host == "G2 Instance" and small and large:  # they differ in nothing but the host
            return (large - small) / (4 * core + 16 * ram)
        one, mega = self.usd("a2-highgpu-1g"), self.usd("a2-megagpu-16g")
        if host == "A2 Instance" and one and mega:  # 16 GPUs with half of the cores
            return (16 * one - mega) / (96 * core)
        names = {family: name for name, family in FAMILIES.items()} | {"N1 Predefined Instance": ""}
        if host in names:
            family = names[host] or "n1-standard"
            name = next(n for n, t in self.types.items() if t.family == family and not t.gpu)
            usd = self.all.get((name, self.region, "on_demand"))
            level = usd / _host_usd(host, self.types[name]) if usd else 1.0
            return level * (SPOT_HOST if self.market == "spot" else 1.0)
        return self.host_level("N1 Predefined Instance")

    def ssd_month(self) -> float:
        """The price of a GiB of local disk for a month."""
        with_disks, without = self.usd("a3-ultragpu-8g"), self.usd("a3-ultragpu-8g-nolssd")
        if with_disks and without:
            return (with_disks - without) / 12000 * 730
        return SSD_MONTH * (SPOT_SSD if self.market == "spot" else 1.0)

    def gpu_usd(self, name: str, host: str) -> float | None:
        """What is left of a machine's price for each of its GPUs."""
        usd, machine = self.usd(name), self.types[name]
        if not usd:
            return None
        rest = usd - _host_usd(host, machine) * self.host_level(host)
        return (rest - machine.local_disk_gib * self.ssd_month() / 730) / machine.gpus


def _host_usd(host: str, machine: InstanceType) -> float:
    core, ram = HOSTS[host]
    return core * machine.vcpus + ram * machine.memory_gib


def other_skus(count: int, regions: list[str]) -> Iterator[Raw]:
    """What most of the list is about: other series, commitments, disks, traffic, TPUs."""
    kinds: list[tuple[str, str, str, str]] = [
        ("{s} AMD Instance Core running in {p}", "h", "CPU", "OnDemand"),
        ("Spot Preemptible {s} Instance Ram running in {p}", "GiBy.h", "RAM", "Preemptible"),
        ("Commitment v1: {s} Cpu in {p} for 3 Year", "h", "CPU", "Commit3Yr"),
        ("{s} Custom Instance Core running in {p}", "h", "CPU", "OnDemand"),
        ("DWS Defined Duration {s} Core running in {p}", "h", "CPU", "OnDemand"),
        ("Reserved Nvidia H100 80GB GPU in {p} in Calendar Mode {s}", "h", "GPU", "OnDemand"),
        ("Storage PD Capacity in {p} {s}", "GiBy.mo", "PDStandard", "OnDemand"),
        ("Network Inter Region Data Transfer Out from {p} {s}", "GiBy", "Egress", "OnDemand"),
        ("Tpu{s} running in {p}", "h", "TPU", "OnDemand"),
    ]
    series = ["N2D", "C2D", "C4", "M3", "H3", "Z3", "N4", "T2A", "C4A", "C4D", "M4", "N4D"]
    for number in range(count):
        text, unit, group, usage = kinds[number % len(kinds)]
        region = regions[number // len(kinds) % len(regions)]
        name = series[number // (len(kinds) * len(regions)) % len(series)]
        filled = text.format(p=region.title(), s=name)
        yield sku(filled, 0.01 + number % 97 / 1000, unit, [region], usage, group)


def azure_list(padding: int = 0) -> list[Raw]:
    """Azure's price list, with Windows next to Linux and so many rows for other sizes."""
    catalog = snapshot()
    rows: list[Any] = []
    for (name, region, market), usd in shipped_prices(catalog, "azure").items():
        spot = market == "spot"
        row = azure_items.item(name, region, usd, spot)
        windows = f"{row['productName']} Windows"
        low = f"{row['meterName']} Low Priority"
        rows += [row, {**row, "productName": windows, "retailPrice": usd * 1.5}]
        rows += [] if spot else [{**row, "meterName": low, "retailPrice": usd * 0.2}]
    regions = sorted({row["armRegionName"] for row in rows})
    for number in range(padding):
        size = f"Standard_NV{number // len(regions) % 40}ads_V710_v5"
        rows.append(azure_items.item(size, regions[number % len(regions)], 1.0, number % 2 == 0))
    return rows
