"""Assembles what was read from AWS into offers, with sources and what was left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from recommender.catalogs.providers.aws.capacity_blocks import HOURS, ZonePrice
from recommender.catalogs.providers.aws.price_list import Listing
from recommender.catalogs.providers.aws.regions import RegionRead
from recommender.catalogs.providers.contract import Failed, Quarantined, Wanted, read_offer
from recommender.catalogs.providers.public.aws import Ranges
from recommender.catalogs.schema import InstanceType, Market, Obtainable, Offer, Source

API = "AWS Price List API"
_LISTED, _SPOT, _BLOCK = 1, 2, 3
_LICENCE = "none stated (public price facts)"


class Maker:
    """Makes offers of machines that the catalog can describe."""

    def __init__(self, wanted: Wanted, new: Iterable[InstanceType], ranges: Ranges) -> None:
        self._machines = {**wanted.types, **{each.instance_type: each for each in new}}
        self._regions = frozenset(wanted.regions)
        self._today = wanted.today
        self._ranges = ranges

    def on_demand(
        self, listing: Listing, reads: Mapping[str, RegionRead]
    ) -> tuple[list[Offer], int]:
        """List prices, and how many are of machines that a region that was read does not sell."""
        offers, unsold = list[Offer](), 0
        for price in listing.prices:
            machine = self._machines.get(price.instance_type)
            if machine is None or (self._regions and price.region not in self._regions):
                continue
            read = reads.get(price.region)
            if read is not None and not read.sells_on_demand(price.instance_type):
                unsold += 1
                continue
            usd = price.usd_per_hour
            offers.append(self._offer(machine, price.region, "", "on_demand", usd, _LISTED))
        return offers, unsold

    def by_zone(self, reads: Mapping[str, RegionRead]) -> Iterator[Offer]:
        """Spot prices and Capacity Blocks."""
        for region, read in sorted(reads.items()):
            yield from self._of_rows(region, read.spot.quotes, "spot", _SPOT)
            yield from self._of_rows(region, read.blocks.blocks, "reserved_block", _BLOCK)

    def _of_rows(
        self, region: str, rows: Iterable[ZonePrice], market: Market, source: int
    ) -> Iterator[Offer]:
        for row in rows:
            if machine := self._machines.get(row.instance_type):
                yield self._offer(machine, region, row.zone, market, row.usd_per_hour, source)

    def unknown_quotes(self, reads: Mapping[str, RegionRead]) -> int:
        """The number and names of spot prices for machines that cannot be described."""
        quotes = (quote for read in reads.values() for quote in read.spot.quotes)
        return sum(quote.instance_type not in self._machines for quote in quotes)

    def _offer(
        self, machine: InstanceType, region: str, zone: str, market: Market, usd: float, source: int
    ) -> Offer:
        usual = read_offer(
            machine, region, market, usd, source=source, as_of=self._today, zone=zone
        )
        ranges = self._ranges if market == "spot" else {}
        return replace(
            usual,
            obtainable=_in_region(machine.status, region),
            interruption_range=ranges.get((machine.instance_type, region)),
        )


def _in_region(status: Obtainable, region: str) -> Obtainable:
    """GovCloud is open to vetted customers only."""
    return "unknown" if status == "open" and region.startswith("us-gov-") else status


def sources(listed: str) -> tuple[Source, ...]:
    """The sources of the figures; `listed` names the price list that was read."""
    block = f"one machine for {HOURS} hours, paid upfront, per hour"
    return (
        Source(_LISTED, listed or API, _LICENCE, "row", "AWS price list, AmazonEC2"),
        Source(_SPOT, "AWS EC2 spot price history", _LICENCE, "row", "read with one's own account"),
        Source(_BLOCK, "AWS EC2 Capacity Blocks", _LICENCE, "row", block),
    )


def blocks_allowed(reads: Mapping[str, RegionRead]) -> bool:
    """Whether Capacity Blocks could be read anywhere; the permission is optional."""
    errors = [read.blocks.error for read in reads.values()]
    return any(error is None or error.fault != "credentials" for error in errors)


def lost_blocks(reads: Mapping[str, RegionRead], warnings: list[str]) -> list[Failed]:
    """The regions whose Capacity Blocks could not be read."""
    errors = {region: e for region, read in sorted(reads.items()) if (e := read.blocks.error)}
    if errors and not blocks_allowed(reads):
        warnings.append(f"Capacity Blocks are left out: {next(iter(errors.values())).reason}")
        return []
    return [Failed(region, "reserved_block", error.reason) for region, error in errors.items()]


def quarantined(listing: Listing, reads: Mapping[str, RegionRead]) -> tuple[Quarantined, ...]:
    """All rows that were not accepted."""
    found: list[Quarantined] = list(listing.quarantined)
    for region, read in sorted(reads.items()):
        own: Sequence[Quarantined] = (
            *read.quarantined,
            *read.spot.quarantined,
            *read.blocks.quarantined,
        )
        found += [
            each
            if region in each.what
            else Quarantined("aws", f"{each.what} ({region})", each.reason, each.rule)
            for each in own
        ]
    return tuple(found)


def counts(listing: Listing, reads: Mapping[str, RegionRead]) -> tuple[int, int]:
    """The number of rows received, and of those known to be irrelevant."""
    rows = listing.rows + sum(read.spot.rows + read.blocks.rows for read in reads.values())
    return rows, listing.ignored + sum(read.spot.ignored for read in reads.values())
