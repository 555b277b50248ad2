"""Selects the retail prices of Azure that are today's hourly price of a Linux machine."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recommender.catalogs.providers.contract import Quarantined, UnknownType
from recommender.catalogs.schema import Market

Place = tuple[str, str, Market]  # instance type, region, market

# A product is a series: "Virtual Machines NDsr H100 v5 Series", with " Linux" on newer ones.
_PRODUCT = re.compile(r"(?:Virtual Machines )?[\w .()-]+ Series(?: Linux)?")
_OTHER_PRODUCTS = re.compile(r"Windows|Cloud ?Services|Dedicated|SQL|RHEL|Red Hat|SUSE|Promo", re.I)
_OTHER_METERS = re.compile(r"Low Priority|Expired|Promo|Reservation|Dedicated", re.I)
_METER = re.compile(r"(?P<size>[\w ./-]+?)(?P<spot> Spot)?")
_GPU_SIZE = re.compile(r"standard_n[cdgv]", re.I)
_REGION = re.compile(r"[a-z]+\d*")
# Clouds of governments, and zones of telephone companies: not what a subscription may rent.
_OTHER_REGIONS = re.compile(r"usgov\w*|usdod\w*|china\w*|att\w*|sgx\w*|microsoft\w*")
_MAX_USD = 1e6  # an hour; the most expensive machine of 2026 costs some hundreds
_GPU_NAME = re.compile(r"_([A-Z]+\d+X?)(?:_v\d+)?$")


@dataclass(frozen=True, slots=True)
class Meter:
    """A current or future price."""

    place: Place
    usd_per_hour: float
    since: datetime
    primary: bool  # the region of the meter is the region of the machine
    what: str  # names the row


@dataclass(frozen=True, slots=True)
class Prices:
    """Today's price of each machine, and the refused rows."""

    usd: Mapping[Place, float]
    quarantined: tuple[Quarantined, ...]
    unknown: tuple[UnknownType, ...]
    ignored: int


class _Refused(Exception):
    """A row that was not understood."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule = rule
        super().__init__(reason)


class Reader:
    """Reads rows one by one; names of sizes and regions are case-insensitive."""

    def __init__(self, types: Iterable[str], now: datetime) -> None:
        self._types = {name.casefold(): name for name in types}
        self._now = now
        self._meters: dict[Place, list[Meter]] = defaultdict(list)
        self._unknown: dict[str, set[str]] = defaultdict(set)
        self._refused: list[Quarantined] = []
        self.rows = self.ignored = 0

    def take(self, item: object) -> None:
        """Process a row of the response."""
        self.rows += 1
        if not isinstance(item, dict):
            self._refused.append(Quarantined("azure", "a row", "is no object", "malformed"))
            return
        try:
            meter = self._read(item)
        except _Refused as error:
            self._refused.append(Quarantined("azure", _named(item), str(error), error.rule))
            return
        if meter is None:
            self.ignored += 1
        else:
            self._meters[meter.place].append(meter)

    def prices(self) -> Prices:
        """Return today's prices."""
        refused = list(self._refused)
        usd = {}
        for place, meters in self._meters.items():
            current = _current(meters)
            self.ignored += len(meters) - len(current)
            if len({meter.usd_per_hour for meter in current}) == 1:
                usd[place] = current[0].usd_per_hour
            else:
                refused += _doubled(current)
        return Prices(usd, tuple(refused), tuple(self._unknown_types()), self.ignored)

    def _read(self, item: Mapping[str, Any]) -> Meter | None:
        """A price, None for a row that is not meant."""
        if _text(item, "type") != "Consumption" or item.get("reservationTerm"):
            return None
        product, meter, sku = (
            _text(item, name) for name in ("productName", "meterName", "skuName")
        )
        if _OTHER_PRODUCTS.search(product) or _OTHER_METERS.search(f"{meter} {sku}"):
            return None
        region = _text(item, "armRegionName").strip().casefold()
        if _OTHER_REGIONS.fullmatch(region):
            return None
        name = self._name(_text(item, "armSkuName"), region)
        if name is None:
            return None
        since = _moment(_text(item, "effectiveStartDate"))
        ends = _text(item, "effectiveEndDate")
        if since > self._now or (ends and _moment(ends) <= self._now):
            return None
        if not _PRODUCT.fullmatch(product):
            raise _Refused("unknown_product", f"product {product!r} is of no known form")
        if not _REGION.fullmatch(region):
            raise _Refused("region", f"{region!r} is no region")
        market = _market(meter, sku)
        return Meter(
            place=(name, region, market),
            usd_per_hour=_usd(item),
            since=since,
            primary=item.get("isPrimaryMeterRegion") is True,
            what=_named(item),
        )

    def _name(self, listed: str, region: str) -> str | None:
        """The machine's name in the catalog; one with GPUs that is not there is reported."""
        name = listed.strip()
        known = self._types.get(name.casefold()) or self._types.get(f"standard_{name}".casefold())
        if known is None and _GPU_SIZE.match(name) and not name.casefold().endswith("_promo"):
            self._unknown[name].add(region)
        return known

    def _unknown_types(self) -> Iterator[UnknownType]:
        for name, regions in sorted(self._unknown.items()):
            found = _GPU_NAME.search(name)
            gpu = found[1] if found else ""
            reason = "the catalog does not describe it: part of a GPU, or new"
            yield UnknownType(name, gpu, 0.0, len(regions), reason)


