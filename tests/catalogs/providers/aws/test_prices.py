"""The price list: what is a price, and what is refused by name."""

from collections.abc import Callable
from typing import Any

import pytest

from recommender.catalogs.providers.aws.client import Caller
from recommender.catalogs.providers.aws.price_list import Listed, Listing, list_prices, merged
from tests.catalogs.providers.aws.cloud import Cloud, Item, dimension_of, item_of

Change = Callable[[Item], None]
NAME, REGION = "p5.48xlarge", "us-east-1"


def listed(cloud: Cloud) -> Listing:
    return merged([list_prices(Caller(cloud.wanted()), cloud.types)])


def says(attribute: str, word: str) -> Change:
    def change(item: Item) -> None:
        item["product"]["attributes"][attribute] = word

    return change


def lacks(attribute: str) -> Change:
    return lambda item: item["product"]["attributes"].pop(attribute)


def costs(**fields: Any) -> Change:
    return lambda item: dimension_of(item).update(fields)


def usd(text: str) -> Change:
    return costs(pricePerUnit={"USD": text})


def both(*changes: Change) -> Change:
    def change(item: Item) -> None:
        for each in changes:
            each(item)

    return change


REFUSED: dict[str, tuple[Change, str]] = {
    "usage type renamed": (says("usagetype", "InstanceUsage:p5.48xlarge"), "unknown_usage_type"),
    "of another machine": (says("usagetype", "BoxUsage:p5.4xlarge"), "unknown_usage_type"),
    "market renamed": (says("marketoption", "On-Demand"), "unknown_attribute"),
    "market dropped": (lacks("marketoption"), "unknown_attribute"),
    "operation unknown": (says("operation", "RunInstances:DWS"), "unknown_attribute"),
    "operation dropped": (lacks("operation"), "unknown_attribute"),
    "licence unknown": (says("licenseModel", "Rented"), "unknown_attribute"),
    "place unknown": (lacks("locationType"), "unknown_attribute"),
    "zero": (usd("0.0000000000"), "price"),
    "a preview at almost nothing, below zero": (usd("-0.01"), "price"),
    "not a number": (usd("NaN"), "price"),
    "infinite": (usd("Infinity"), "price"),
    "a word": (usd("contact us"), "price"),
    "per second": (costs(unit="Sec"), "unit"),
    "per month": (costs(unit="Mo"), "unit"),
    "in yuan": (costs(pricePerUnit={"CNY": "400.0"}), "currency"),
    "a free tier": (costs(endRange="750"), "tier"),
    "a later tier": (costs(beginRange="750"), "tier"),
    "half a GPU": (says("gpu", "0.5"), "part_of_gpu"),
    "of other vCPUs": (says("vcpu", "96"), "machine"),
}
IGNORED: dict[str, Change] = {
    "a Capacity Block at 0.00": both(says("marketoption", "CapacityBlock"), usd("0.0000000000")),
    "a Capacity Block by its operation": both(says("operation", "RunInstances:CB"), usd("0.00")),
    "spot flagged on demand": says("usagetype", "SpotUsage:p5.48xlarge"),
    "Windows": says("operatingSystem", "Windows"),
    "SQL Server": says("preInstalledSw", "SQL Std"),
    "SQL Server by its operation": says("operation", "RunInstances:0004"),
    "dedicated": says("tenancy", "Dedicated"),
    "dedicated by its usage type": says("usagetype", "DedicatedUsage:p5.48xlarge"),
    "an unused reservation": says("capacitystatus", "UnusedCapacityReservation"),
    "an unused reservation by its usage type": says("usagetype", "UnusedBox:p5.48xlarge"),
    "a local zone": both(says("locationType", "AWS Local Zone")),
}


def prices(listing: Listing) -> dict[tuple[str, str], float]:
    return {(p.instance_type, p.region): p.usd_per_hour for p in listing.prices}


def test_every_price_is_read(cloud: Cloud) -> None:
    listing = listed(cloud)
    assert len(listing.prices) == len(cloud.items)
    assert prices(listing)[NAME, REGION] == 55.04
    assert listing.quarantined == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_changed_row_is_refused_by_name(cloud: Cloud, name: str) -> None:
    change, rule = REFUSED[name]
    item = cloud.item(NAME, REGION)
    change(item)
    item["product"]["attributes"]["mutant"] = "yes"  # the server lets it through its filters
    listing = listed(cloud)
    assert (NAME, REGION) not in prices(listing)
    assert [(row.rule, NAME in row.what) for row in listing.quarantined] == [(rule, True)]
    assert len(listing.prices) == len(cloud.items) - 1


@pytest.mark.parametrize("name", IGNORED)
def test_a_look_alike_next_to_the_price_changes_nothing(cloud: Cloud, name: str) -> None:
    twin = item_of(cloud.types[NAME], REGION, 21.0)
    twin["product"]["attributes"]["mutant"] = "yes"
    IGNORED[name](twin)
    cloud.items.insert(0, twin)
    listing = listed(cloud)
    assert prices(listing)[NAME, REGION] == 55.04
    assert listing.quarantined == []


