"""On-demand prices from the Price List API (`pricing:GetProducts`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from catalogs.jsontext import parsed
from catalogs.refresh.aws_calls import Caller, Refused
from catalogs.refresh.aws_prices import Listing, PriceRow, judge
from catalogs.schema import InstanceType

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_pricing.type_defs import FilterTypeDef

_ACTION = "pricing:GetProducts"
_FILTERS = (
    ("operatingSystem", "Linux"),
    ("tenancy", "Shared"),
    ("preInstalledSw", "NA"),
    ("licenseModel", "No License required"),
    ("capacitystatus", "Used"),
    ("marketoption", "OnDemand"),
    ("locationType", "AWS Region"),
)
_VALUE_CHARS = 1000  # a filter's value may hold 1,024
_LISTINGS = 3  # a page's token may expire, and the listing starts again


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
    """Read one item of the price list; None if it is not of the known form."""
    what = "an item of the price list"
    try:
        item = parsed(text)
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
            term="OnDemand",
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
