"""Offers of Azure: retail prices by region; it publishes no zones."""

from collections.abc import Iterator
from pathlib import Path

from recommender.catalogs.schema import Market, Offer
from tests.research.snapshot.machines import Machines
from tests.research.snapshot.reading import Cells, number, read_table
from tests.research.snapshot.sources import SourceBook, cite

_NO_BARGAIN = 0.9 - 1e-9  # H200 and GB200 list spot at the on-demand price, NC H100 at 0.9 of it
_FLOOR = 0.185  # the price of unsold capacity, in two rows of three; no news of availability


def azure_offers(reference: Path, machines: Machines, book: SourceBook) -> list[Offer]:
    """Build all offers of Azure GPU machines."""
    folder = reference / "prices"
    table = read_table(folder / "azure.csv") + read_table(folder / "extra_azure.csv")
    source = cite(book, "anycloud-sh/catalog azure")
    return [
        offer
        for row in table
        if machines.trains("azure", row["instance_type"])
        for offer in offers_of(row, machines, source)
    ]


def offers_of(row: Cells, machines: Machines, source: int) -> Iterator[Offer]:
    """Offer a machine on demand, and as spot where that is cheaper by a tenth."""
    listed, spot = number(row["ondemand_usd_per_hour"]), number(row["spot_usd_per_hour"])
    if listed is None:
        return
    yield _offer(row, machines, "on_demand", listed, "", source)
    if spot is not None and spot / listed < _NO_BARGAIN:
        flag = "floor" if abs(spot / listed - _FLOOR) < 0.0005 else ""
        yield _offer(row, machines, "spot", spot, flag, source)


def _offer(
    row: Cells, machines: Machines, market: Market, usd: float, flag: str, source: int
) -> Offer:
    return Offer(
        provider="azure",
        instance_type=row["instance_type"],
        region=row["region"],
        zone="",
        market=market,
        usd_per_hour=usd,
        obtainable=machines.status("azure", row["instance_type"]),
        kind="quote",
        flag=flag,
        uncertainty=0.0,
        interruption_range=None,
        source=source,
        as_of=row["date"],
    )