def test_a_capacity_block_at_0_00_is_no_price_gpuhunt_36(cloud: Cloud) -> None:
    """The only row of p5 in the region is the Capacity Block's: no offer, above all not 0.00."""
    item = cloud.item(NAME, REGION)
    IGNORED["a Capacity Block at 0.00"](item)
    item["product"]["attributes"]["mutant"] = "yes"
    listing = listed(cloud)
    assert (NAME, REGION) not in prices(listing)
    assert min(p.usd_per_hour for p in listing.prices) > 0


def test_an_h200_for_nothing_is_refused_skypilot_4657(cloud: Cloud) -> None:
    dimension_of(cloud.item("p5en.48xlarge", "us-east-1"))["pricePerUnit"] = {"USD": "0.0"}
    listing = listed(cloud)
    assert ("p5en.48xlarge", "us-east-1") not in {
        (price.instance_type, price.region) for price in listing.prices
    }
    assert [row.what for row in listing.quarantined if "p5en.48xlarge us-east-1" in row.what]


def test_two_prices_of_one_machine_are_both_refused_skypilot_1367(cloud: Cloud) -> None:
    cloud.items.append(item_of(cloud.types[NAME], REGION, 98.32))
    listing = listed(cloud)
    assert (NAME, REGION) not in prices(listing)
    assert [row.rule for row in listing.quarantined] == ["duplicate"]
    assert "55.04 and 98.32" in listing.quarantined[0].reason


def test_the_same_price_twice_is_one_price(cloud: Cloud) -> None:
    cloud.items.append(item_of(cloud.types["p4d.24xlarge"], REGION, 21.95764))
    found = [
        p for p in listed(cloud).prices if (p.instance_type, p.region) == ("p4d.24xlarge", REGION)
    ]
    assert found == [Listed("p4d.24xlarge", REGION, 21.957642)]


def test_a_local_zone_that_looks_like_a_region_is_none(cloud: Cloud) -> None:
    twin = item_of(cloud.types["g4dn.xlarge"], "us-west-2", 0.7)
    twin["product"]["attributes"] |= {"regionCode": "us-west-2-lax-1", "mutant": "yes"}
    cloud.items.append(twin)
    assert {p.region for p in listed(cloud).prices} == {"us-east-1", "us-west-2", "eu-west-1"}


def test_an_item_without_terms_is_refused(cloud: Cloud) -> None:
    del cloud.item(NAME, REGION)["terms"]
    listing = listed(cloud)
    assert (NAME, REGION) not in prices(listing)
    assert [(r.rule, NAME in r.what) for r in listing.quarantined] == [("missing_part", True)]


def test_an_item_with_two_prices_is_refused(cloud: Cloud) -> None:
    item = cloud.item(NAME, REGION)
    terms = item["terms"]["OnDemand"]
    terms["other"] = next(iter(terms.values()))
    listing = listed(cloud)
    assert (NAME, REGION) not in prices(listing)
    assert [row.rule for row in listing.quarantined] == ["format"]


@pytest.mark.parametrize("day", ["2027-01-01T00:00:00Z", "12/24/2026", "24 December", "", "0"])
def test_a_price_of_tomorrow_or_of_no_day_is_refused(cloud: Cloud, day: str) -> None:
    (term,) = cloud.item(NAME, REGION)["terms"]["OnDemand"].values()
    term["effectiveDate"] = day
    listing = listed(cloud)
    assert [row.rule for row in listing.quarantined] == ["date"]


def test_items_that_are_no_json_are_refused(cloud: Cloud) -> None:
    def broken(page: bytes) -> tuple[int, bytes]:
        return 200, page.replace(b'{\\"product\\"', b"{product", 1)

    cloud.trouble["GetProducts", ""] = [broken]
    listing = listed(cloud)
    assert [row.rule for row in listing.quarantined] == ["format"]
    assert len(listing.prices) == len(cloud.items) - 1


def test_an_expired_page_starts_the_listing_again(cloud: Cloud) -> None:
    cloud.trouble["GetProducts", ""] = [lambda page: (200, page), "ExpiredNextTokenException"]
    listing = listed(cloud)
    assert len(listing.prices) == len(cloud.items)
    assert listing.quarantined == []


def test_names_are_requested_in_filters_of_a_thousand_characters(cloud: Cloud) -> None:
    names = [f"g{n}.{size}xlarge" for n in range(10, 30) for size in range(10, 24)]
    caller = Caller(cloud.wanted())
    cloud.page = 1000
    list_prices(caller, {**cloud.types, **dict.fromkeys(names)})
    assert cloud.seen["GetProducts"] == 4  # 290 names of some 11 characters


def test_only_the_regions_requested_are_listed(cloud: Cloud) -> None:
    caller = Caller(cloud.wanted(regions=("eu-west-1",)))
    listing = list_prices(caller, cloud.types)
    assert {p.region for p in listing.prices} == {"eu-west-1"}
