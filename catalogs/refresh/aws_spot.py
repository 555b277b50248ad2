"""Spot prices of one region: the price in force of each machine in each zone.

Prices differ between the zones of a region by 1.3 times in the median and by 10 at most, so a
zone without a price gets none: no minimum or mean over zones, no share of the list price.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from catalogs.refresh.aws_calls import Caller
from catalogs.refresh.aws_prices import positive
from catalogs.refresh.harvest import Quarantined

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import SpotPriceTypeDef

_PRODUCTS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
_TYPES_PER_CALL = 100


@dataclass(frozen=True, slots=True)
class SpotQuote:
    """The spot price in force of a machine in a zone."""

    instance_type: str
    zone: str  # id: "use1-az6" is the same zone for every account, "us-east-1a" is not
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class SpotRead:
    """The quotes of a region, and what became of the other rows."""

    quotes: tuple[SpotQuote, ...]
    quarantined: tuple[Quarantined, ...]
    rows: int
    ignored: int


def spot_rows(
    caller: Caller, client: "EC2Client", names: Sequence[str]
) -> "list[SpotPriceTypeDef]":
    """Fetch the spot prices in force of some machines in all zones of a region.

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
) -> SpotRead:
    """Take the newest price of each machine, zone and product.

    `zones` maps the names of the region's zones to their ids; `offered` are pairs of machine
    and zone id. A zone whose two products cost differently is quarantined.
    """
    sieve = _Sieve(region, zones, offered)
    newest: dict[tuple[str, str, str], tuple[datetime, set[str]]] = {}
    for row in rows:
        key = sieve.key(row)
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
    quotes = tuple(sieve.quotes(found))
    return SpotRead(quotes, tuple(sieve.quarantined), len(rows), sieve.ignored)


class _Sieve:
    """Takes out rows and writes down why."""

    def __init__(
        self, region: str, zones: Mapping[str, str], offered: frozenset[tuple[str, str]]
    ) -> None:
        self.quarantined: list[Quarantined] = []
        self.ignored = 0
        self._region = region
        self._zones = zones
        self._offered = offered
        self._types = {name for name, _ in offered}

    def key(self, row: "SpotPriceTypeDef") -> tuple[str, str, str] | None:
        """Machine, zone id and product of a row; None if it is not one that is meant."""
        name, product = str(row.get("InstanceType", "")), str(row.get("ProductDescription", ""))
        zone_name = row.get("AvailabilityZone", "")
        if self._is_local(zone_name):
            self.ignored += 1  # a local or wavelength zone
            return None
        zone = self._zones.get(zone_name, "")
        said = row.get("AvailabilityZoneId", "")
        what = f"{name} {zone or said or zone_name or self._region} spot"
        if name not in self._types:
            self._refuse(what, "unknown_type", "this machine is not offered in the region")
        elif product not in _PRODUCTS:
            self._refuse(what, "product", f"a price for {product!r}")
        elif not zone or said not in ("", zone):
            self._refuse(
                what, "zone", f"{zone_name!r} is {zone or 'no zone'}, the row says {said!r}"
            )
        elif (name, zone) not in self._offered:
            self._refuse(what, "not_offered", "this machine is not offered in the zone")
        elif not isinstance(row.get("Timestamp"), datetime):
            self._refuse(what, "date", "it does not say from when it holds")
        else:
            return name, zone, product
        return None

    def quotes(self, found: Mapping[tuple[str, str], Iterable[str]]) -> Iterator[SpotQuote]:
        """Quotes of machines and zones with one positive price."""
        for (name, zone), texts in sorted(found.items()):
            what = f"{name} {zone} spot"
            prices = {text: positive(text) for text in sorted(texts)}
            numbers = {usd for usd in prices.values() if usd is not None}
            if None in prices.values():
                said = " and ".join(repr(text) for text in prices)
                self._refuse(what, "price", f"{said} is not a positive number")
            elif len(numbers) != 1:
                said = " and ".join(f"{usd:g}" for usd in sorted(numbers))
                self._refuse(what, "duplicate", f"quoted at {said} USD/h")
            else:
                yield SpotQuote(name, zone, numbers.pop())

    def _is_local(self, zone_name: str) -> bool:
        return bool(re.fullmatch(rf"{re.escape(self._region)}-[a-z0-9-]+-\d+[a-z]", zone_name))

    def _refuse(self, what: str, rule: str, reason: str) -> None:
        self.quarantined.append(Quarantined("aws", what, reason, rule))
