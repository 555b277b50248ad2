"""No lie of a server is published in silence, and none that is off by a tenth.

All are told by hand, with `pytest -m attack -s` on this file, which prints the table of
docs/research/refresh.md.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.providers.aws.cloud import make_cloud
from tests.catalogs.providers.aws.conftest import cloud, methods_of  # noqa: F401
from tests.catalogs.providers.aws.full import FullCloud
from tests.catalogs.providers.aws.test_prices import dimension_of
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.refresh.clouds import azure_list, gcp_list
from tests.catalogs.refresh.wire_lies import (
    Cloud,
    Lie,
    Nights,
    Outcome,
    Raw,
    aws_rows,
    aws_server,
    azure_row,
    changed,
    gcp_row,
    new_lies,
    old_lies,
    serve_azure,
    serve_gcp,
    twin,
)
from tests.catalogs.refresh.world import TYPES
from tests.shipped import snapshot


def gcp() -> Cloud:
    """Google's price list of the machines of this world."""
    rows = [raw for raw in gcp_list() if PARTS.search(raw["description"])]
    return Cloud("gcp", rows, lambda lists: [gcp_row(raw) for raw in lists], serve_gcp)


PARTS = re.compile(r"A2 |A3 |G2 |N1 |T4|L4|A100|H100 80GB GPU|Local Storage")


def azure() -> Cloud:
    """Azure's list of the machines of this world, with Windows next to Linux."""
    rows = [raw for raw in azure_list() if raw["armSkuName"] in TYPES["azure"]]
    return Cloud("azure", rows, lambda lists: [azure_row(raw) for raw in lists if linux(raw)],
                 serve_azure)  # fmt: skip


def linux(raw: Raw) -> bool:
    """Not a row that no client should read."""
    other = ("Windows", "Low Priority")
    return not any(word in f"{raw['productName']} {raw['meterName']}" for word in other)


def aws() -> Cloud:
    """All regions of AWS, with the machines of this world."""
    regions = sorted({o.region for o in snapshot().offers if o.provider == "aws"})
    made = make_cloud(TYPES["aws"], tuple(regions))
    full = FullCloud(**vars(made))
    full.page = 1000
    sold = {(r.name, r.region) for r in aws_rows(made.items)}
    full.gone = {(n, r) for n in TYPES["aws"] for r in regions if (n, r) not in sold}
    lists = [*made.items, *(quote for quotes in made.spot.values() for quote in quotes)]
    return Cloud("aws", lists, aws_rows, aws_server(full))


MAKERS: dict[str, Callable[[], Cloud]] = {"aws": aws, "gcp": gcp, "azure": azure}


def put(*path: Any) -> Callable[[Raw], None]:
    """Write a value (the last word) into a row."""

    def change(raw: Raw) -> None:
        *inside, name, value = path
        for each in inside:
            raw = raw[each]
        raw[name] = value

    return change


def dearer(info: Raw) -> Raw:
    """Pricing of Google's at twice the price."""
    more = deepcopy(info)
    price = more["pricingExpression"]["tieredRates"][0]["unitPrice"]
    units, nanos = divmod(2 * (int(price["units"]) * 10**9 + price["nanos"]), 10**9)
    price.update(units=str(units), nanos=nanos)
    return more


RATE = ("pricingInfo", 0, "pricingExpression", "tieredRates", 0)
FIELDS: dict[str, dict[str, Callable[[Raw], None]]] = {
    "gcp": {
        "of tomorrow": put("pricingInfo", 0, "ahead", 2),
        "of last year": put("pricingInfo", 0, "ahead", -365),
        "converted": put("pricingInfo", 0, "currencyConversionRate", 0.92),
        "per hundred": put("pricingInfo", 0, "pricingExpression", "displayQuantity", 100),
        "aggregated": put("pricingInfo", 0, "aggregationInfo",
                          {"aggregationLevel": "ACCOUNT", "aggregationInterval": "MONTHLY",
                           "aggregationCount": 1}),
        "in euros": put(*RATE, "unitPrice", "currencyCode", "EUR"),
        "per month": put("pricingInfo", 0, "pricingExpression", "usageUnit", "mo"),
        "from 100 on": put(*RATE, "startUsageAmount", 100),
        "committed": put("category", "usageType", "Commit1Yr"),
        "of an hour of a minute": put("pricingInfo", 0, "pricingExpression",
                                      "baseUnitConversionFactor", 60),
        "of an hour in minutes": put("pricingInfo", 0, "pricingExpression", "baseUnit", "min"),
        "and another of the same moment": lambda raw: raw["pricingInfo"].append(
            dearer(raw["pricingInfo"][0])),
        "and a dearer one to come": lambda raw: raw["pricingInfo"].insert(
            0, {**dearer(raw["pricingInfo"][0]), "ahead": 0.26}),
    },
    "azure": {
        "of tomorrow": put("effectiveStartDate", "2026-12-24T00:00:00Z"),
        "that has ended": put("effectiveEndDate", "2026-01-01T00:00:00Z"),
        "in euros": put("currencyCode", "EUR"),
        "per month": put("unitOfMeasure", "1/Month"),
        "from 100 on": put("tierMinimumUnits", 100.0),
        "of another unit price": put("unitPrice", 0.001),
        "promotional": put("productName", "Virtual Machines X Promo Series"),
        "dedicated": put("productName", "Virtual Machines X Series Dedicated Host"),
        "reserved": put("type", "Reservation"),
        "of no time zone": put("effectiveStartDate", "2026-11-20T00:00:00"),
        "that ends some day": put("effectiveEndDate", "soon"),
        "from less than nothing on": put("tierMinimumUnits", -1.0),
        "of no tier": put("tierMinimumUnits", None),
    },
    "aws": {},
}  # fmt: skip


