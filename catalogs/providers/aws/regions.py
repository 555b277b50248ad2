"""Reads one region of EC2: zones, machines, where they are offered, spot prices, blocks.

Prices differ between the zones of a region by 1.3 times in the median and by 10 at most, so a
zone without a price gets none: no minimum or mean over zones, no share of the list price.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.capacity_blocks import Blocks, ZonePrice, read_blocks
from recommender.catalogs.providers.aws.client import HOME, Caller
from recommender.catalogs.providers.aws.machines import Described, described
from recommender.catalogs.providers.aws.price_list import REGION, positive
from recommender.catalogs.providers.contract import Quarantined
from recommender.catalogs.schema import InstanceType

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import SpotPriceTypeDef


_PRODUCTS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
_TYPES_PER_CALL = 100
# AWS keeps 90 days (EC2, "View Spot Instance pricing history", 2026-11); a price in force may have
# been set before. The other one is for the clock of this machine.
_KEPT, _AHEAD = timedelta(days=180), timedelta(hours=1)
# Families with accelerators; machines of other families are requested by name.
_FAMILIES = ("p*", "g*", "trn*", "inf*", "dl*")
_VALUES = 190  # a filter may hold 200


@dataclass(frozen=True, slots=True)
class SpotRead:
    """The quotes of a region, and the fate of the other rows."""

    quotes: tuple[ZonePrice, ...]
    quarantined: tuple[Quarantined, ...]
    rows: int
    ignored: int


def spot_rows(
    caller: Caller, client: "EC2Client", names: Sequence[str]
) -> "list[SpotPriceTypeDef]":
    """Fetch the current spot prices of some machines in all zones of a region.

    Raises:
        ProviderError: the history cannot be read to its end.
    """
    rows: list[SpotPriceTypeDef] = []
    for start in range(0, len(names), _TYPES_PER_CALL):
        listing = client.get_paginator(
            "describe_spot_price_history"
        ).paginate(
            StartTime=caller.wanted.now,  # from now on: the prices in force
            InstanceTypes=list(names[start : start + _TYPES_PER_CALL]),  # type: ignore[arg-type]
            ProductDescriptions=list(_PRODUCTS),
            PaginationConfig={"PageSize": 1000},
        )
        for page in caller.pages("ec2:DescribeSpotPriceHistory", listing):
            rows += page.get("SpotPriceHistory", [])
    return rows


def spot_quotes(
    rows: "Sequence[SpotPriceTypeDef]",
    region: str,
    zones: Mapping[str, str],
    offered: frozenset[tuple[str, str]],
    now: datetime,
) -> SpotRead:
    """Select the newest price of each machine, zone and product.

    `zones` maps the names of the region's zones to their ids; `offered` are pairs of machine
    and zone id. A zone whose two products cost differently is quarantined.
    """
    reader = _QuoteReader(region, zones, offered, now)
    newest: dict[tuple[str, str, str], tuple[datetime, set[str]]] = {}
    for row in rows:
        key = reader.key(row)
        if key is not None:
            when, prices = row["Timestamp"], {row.get("SpotPrice", "")}
            before = newest.get(key)
            if before is None or when > before[0]:
                newest[key] = (when, prices)
            elif when == before[0]:
                before[1].update(prices)
    found: dict[tuple[str, str], set[str]] = {}
    for (name, zone, _), (_, prices) in newest.items():
        found.setdefault((name, zone), set()).update(prices)
    quotes = tuple(reader.quotes(found))
    return SpotRead(quotes, tuple(reader.quarantined), len(rows), reader.ignored)


class _QuoteReader:
    """Takes out rows and writes down why."""

    def __init__(
        self,
        region: str,
        zones: Mapping[str, str],
        offered: frozenset[tuple[str, str]],
        now: datetime,
    ) -> None:
        self.quarantined: list[Quarantined] = []
        self.ignored = 0
        self._region = region
        self._zones = zones
        self._offered, self._now = offered, now
        self._types = {name for name, _ in offered}

    def key(self, row: "SpotPriceTypeDef") -> tuple[str, str, str] | None:
        """Machine, zone id and product of a row; None if it is not one that is meant."""
        name, product = str(row.get("InstanceType", "")), str(row.get("ProductDescription", ""))
        zone_name = row.get("AvailabilityZone", "")
        if self._is_local(zone_name):
            self.ignored += 1  # a local or wavelength zone
            return None
        zone = self._zones.get(zone_name, "")
        zone_id = row.get("AvailabilityZoneId", "")
        what = f"{name} {zone or zone_id or zone_name or self._region} spot"
        if name not in self._types:
            self._refuse(what, "unknown_type", "this machine is not offered in the region")
        elif product not in _PRODUCTS:
            self._refuse(what, "product", f"a price for {product!r}")
        elif not zone or zone_id not in ("", zone):
            self._refuse(
                what, "zone", f"{zone_name!r} is {zone or 'no zone'}, the row says {zone_id!r}"
            )
        elif (name, zone) not in self._offered:
            self._refuse(what, "not_offered", "this machine is not offered in the zone")
        elif not isinstance(since := row.get("Timestamp"), datetime):
            self._refuse(what, "date", "it does not say from when it holds")
        elif not self._now - _KEPT < since < self._now + _AHEAD:
            self._refuse(what, "date", f"it holds from {since:%Y-%m-%d %H:%M} on")
        else:
            return name, zone, product
        return None

    def quotes(self, found: Mapping[tuple[str, str], Iterable[str]]) -> Iterator[ZonePrice]:
        """Quotes of machines and zones with one positive price."""
        for (name, zone), texts in sorted(found.items()):
            what = f"{name} {zone} spot"
            prices = {text: positive(text) for text in sorted(texts)}
            numbers = {usd for usd in prices.values() if usd is not None}
            if None in prices.values():
                listed = " and ".join(repr(text) for text in prices)
                self._refuse(what, "price", f"{listed} is not a positive number")
            elif len(numbers) != 1:
                listed = " and ".join(f"{usd:g}" for usd in sorted(numbers))
                self._refuse(what, "duplicate", f"quoted at {listed} USD/h")
            else:
                yield ZonePrice(name, zone, numbers.pop())

    def _is_local(self, zone_name: str) -> bool:
        return bool(re.fullmatch(rf"{re.escape(self._region)}-[a-z0-9-]+-\d+[a-z]", zone_name))

    def _refuse(self, what: str, rule: str, reason: str) -> None:
        self.quarantined.append(Quarantined("aws", what, reason, rule))


_ZONE = re.compile(r"[a-z]+\d-az\d+")  # not the ids of local zones: use1-atl2-az1


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of an account."""

    enabled: tuple[str, ...]
    disabled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionRead:
    """The offers of one region; `spot_error` says why its spot prices could not be read."""

    machines: tuple[Described, ...]
    offered: frozenset[tuple[str, str]]  # machine and zone id
    spot: SpotRead
    spot_error: ProviderError | None
    blocks: Blocks
    quarantined: tuple[Quarantined, ...]

    def sells_on_demand(self, instance_type: str) -> bool:
        """Whether a machine is sold on demand; price lists contain others too."""
        offered = any(name == instance_type for name, _ in self.offered)
        return offered and any(
            m.instance_type == instance_type and "on-demand" in m.usage for m in self.machines
        )


