"""Offers of Google Cloud: whole machines by zone, and N1 hosts with GPUs attached."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from recommender.catalogs.schema import Kind, Market, Offer
from tests.research.snapshot.machines import Machines, attached_name, family_of
from tests.research.snapshot.reading import Cells, number, read_hand, read_table, with_newer
from tests.research.snapshot.sources import SourceBook, cite

# Only these GPUs are attached to N1 hosts; the prices of the others in that list are wrong.
_ATTACHED = ("T4", "P4", "P100", "V100")
# Hosts that keep within the limits of vCPUs and memory per attached GPU.
_HOSTS = {1: "n1-standard-8", 2: "n1-standard-16", 4: "n1-standard-32", 8: "n1-standard-64"}
_SPOT_ONLY = ("spot_only", "reservation_only")
_NO_BARGAIN = 0.9 - 1e-9
_SAME_PRICE = 0.001  # a price of 4 decimals is the same price


def gcp_offers(reference: Path, machines: Machines, book: SourceBook) -> list[Offer]:
    """Build all offers of Google Cloud GPU machines."""
    folder = reference / "prices"
    gone = {(row["instance_type"], row["region"]) for row in read_hand("gone")}
    table = [
        row
        for row in read_table(folder / "gcp.csv") + read_table(folder / "extra_gcp.csv")
        if (row["instance_type"], row["region"]) not in gone
    ]
    zones = read_table(folder / "extra_gcp_spot_by_zone.csv")
    renewed(table, zones, read_table(folder / "gcp_us-central1_2026-10.csv"))
    return [
        *machine_offers(table, machines, book),
        *_zone_spot(zones, machines, book),
        *attached_offers(
            read_table(folder / "gcp_gpu_only.csv"),
            read_table(folder / "cpu.csv") + read_table(folder / "extra_gcp_n1.csv"),
            machines,
            book,
        ),
    ]


def renewed(table: list[Cells], zones: list[Cells], page: list[Cells]) -> None:
    """Put the prices of a newer page, which has one region and no zones, into both tables."""
    places = {(row["instance_type"], row["region"]): row for row in table}
    places |= {(row["instance_type"], row["region"]): row for row in zones}
    newer = {(row["instance_type"], row["region"]): _newest_spot(row) for row in page}
    newer = {key: row for key, row in newer.items() if row["spot_usd_per_hour"]}
    prices = "ondemand_usd_per_hour spot_usd_per_hour"
    found = with_newer(places, newer, lambda name: family_of("gcp", name), prices)
    for row in (*table, *zones):
        new = found[row["instance_type"], row["region"]]
        if new is not places[row["instance_type"], row["region"]]:
            kept = {name: row[name] for name in ("zone", "zones") if name in row}
            row.update({**new, **kept, "note": ""})


def _newest_spot(row: Cells) -> Cells:
    """With the spot price of five days later, where it has moved."""
    later, spot = row["spot_usd_per_hour_2026-10-10"], row["spot_usd_per_hour"]
    if later and abs(float(later) / float(spot) - 1) > _SAME_PRICE:
        return {**row, "spot_usd_per_hour": later, "date": "2026-10-10"}
    return row


def machine_offers(table: list[Cells], machines: Machines, book: SourceBook) -> list[Offer]:
    """Offer whole machines in each of their zones, or once where the zones are unknown."""
    return [
        offer
        for row in table
        if machines.trains("gcp", row["instance_type"])
        for zone in (row["zones"].split() or [""])
        for offer in _both_markets(row, zone, machines, cite(book, row.get("source", "Cyclenerd")))
    ]


def _both_markets(row: Cells, zone: str, machines: Machines, source: int) -> Iterator[Offer]:
    name, region = row["instance_type"], row["region"]
    status = machines.status("gcp", name)
    place = f"{region}-{zone}" if zone else ""
    listed, spot = number(row["ondemand_usd_per_hour"]), number(row["spot_usd_per_hour"])
    kind: Kind = "composed" if row.get("note", "").startswith("composed") else "quote"
    if listed and status not in _SPOT_ONLY and row.get("on_demand_sold", "1") == "1":
        offer = _offer(name, region, place, "on_demand", listed, kind, source, row["date"])
        yield replace(offer, obtainable=status)
    if spot and listed and spot / listed < _NO_BARGAIN:
        offer = _offer(name, region, place, "spot", spot, kind, source, row["date"])
        yield replace(offer, obtainable=status)


def _zone_spot(table: list[Cells], machines: Machines, book: SourceBook) -> Iterator[Offer]:
    """Machines that are sold as spot or by reservation only."""
    for row in table:
        usd = float(row["spot_usd_per_hour"])
        source = cite(book, row["source"])
        name = row["instance_type"]
        offer = _offer(
            name, row["region"], row["zone"], "spot", usd, "composed", source, row["date"]
        )
        yield replace(offer, obtainable=machines.status("gcp", name))


def attached_offers(
    parts: list[Cells], hosts: list[Cells], machines: Machines, book: SourceBook
) -> list[Offer]:
    """Add up N1 hosts and GPUs; where a part has no price there is no offer."""
    source = cite(book, "N1 with GPUs")
    prices = {(row["instance_type"], row["region"]): row for row in hosts}
    offers: list[Offer] = []
    for part in parts:
        count = round(float(part["gpus"]))
        host = prices.get((_HOSTS.get(count, ""), part["region"]))
        if host and part["gpu"] in _ATTACHED and part["suspect"] == "0":
            name = attached_name(host["instance_type"], count, part["gpu"])
            if machines.trains("gcp", name):
                offers += _sums(name, part, host, source)
    return offers


def _sums(name: str, part: Cells, host: Cells, source: int) -> Iterator[Offer]:
    listed = _sum(part["gpu_ondemand_usd_per_hour"], host["on_demand_usd_per_hour"])
    spot = _sum(part["gpu_spot_usd_per_hour"], host["spot_usd_per_hour"])
    as_of = min(part["date"], host["as_of"])
    place = (name, part["region"], part["zone"])
    if listed:
        yield _offer(*place, "on_demand", listed, "composed", source, as_of)
    if listed and spot and spot / listed < _NO_BARGAIN:
        yield _offer(*place, "spot", spot, "composed", source, as_of)


def _sum(gpus: str, host: str) -> float | None:
    return round(float(gpus) + float(host), 6) if gpus and host else None


def _offer(
    name: str,
    region: str,
    zone: str,
    market: Market,
    usd: float,
    kind: Kind,
    source: int,
    as_of: str,
) -> Offer:
    return Offer(
        provider="gcp",
        instance_type=name,
        region=region,
        zone=zone,
        market=market,
        usd_per_hour=round(usd, 6),
        obtainable="open",
        kind=kind,
        flag="",
        uncertainty=0.0,
        interruption_range=None,
        source=source,
        as_of=as_of,
    )
