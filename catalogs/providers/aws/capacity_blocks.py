"""Capacity Blocks: machines reserved for a day and paid upfront (market `reserved_block`).

The query is for one machine for 24 hours, the smallest block; its fee divided by its hours is the
price per hour. Of several blocks in a zone the one that starts first is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.client import Caller, Refused
from recommender.catalogs.providers.aws.price_list import positive
from recommender.catalogs.providers.contract import Quarantined

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityBlockOfferingTypeDef

HOURS = 24
_ACTION = "ec2:DescribeCapacityBlockOfferings"
_NOT_SOLD = ("Unsupported", "UnsupportedOperation")


@dataclass(frozen=True, slots=True)
class ZonePrice:
    """The price of a machine in a zone: on spot, or of a Capacity Block for one."""

    instance_type: str
    zone: str  # id: "use1-az6" is the same zone for every account, "us-east-1a" is not
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks on offer in a region; `reason` says why they could not be read."""

    blocks: tuple[ZonePrice, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    rows: int = 0
    error: ProviderError | None = None


def read_blocks(
    caller: Caller, client: "EC2Client", names: Sequence[str], zones: Mapping[str, str]
) -> Blocks:
    """Query a block of each machine in a region; failures are in `error`."""
    found: list[CapacityBlockOfferingTypeDef] = []
    try:
        for name in names:
            found += _offerings(caller, client, name)
    except ProviderError as error:
        return Blocks(error=error)
    return blocks_of(found, zones)


def _offerings(
    caller: Caller, client: "EC2Client", name: str
) -> "list[CapacityBlockOfferingTypeDef]":
    listing = client.get_paginator("describe_capacity_block_offerings").paginate(
        InstanceType=name, InstanceCount=1, CapacityDurationHours=HOURS
    )
    try:
        pages = list(caller.pages(_ACTION, listing))
    except Refused as error:
        if error.code in _NOT_SOLD:
            return []
        raise
    return [each for page in pages for each in page.get("CapacityBlockOfferings", [])]


def blocks_of(rows: "Iterable[CapacityBlockOfferingTypeDef]", zones: Mapping[str, str]) -> Blocks:
    """Select the block of each machine and zone that starts first."""
    rows = list(rows)
    quarantined: list[Quarantined] = []
    first: dict[tuple[str, str], tuple[datetime, set[float]]] = {}
    for row in rows:
        zone = zones.get(row.get("AvailabilityZone", ""), "")
        name, start = row.get("InstanceType", ""), row.get("StartDate")
        what = f"{name} {zone or row.get('AvailabilityZone', '?')} reserved_block"
        usd, problem = _hourly(row)
        if not zone or start is None:
            problem = problem or ("zone", "no known zone, or no start")
        if problem or start is None:
            rule, reason = problem or ("date", "no start")
            quarantined.append(Quarantined("aws", what, reason, rule))
            continue
        before = first.get((name, zone))
        if before is None or start < before[0]:
            first[name, zone] = (start, {usd})
        elif start == before[0]:
            before[1].add(usd)
    blocks = []
    for (name, zone), (_, prices) in sorted(first.items()):
        if len(prices) == 1:
            blocks.append(ZonePrice(name, zone, prices.pop()))
        else:
            listed = " and ".join(f"{usd:g}" for usd in sorted(prices))
            what = f"{name} {zone} reserved_block"
            reason = f"two blocks of the same start at {listed} USD/h"
            quarantined.append(Quarantined("aws", what, reason, "duplicate"))
    return Blocks(tuple(blocks), tuple(quarantined), len(rows))


def _hourly(row: "CapacityBlockOfferingTypeDef") -> tuple[float, tuple[str, str] | None]:
    """USD per hour of one machine, or by which rule and why there is none."""
    fee = positive(row.get("UpfrontFee", ""))
    minutes = row.get("CapacityBlockDurationMinutes") or 0
    hours = minutes / 60 or float(row.get("CapacityBlockDurationHours", 0))
    count = row.get("InstanceCount", 0)
    if fee is None:
        return 0.0, ("price", f"an upfront fee of {row.get('UpfrontFee', '')!r}")
    if row.get("CurrencyCode") != "USD":
        return 0.0, ("currency", f"a fee in {row.get('CurrencyCode', 'no currency')}")
    if count < 1 or not 0.9 * HOURS <= hours <= 1.5 * HOURS:
        return 0.0, (
            "duration",
            f"{count} machines for {hours:g} hours, not 1 for {HOURS}",
        )
    return fee / (hours * count), None