def account_regions(caller: Caller) -> Regions:
    """Find which regions the account may use.

    Raises:
        ProviderError: they cannot be listed.
    """
    client = caller.ec2(HOME)
    answer = caller.one("ec2:DescribeRegions", lambda: client.describe_regions(AllRegions=True))
    status = {
        name: str(each.get("OptInStatus", ""))
        for each in answer.get("Regions", [])
        if REGION.fullmatch(name := each.get("RegionName", ""))
    }
    enabled = [name for name, word in status.items() if word != "not-opted-in"]
    if not enabled:
        raise ProviderError("aws", "format", "ec2:DescribeRegions: no region is listed")
    return Regions(tuple(sorted(enabled)), tuple(sorted(status.keys() - set(enabled))))


def read_region(caller: Caller, client: "EC2Client", region: str) -> RegionRead:
    """Read one region.

    Raises:
        ProviderError: its zones or machines cannot be read.
    """
    wanted = caller.wanted
    zones = _zones(caller, client)
    machines, refused = _machines(caller, client, wanted.types.values())
    names = [m.instance_type for m in machines if m.device or m.instance_type in wanted.types]
    offered = frozenset(_offerings(caller, client, names))
    spot, error = SpotRead((), (), 0, 0), None
    if "spot" in wanted.parts:
        try:
            rows = spot_rows(caller, client, _with(machines, "spot", offered))
            spot = spot_quotes(rows, region, zones, offered, wanted.now)
        except ProviderError as problem:
            error = problem
    blocks = Blocks()
    if "reserved_block" in wanted.parts:
        sold = [n for n in _with(machines, "capacity-block", offered) if n in wanted.types]
        blocks = read_blocks(caller, client, sold, zones)
    if "spot" in wanted.parts:
        wanted.progress(f"{region}: {len(spot.quotes) if error is None else 'no'} spot prices")
    return RegionRead(machines, offered, spot, error, blocks, refused)