def _current(meters: list[Meter]) -> list[Meter]:
    """The rows in force: the newest; of these, those of the region's own meter."""
    newest = max(meter.since for meter in meters)
    latest = [meter for meter in meters if meter.since == newest]
    return [meter for meter in latest if meter.primary] or latest


def _doubled(meters: list[Meter]) -> Iterator[Quarantined]:
    prices = Counter(f"{meter.what}, {meter.usd_per_hour!r} USD/h" for meter in meters)
    for what in prices:
        yield Quarantined(
            "azure", what, "priced twice and differently; neither is used", "duplicate"
        )


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    if value is not None and not isinstance(value, str):
        raise _Refused("malformed", f"{name} is no text")
    return value or ""


def _named(item: Mapping[str, Any]) -> str:
    names = ("armSkuName", "armRegionName", "productName", "meterName")
    return ", ".join(str(item.get(name) or "?")[:80] for name in names)


def _market(meter: str, sku: str) -> Market:
    """Spot if both names end so; a row that contradicts itself tells nothing."""
    named = [_METER.fullmatch(meter), _METER.fullmatch(sku)]
    kinds = {found["spot"] is not None for found in named if found is not None}
    if None in named:
        raise _Refused("unknown_meter", f"meter {meter!r} or SKU {sku!r} is of no known form")
    if len(kinds) != 1:
        raise _Refused("market", f"meter {meter!r} and SKU {sku!r} disagree on spot")
    return "spot" if kinds.pop() else "on_demand"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _Refused("date", f"date {text!r} cannot be read") from None
    if moment.tzinfo is None:
        raise _Refused("date", f"date {text!r} names no time zone")
    return moment


def _usd(item: Mapping[str, Any]) -> float:
    """The price of an hour in US dollars."""
    if item.get("currencyCode") != "USD":
        raise _Refused("currency", f"priced in {item.get('currencyCode')!r}, not in USD")
    if item.get("unitOfMeasure") != "1 Hour":
        raise _Refused("unit", f"unit {item.get('unitOfMeasure')!r}; '1 Hour' is expected")
    if item.get("tierMinimumUnits", 0) != 0:
        raise _Refused("tiers", "the price depends on the amount used")
    usd = item.get("retailPrice")
    if isinstance(usd, bool) or not isinstance(usd, int | float):
        raise _Refused("no_price", f"price {usd!r} is no number")
    if not usd > 0:
        raise _Refused("zero_price", f"costs {usd!r} USD")
    if not usd < _MAX_USD:
        raise _Refused("price_range", "costs more than any machine")
    if item.get("unitPrice", usd) != usd:
        raise _Refused("two_prices", f"retail price {usd!r}, unit price {item['unitPrice']!r}")
    return float(usd)
