"""Offers of cheap CPU machines, on demand: the tiers that checkpoints are written to."""

from pathlib import Path

from recommender.catalogs.schema import Offer
from tests.research.snapshot.aws import is_region
from tests.research.snapshot.machines import Machines
from tests.research.snapshot.reading import Cells, iso_date, read_table
from tests.research.snapshot.sources import SourceBook, cite


def cpu_offers(reference: Path, machines: Machines, book: SourceBook) -> list[Offer]:
    """Build the newest list price of each CPU type in each region.

    A tier must outlive the spot machines it serves, so it is never spot itself.
    """
    newest: dict[tuple[str, str, str], Cells] = {}
    for row in read_table(reference / "prices" / "cpu.csv"):
        key = (row["cloud"], row["instance_type"], row["region"])
        if _wanted(row, machines) and (key not in newest or newest[key]["as_of"] < row["as_of"]):
            newest[key] = row
    return [_offer(row, cite(book, row["source"])) for row in newest.values()]


def _wanted(row: Cells, machines: Machines) -> bool:
    listed = bool(row["on_demand_usd_per_hour"])
    whole_region = row["cloud"] != "aws" or is_region(row["region"])
    return listed and whole_region and machines.is_cpu(row["cloud"], row["instance_type"])


def _offer(row: Cells, source: int) -> Offer:
    return Offer(
        provider=row["cloud"],  # type: ignore[arg-type]
        instance_type=row["instance_type"],
        region=row["region"],
        zone="",
        market="on_demand",
        usd_per_hour=float(row["on_demand_usd_per_hour"]),
        obtainable="unknown" if row["region"].startswith("us-gov-") else "open",
        kind="quote",
        flag="",
        uncertainty=0.0,
        interruption_range=None,
        source=source,
        as_of=iso_date(row["as_of"]),
    )