def effective(day: str) -> Callable[[Raw], None]:
    """Write the day from which an item of AWS's list holds."""
    return lambda raw: next(iter(raw["terms"]["OnDemand"].values())).update(effectiveDate=day)


def aws_fields() -> Iterator[tuple[str, str, Callable[[Raw], None]]]:
    """Fields of items and of quotes."""
    for words, days in (
        ("of next year", 365),
        ("of 2024", -700),
        ("of tomorrow", 1.5),
        ("of an hour to come", 1.039),
        ("of half a year ago", -178),
    ):
        yield words, "spot", put("Timestamp", NOW + timedelta(days=days))
    for product in ("Windows", "SUSE Linux", "Red Hat Enterprise Linux"):
        yield f"of {product}", "spot", put("ProductDescription", product)
    for name, value in (("unit", "Quantity"), ("beginRange", "100"), ("endRange", "10")):
        yield (
            f"with {name} {value}",
            "on_demand",
            lambda r, n=name, v=value: dimension_of(r).__setitem__(n, v),
        )
    for day in ("12/24/2026", "24 December", ""):
        yield f"of '{day}'", "on_demand", effective(day)
    for name, word in (("operatingSystem", "Windows"), ("tenancy", "Dedicated"),
                       ("marketoption", "CapacityBlock"), ("licenseModel", "BYOL")):  # fmt: skip
        yield f"of {word}", "on_demand", put("product", "attributes", name, word)


def field_lies(name: str) -> Iterator[tuple[str, Lie, int]]:
    """Dates, units and currencies: in place of an honest row, and next to it."""
    fields = [(words, market, change) for words, change in FIELDS[name].items()
              for market in ("on_demand", "spot")]  # fmt: skip
    for words, market, change in [*fields, *(aws_fields() if name == "aws" else ())]:
        for scope in ("a row", "a machine"):
            yield f"{market} {scope} {words}", changed(change, market, scope, 0.7), 1
        yield f"{market} a twin {words}", twin(change, market, "a row", 0.7), 1


def lies(name: str) -> list[tuple[str, Lie, int]]:
    """All lies about a provider's prices."""
    return [*old_lies(), *new_lies(), *field_lies(name)]


def told(name: str, folder: Path, some: slice) -> list[Outcome]:
    """What became of lies."""
    nights, found = Nights(MAKERS[name](), folder), []
    for words, lie, number in lies(name)[some]:
        found.append(nights.after(words, lie, number))
        if found[-1].wrong or found[-1].silent:
            print(name, found[-1], flush=True)
    return found


def judged(name: str, found: list[Outcome]) -> None:
    """Nothing in silence, nothing wrong by a tenth."""
    print(f"{name}: {len(found)} lies; {sum(o.wrong > 0 for o in found)} published something "
          f"wrong, {sum(o.silent > 0 for o in found)} in silence, "
          f"{sum(o.far > 0 for o in found)} by a tenth")  # fmt: skip
    assert [o for o in found if o.silent or o.far] == []


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("name", MAKERS)
def test_a_sample_of_lies_is_held_or_told(name: str, tmp_path: Path) -> None:
    judged(name, told(name, tmp_path, slice(7, None, 80)))


@pytest.mark.attack
@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("name", MAKERS)
def test_every_lie_is_held_or_told(name: str, tmp_path: Path) -> None:
    judged(name, told(name, tmp_path, slice(None)))
