"""Reads one region of EC2: zones, machines, where they are offered, spot prices, blocks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalogs.errors import ProviderError
from catalogs.refresh.aws_blocks import Blocks, read_blocks
from catalogs.refresh.aws_calls import HOME, Caller
from catalogs.refresh.aws_machines import Described, described
from catalogs.refresh.aws_prices import REGION
from catalogs.refresh.aws_spot import SpotRead, spot_quotes, spot_rows
from catalogs.refresh.harvest import Quarantined
from catalogs.schema import InstanceType

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

# Families with accelerators; machines of other families are asked for by name.
_FAMILIES = ("p*", "g*", "trn*", "inf*", "dl*")
_VALUES = 190  # a filter may hold 200
_ZONE = re.compile(r"[a-z]+\d-az\d+")  # not the ids of local zones: use1-atl2-az1


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of an account."""

    enabled: tuple[str, ...]
    disabled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionRead:
    """What one region offers; `spot_error` says why its spot prices could not be read."""

    machines: tuple[Described, ...]
    offered: frozenset[tuple[str, str]]  # machine and zone id
    spot: SpotRead
    spot_error: ProviderError | None
    blocks: Blocks
    quarantined: tuple[Quarantined, ...]

    def sells_on_demand(self, instance_type: str) -> bool:
        """Say whether a machine can be had on demand; a price list lists it anyhow."""
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
            spot = spot_quotes(rows, region, zones, offered)
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
