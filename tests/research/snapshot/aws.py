"""Offers of AWS: list prices by region, newest first; spot comes from `aws_spot`."""

import re
from pathlib import Path

from recommender.catalogs.schema import Obtainable, Offer
from tests.research.snapshot.aws_spot import spot_offers
from tests.research.snapshot.machines import Machines
from tests.research.snapshot.reading import Cells, read_table, with_newer
from tests.research.snapshot.sources import SourceBook, cite

# Whole regions only: local and wavelength zones are listed as regions with longer names.
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


def is_region(name: str) -> bool:
    """Say whether a name is a region, not a local or wavelength zone."""
    return bool(_REGION.fullmatch(name))


def aws_offers(reference: Path, machines: Machines, book: SourceBook) -> list[Offer]:
    """Build all offers of AWS: GPU machines in both markets."""
    folder = reference / "prices"
    lists = ("aws_on_demand", "extra_aws_on_demand")
    table = [row for name in lists for row in read_table(folder / f"{name}.csv")]
    newer = read_table(folder / "extra_aws_on_demand_2026-10-10.csv")
    listed = on_demand_offers(table, machines, book, newer)
    return listed + spot_offers(folder, listed, machines, book)


def on_demand_offers(
    table: list[Cells], machines: Machines, book: SourceBook, newer: list[Cells] | None = None
) -> list[Offer]:
    """Keep the newest list price of each training type in each region."""
    newest: dict[tuple[str, str], Cells] = {}
    for row in table:
        key = (row["instance_type"], row["region"])
        wanted = is_region(row["region"]) and machines.trains("aws", row["instance_type"])
        if wanted and (key not in newest or newest[key]["date"] < row["date"]):
            newest[key] = row
    rounded = {(row["instance_type"], row["region"]): row for row in newer or ()}
    # List prices of sizes move together or not at all: each row counts by itself.
    newest = with_newer(newest, rounded, lambda name: name, "usd_per_hour")
    return [_listed(row, machines, cite(book, row["source"])) for row in newest.values()]


def _listed(row: Cells, machines: Machines, source: int) -> Offer:
    status = machines.status("aws", row["instance_type"])
    return Offer(
        provider="aws",
        instance_type=row["instance_type"],
        region=row["region"],
        zone="",
        market="on_demand",
        usd_per_hour=float(row["usd_per_hour"]),
        obtainable=_in_region(status, row["region"]),
        kind="quote",
        flag="",
        uncertainty=0.0,
        interruption_range=None,
        source=source,
        as_of=row["date"],
    )


def _in_region(status: Obtainable, region: str) -> Obtainable:
    """GovCloud is open to vetted customers only."""
    return "unknown" if status == "open" and region.startswith("us-gov-") else status
