"""On-demand prices from the Price List API (`pricing:GetProducts`), and how its rows are
classified.

The rows of p5.48xlarge in one region differ only in `marketoption`. On-demand costs 55.04 USD, and
the Capacity Block row says 0.00 (its fee is paid upfront). So a row is a price only if every
attribute has the expected value. A row with a value known to mean something else is ignored; any
other row is quarantined by name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from math import isclose
from typing import TYPE_CHECKING, Any

from recommender.catalogs.files import parse_json
from recommender.catalogs.providers.aws.client import Caller, Refused
from recommender.catalogs.providers.contract import Quarantined
from recommender.catalogs.schema import InstanceType

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_pricing.type_defs import FilterTypeDef


REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
LOCAL = re.compile(r"[a-z]{2}(-[a-z]+)+-\d-[a-z]+-\d[a-z]?")  # local and wavelength zones
_DAY = re.compile(r"20\d\d-[01]\d-[0-3]\d")
_USAGE = re.compile(r"(?:[A-Z0-9]+-)?(\w+):(.+)")
_OTHER_USAGE = frozenset(
    {
        "DedicatedUsage", "UnusedBox", "UnusedDed", "HostBoxUsage", "Reservation", "HostUsage",
        "DedicatedRes", "UnusedHostBox", "SpotUsage", "HeavyUsage", "MediumUsage",
    }
)  # fmt: skip
_OTHER_MARKET = frozenset({"CapacityBlock", "FutureCapacity", "Spot"})
_OTHER_OPERATION = re.compile(r"RunInstances:(CB|[0-9a-fA-F]{4}(:SV\d+)?)")
_SAME = 1e-6  # prices of one type differ in the eighth digit between lists
_ACTION = "pricing:GetProducts"
_VALUE_CHARS = 1000  # a filter's value may hold 1,024
_LISTINGS = 3  # a page's token may expire, and the listing starts again


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A row of the price list, in AWS's terms; "" for missing values."""

    instance_type: str
    region: str
    location_type: str
    operating_system: str
    tenancy: str
    software: str
    licence: str
    capacity_status: str
    market_option: str
    usage_type: str
    operation: str
    vcpus: str
    gpus: str
    begin: str
    end: str
    unit: str
    currency: str
    price: str
    effective: str  # ISO date from which it holds

    @property
    def name(self) -> str:
        """The row in words."""
        return f"{self.instance_type or '?'} {self.region or '?'} {self.usage_type or '?'}"


@dataclass(frozen=True, slots=True)
class Listed:
    """An on-demand price of AWS's price list, for a requested machine."""

    instance_type: str
    region: str
    usd_per_hour: float


@dataclass(slots=True)
class Listing:
    """The prices read, and the fate of the other rows."""

    prices: list[Listed] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    rows: int = 0
    ignored: int = 0

    def refuse(self, what: str, rule: str, reason: str) -> None:
        """Quarantine a row."""
        self.quarantined.append(Quarantined("aws", what, reason, rule))


# What a row must say in an attribute, and which other words are known.
_Words = Callable[[str], bool]
_MEANT: tuple[tuple[str, str, _Words], ...] = (
    ("operating_system", "Linux", bool),
    ("tenancy", "Shared", {"Dedicated", "Host", "Reserved"}.__contains__),
    ("software", "NA", bool),
    ("licence", "No License required", {"Bring your own license"}.__contains__),
    ("capacity_status", "Used", bool),
    ("market_option", "OnDemand", _OTHER_MARKET.__contains__),
    ("location_type", "AWS Region", bool),
    ("operation", "RunInstances", lambda word: bool(_OTHER_OPERATION.fullmatch(word))),
)


