"""Offers of Azure: retail prices by region; it publishes no zones."""

from collections.abc import Iterator
from pathlib import Path

from recommender.catalogs.schema import Market, Offer
from tests.research.snapshot.machines import Machines, family_of
from tests.research.snapshot.reading import Cells, number, read_table, with_newer
from tests.research.snapshot.sources import SourceBook, cite

_NO_BARGAIN = 0.9 - 1e-9  # H200 and GB200 list spot at the on-demand price, NC H100 at 0.9 of it
_FLOOR = 0.185  # the price of unsold capacity, in two rows of three; no news of availability


def azure_offers(reference: Path, machines: Machines, book: SourceBook) -> list[Offer]:
    """Build all offers of Azure GPU machines."""
    folder = reference / "prices"
    newest = with_newer(
        _by_place(folder, "azure", "extra_azure"),
        _by_place(folder, "extra_azure_2026-10-10"),
        lambda name: family_of("azure", name),
        "ondemand_usd_per_hour spot_usd_per_hour",
    )
    return [
        offer
        for row in newest.values()
        if machines.trains("azure", row["instance_type"])
        for offer in offers_of(row, machines, cite(book, _source(row)))
    ]


def _by_place(folder: Path, *names: str) -> dict[tuple[str, str], Cells]:
    rows = (row for name in names for row in read_table(folder / f"{name}.csv"))
    return {(row["instance_type"], row["region"]): row for row in rows}


def _source(row: Cells) -> str:
    """Older lists were read in one place, and say so in no column or in other words."""
    newer = row.get("source", "").startswith("ewyluda")
    return row["source"] if newer else "anycloud-sh/catalog azure"


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