def _zones(caller: Caller, client: "EC2Client") -> dict[str, str]:
    answer = caller.one("ec2:DescribeAvailabilityZones", client.describe_availability_zones)
    zones = {
        each.get("ZoneName", ""): each.get("ZoneId", "")
        for each in answer.get("AvailabilityZones", [])
        if _ZONE.fullmatch(each.get("ZoneId", ""))
    }
    if not zones:
        raise ProviderError("aws", "format", "ec2:DescribeAvailabilityZones: no zone is listed")
    return zones


def _machines(
    caller: Caller, client: "EC2Client", known: Iterable[InstanceType]
) -> tuple[tuple[Described, ...], tuple[Quarantined, ...]]:
    """Describe the machines with accelerators, and the others that the catalog knows."""
    names = [*_FAMILIES, *sorted(each.instance_type for each in known if not each.gpu)]
    found: dict[str, Described] = {}
    refused = []
    for values in _groups(names):
        listing = client.get_paginator("describe_instance_types").paginate(
            Filters=[{"Name": "instance-type", "Values": values}],
            PaginationConfig={"PageSize": 100},
        )
        for page in caller.pages("ec2:DescribeInstanceTypes", listing):
            for info in page.get("InstanceTypes", []):
                try:
                    each = described(info)
                except (KeyError, TypeError, AttributeError) as error:
                    what = f"instance type {info.get('InstanceType', '?')}"
                    refused.append(Quarantined("aws", what, f"no {error}", "missing_part"))
                else:
                    found[each.instance_type] = each
    if not found:
        raise ProviderError("aws", "format", "ec2:DescribeInstanceTypes: no machine is listed")
    return tuple(found.values()), tuple(refused)


def _offerings(
    caller: Caller, client: "EC2Client", names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for values in _groups(names):
        listing = client.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone-id",
            Filters=[{"Name": "instance-type", "Values": values}],
            PaginationConfig={"PageSize": 1000},
        )
        for page in caller.pages("ec2:DescribeInstanceTypeOfferings", listing):
            for each in page.get("InstanceTypeOfferings", []):
                yield str(each.get("InstanceType", "")), each.get("Location", "")


def _with(
    machines: Iterable[Described], usage: str, offered: frozenset[tuple[str, str]]
) -> list[str]:
    """Machines with whole accelerators that a region sells in a way."""
    here = {name for name, _ in offered}
    return sorted(
        each.instance_type
        for each in machines
        if each.device
        and each.device.gpus >= 1
        and usage in each.usage
        and each.instance_type in here
    )


def _groups(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _VALUES):
        yield list(names[start : start + _VALUES])