def judge(
    row: PriceRow, machines: Mapping[str, InstanceType | None], today: str, out: Listing
) -> None:
    """Classify a row.

    `machines` are the requested ones; None if the catalog does not describe one yet.
    """
    out.rows += 1
    if _is_ignored(row, machines):
        out.ignored += 1
        return
    problem = _problem(row, machines[row.instance_type], today)
    usd = positive(row.price)
    if problem is not None:
        out.refuse(row.name, *problem)
    elif usd is None:
        out.refuse(row.name, "price", f"{row.price!r} is not a positive number")
    else:
        out.prices.append(Listed(row.instance_type, row.region, usd))


def _is_ignored(row: PriceRow, machines: Mapping[str, InstanceType | None]) -> bool:
    for attribute, meant, known in _MEANT:
        word = getattr(row, attribute)
        if word != meant and known(word):
            return True
    usage = _USAGE.fullmatch(row.usage_type)
    if usage and usage[1] in _OTHER_USAGE:
        return True
    if LOCAL.fullmatch(row.region):
        return True
    return row.instance_type not in machines


def _problem(row: PriceRow, machine: InstanceType | None, today: str) -> tuple[str, str] | None:
    """Say by which rule and why a row is not believed."""
    for attribute, meant, _ in _MEANT:
        word = getattr(row, attribute)
        if word != meant:
            return "unknown_attribute", f"{attribute} is {word!r}, not {meant!r}"
    usage = _USAGE.fullmatch(row.usage_type)
    if not usage or usage[1] != "BoxUsage" or usage[2] != row.instance_type:
        return "unknown_usage_type", f"{row.usage_type!r} is not BoxUsage of {row.instance_type}"
    if not REGION.fullmatch(row.region):
        return "region", f"{row.region!r} is no region"
    for rule, word, meant in (
        ("unit", row.unit, "Hrs"),
        ("currency", row.currency, "USD"),
        ("tier", row.begin, "0"),
        ("tier", row.end, "Inf"),
    ):
        if word != meant:
            return rule, f"{rule} {word!r}, not {meant!r}"
    if not _DAY.match(row.effective) or row.effective[:10] > today:
        return "date", f"it holds from {row.effective or 'an unknown date'} on"
    return _other_machine(row, machine)


def _other_machine(row: PriceRow, machine: InstanceType | None) -> tuple[str, str] | None:
    if machine is None:
        return None
    if row.vcpus != str(machine.vcpus):
        return "machine", f"a price for {row.vcpus!r} vCPUs; the machine has {machine.vcpus}"
    if row.gpus in ("", "NA"):  # the price list leaves it out for some machines
        return None
    gpus = positive(row.gpus)
    if machine.gpu and (gpus is None or gpus != int(gpus)):
        return "part_of_gpu", f"a price for {row.gpus} GPUs; the machine has {machine.gpus}"
    return None


def without_duplicates(listing: Listing) -> None:
    """Keep one price per machine and region; none if two differ."""
    found: dict[tuple[str, str], list[float]] = {}
    for price in listing.prices:
        found.setdefault((price.instance_type, price.region), []).append(price.usd_per_hour)
    listing.prices = []
    for (name, region), prices in found.items():
        if isclose(min(prices), max(prices), rel_tol=_SAME):
            listing.prices.append(Listed(name, region, prices[0]))
        else:
            what = f"{name} {region} on_demand"
            listed = " and ".join(f"{usd:g}" for usd in sorted(set(prices)))
            listing.refuse(what, "duplicate", f"listed at {listed} USD/h")


def merged(listings: Iterable[Listing]) -> Listing:
    """Combine several listings."""
    whole = Listing()
    for each in listings:
        whole.prices += each.prices
        whole.quarantined += each.quarantined
        whole.rows += each.rows
        whole.ignored += each.ignored
    without_duplicates(whole)
    return whole


def positive(text: str) -> float | None:
    """Read a positive decimal number; None for anything else."""
    try:
        value = Decimal(text.strip())
    except (InvalidOperation, AttributeError):
        return None
    usable = value.is_finite() and value > 0
    return float(value) if usable and float(value) > 0 else None


_FILTERS = (
    ("operatingSystem", "Linux"),
    ("tenancy", "Shared"),
    ("preInstalledSw", "NA"),
    ("licenseModel", "No License required"),
    ("capacitystatus", "Used"),
    ("marketoption", "OnDemand"),
    ("locationType", "AWS Region"),
)


def list_prices(caller: Caller, machines: Mapping[str, InstanceType | None]) -> Listing:
    """List the on-demand prices of the machines in all regions.

    Raises:
        ProviderError: the list cannot be read to its end.
    """
    client = caller.pricing()
    out = Listing()
    for names in _groups(sorted(machines)):
        for item in _items(caller, client, names):
            row = read_item(item, out)
            if row is not None:
                judge(row, machines, caller.wanted.today, out)
    return out


def _items(caller: Caller, client: "PricingClient", names: Sequence[str]) -> list[str]:
    for left in reversed(range(_LISTINGS)):
        try:
            return list(_listing(caller, client, names))
        except Refused as error:
            if error.code != "ExpiredNextTokenException" or not left:
                raise
    raise AssertionError("the last listing returns or raises")


def _listing(caller: Caller, client: "PricingClient", names: Sequence[str]) -> Iterator[str]:
    filters = [_filter("TERM_MATCH", name, value) for name, value in _FILTERS]
    filters.append(_filter("ANY_OF", "instanceType", ",".join(names)))
    if caller.wanted.regions:
        filters.append(_filter("ANY_OF", "regionCode", ",".join(caller.wanted.regions)))
    listing = client.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2",
        Filters=filters,
        FormatVersion="aws_v1",
        PaginationConfig={"PageSize": 100},
    )
    for page in caller.pages(_ACTION, listing):
        yield from page.get("PriceList", ())


def _filter(kind: Any, name: str, value: str) -> "FilterTypeDef":
    return {"Type": kind, "Field": name, "Value": value}


def _groups(names: Iterable[str]) -> Iterator[list[str]]:
    """Names in groups that fit one filter."""
    group: list[str] = []
    size = 0
    for name in names:
        if group and size + len(name) + 1 > _VALUE_CHARS:
            yield group
            group, size = [], 0
        group.append(name)
        size += len(name) + 1
    if group:
        yield group


def read_item(text: str, out: Listing) -> PriceRow | None:
    """Read one item of the price list; None if it has another format."""
    what = "an item of the price list"
    try:
        item = parse_json(text)
        attributes = _texts(item["product"]["attributes"])
        get = attributes.get
        what = f"{get('instanceType', '?')} {get('regionCode', '?')} {get('usagetype', '?')}"
        (dimension,) = _dimensions(item["terms"]["OnDemand"])
        effective, price = dimension
        currencies = _texts(price["pricePerUnit"])
        currency = "USD" if "USD" in currencies else next(iter(sorted(currencies)), "")
        return PriceRow(
            instance_type=get("instanceType", ""),
            region=get("regionCode", ""),
            location_type=get("locationType", ""),
            operating_system=get("operatingSystem", ""),
            tenancy=get("tenancy", ""),
            software=get("preInstalledSw", ""),
            licence=get("licenseModel", ""),
            capacity_status=get("capacitystatus", ""),
            market_option=get("marketoption", ""),
            usage_type=get("usagetype", ""),
            operation=get("operation", ""),
            vcpus=get("vcpu", ""),
            gpus=get("gpu", ""),
            begin=str(price.get("beginRange", "")),
            end=str(price.get("endRange", "")),
            unit=str(price.get("unit", "")),
            currency=currency,
            price=currencies.get(currency, ""),
            effective=effective,
        )
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"it lacks what a price needs ({type(error).__name__}: {str(error)[:80]})"
        rule = "missing_part"
    except ValueError as error:
        reason = f"not one price in a known form ({type(error).__name__})"
        rule = "format"
    out.rows += 1
    out.refuse(what, rule, reason)
    return None


def _dimensions(terms: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (str(term.get("effectiveDate", "")), price)
        for term in terms.values()
        for price in term["priceDimensions"].values()
    ]


def _texts(cells: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in cells.items()}
