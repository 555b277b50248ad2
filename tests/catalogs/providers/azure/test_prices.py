"""Rows of Azure's price list that are not what they seem: refused by name or left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.azure.prices import Reader
from tests.catalogs.providers.azure.items import SIZES, fetch, item, price, world
from tests.catalogs.providers.gcp.skus import NOW

T4 = "Standard_NC4as_T4_v3"
MARKETS = ("on_demand", "spot")
TRUE = {(o.instance_type, o.region, o.market): o.usd_per_hour for o in fetch(world()).offers}


def changed(**fields: Any) -> list[dict[str, Any]]:
    """The world, with the on-demand row of the T4 in East US changed."""
    rows = world()
    assert (rows[0]["armSkuName"], rows[0]["armRegionName"]) == (T4, "eastus")
    rows[0].update(fields)
    return rows


MUTATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "for nothing": ({"retailPrice": 0.0, "unitPrice": 0.0}, "zero_price"),
    "negative": ({"retailPrice": -1.0, "unitPrice": -1.0}, "zero_price"),
    "infinite": ({"retailPrice": float("inf"), "unitPrice": float("inf")}, "price_range"),
    "too large": ({"retailPrice": 10**299, "unitPrice": 10**299}, "price_range"),
    "no number": ({"retailPrice": float("nan"), "unitPrice": float("nan")}, "zero_price"),
    "price as text": ({"retailPrice": "0.526"}, "no_price"),
    "price true": ({"retailPrice": True, "unitPrice": True}, "no_price"),
    "no price": ({"retailPrice": None}, "no_price"),
    "two prices": ({"unitPrice": 0.9}, "two_prices"),
    "by the month": ({"unitOfMeasure": "1/Month"}, "unit"),
    "by a hundred hours": ({"unitOfMeasure": "100 Hours"}, "unit"),
    "euros": ({"currencyCode": "EUR"}, "currency"),
    "from an amount on": ({"tierMinimumUnits": 100.0}, "tiers"),
    "spot in one name": ({"skuName": "NC4as T4 v3 Spot"}, "market"),
    "spot in the other": ({"meterName": "NC4as T4 v3 Spot"}, "market"),
    "unknown product": ({"productName": "Confidential Container Groups"}, "unknown_product"),
    "unknown meter": ({"meterName": "NC4as T4 v3 (vCPU)"}, "unknown_meter"),
    "no region": ({"armRegionName": ""}, "region"),
    "a place, no region": ({"armRegionName": "US East"}, "region"),
    "a place of words": ({"armRegionName": "US-East (1)"}, "region"),
    "no date": ({"effectiveStartDate": "soon"}, "date"),
    "no time zone": ({"effectiveStartDate": "2025-04-01T00:00:00"}, "date"),
    "malformed": ({"productName": {"en": "x"}}, "malformed"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_row_is_refused_by_name_and_not_offered(name: str):
    fields, rule = MUTATIONS[name]
    made = fetch(changed(**fields))
    assert rule in {row.rule for row in made.quarantined}
    assert price(made.offers, T4, "eastus", "on_demand") is None
    left = {(o.instance_type, o.region, o.market): o.usd_per_hour for o in made.offers}
    assert left.items() <= TRUE.items()
    assert len(left) == len(TRUE) - 1


def test_a_number_beyond_any_float_makes_an_answer_that_cannot_be_read():
    with pytest.raises(ProviderError, match="no JSON"):
        fetch(changed(retailPrice=10**400, unitPrice=10**400))


def test_a_row_that_is_no_object_is_refused():
    rows: list[Any] = [*world()]
    made = fetch([{**rows[0], "armSkuName": T4}, *rows[1:]])
    assert made.quarantined == ()
    assert {(o.instance_type, o.region, o.market): o.usd_per_hour for o in made.offers} == TRUE


LEFT_OUT: dict[str, dict[str, Any]] = {
    "Windows": {"productName": "Virtual Machines NCasT4 v3 Series Windows"},
    "low priority": {"meterName": "NC4as T4 v3 Low Priority", "skuName": "NC4as T4 v3"},
    "dev/test": {"type": "DevTestConsumption"},
    "reservation": {"type": "Reservation", "reservationTerm": "1 Year", "retailPrice": 2900.0},
    "reservation as consumption": {"reservationTerm": "1 Year"},
    "cloud services": {"productName": "NCasT4 v3 Series Cloud Services"},
    "dedicated host": {"productName": "NCasT4 v3 Series Dedicated Host"},
    "expired": {"meterName": "NC4as T4 v3 Expired"},
    "promotion": {"meterName": "NC4as T4 v3 Promo"},
    "promoted size": {"armSkuName": "Standard_NC4as_T4_v3_Promo"},
    "a size without name": {"armSkuName": ""},
    "not yet in force": {"effectiveStartDate": "2026-12-01T00:00:00Z"},
    "no longer in force": {"effectiveEndDate": "2026-01-01T00:00:00Z"},
    "older price": {"effectiveStartDate": "2020-01-01T00:00:00Z"},
    "meter of another region": {"isPrimaryMeterRegion": False},
    "government": {"armRegionName": "usgovvirginia"},
    "telephone company": {"armRegionName": "attdallas1"},
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_row_that_is_not_meant_changes_no_price(name: str):
    extra = item(T4, "eastus", 0.111)
    fields = {"unitPrice": LEFT_OUT[name].get("retailPrice", 0.111), **LEFT_OUT[name]}
    usual, made = fetch(world()), fetch([{**extra, **fields}, *world()])
    assert {(o.instance_type, o.region, o.market): o.usd_per_hour for o in made.offers} == TRUE
    assert made.quarantined == ()
    assert made.counters.ignored == usual.counters.ignored + 1 or name == "a size without name"


def test_the_newest_price_in_force_counts_in_any_order():
    newer = item(T4, "eastus", 0.6, effectiveStartDate="2026-11-01T00:00:00Z")
    for rows in ([newer, *world()], [*world(), newer]):
        assert price(fetch(rows).offers, T4, "eastus", "on_demand") == 0.6


def test_two_prices_of_one_day_are_both_dropped_and_named():
    made = fetch([*world(), item(T4, "eastus", 0.3)])
    assert price(made.offers, T4, "eastus", "on_demand") is None
    assert [row.rule for row in made.quarantined] == ["duplicate", "duplicate"]


def test_the_same_price_twice_is_one_offer():
    made = fetch([*world(), item(T4, "eastus", 0.526, meterId="another")])
    assert price(made.offers, T4, "eastus", "on_demand") == 0.526
    assert made.quarantined == ()


def test_names_count_in_any_case_and_with_or_without_prefix():
    for size in ("standard_nc4as_t4_v3", "STANDARD_NC4AS_T4_V3", " Standard_NC4as_T4_v3 "):
        rows = [*changed(armSkuName=f"Standard_N/{size}")]
        rows[0]["armSkuName"] = size if "Standard_N" in size else f"Standard_N{size[10:]}"
        assert price(fetch(rows).offers, T4, "eastus", "on_demand") == 0.526
    for region in ("EastUS", "EASTUS", "eastus "):
        made = fetch(changed(armRegionName=region))
        assert price(made.offers, T4, "eastus", "on_demand") == 0.526


def test_a_linux_product_is_a_plain_product():
    made = fetch(changed(productName="Virtual Machines NCasT4 v3 Series Linux"))
    assert price(made.offers, T4, "eastus", "on_demand") == 0.526


@pytest.mark.parametrize(
    ("product", "meter"),
    [
        ("Virtual Machines NDsr H100 v5 Series", "ND96isrH100v5"),
        ("Virtual Machines NDsrGB200NDRv6 Series", "ND128isrNDRGB200v6"),
        ("Virtual Machines NCadsH100v5 Series", "NC40adsH100v5"),
        ("Virtual Machines Dsv5 Series", "D4s v5"),
        ("Virtual Machines FSv2 Series", "F4s v2"),
        ("Virtual Machines LSv3 Series", "L8s v3"),
    ],
)
@pytest.mark.parametrize("market", MARKETS)
def test_names_that_azure_has_used_are_known(product: str, meter: str, market: str):
    spot = " Spot" * (market == "spot")
    names = {"meterName": f"{meter}{spot}", "skuName": f"{meter}{spot}"}
    rows = [item(T4, "eastus", 0.2, productName=product, **names)]
    assert price(fetch(rows).offers, T4, "eastus", market) == 0.2


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
NAMES = sorted(set(item(T4, "eastus", 1.0)) - {"retailPrice", "unitPrice"})


@given(st.integers(0, len(world()) - 1), st.sampled_from(NAMES), ANY_JSON)
def test_whatever_a_field_holds_no_price_is_invented(number: int, name: str, value: Any):
    reader, rows = Reader(SIZES, NOW), world()
    rows[number][name] = value
    for row in rows:
        reader.take(row)
    left = {place: usd for place, usd in reader.prices().usd.items() if place in TRUE}
    assert left.items() <= TRUE.items()


@given(ANY_JSON)
def test_whatever_a_row_is_the_others_are_read(row: Any):
    reader = Reader(SIZES, NOW)
    for each in (row, *world()):
        reader.take(each)
    usd = reader.prices().usd
    assert {place: usd[place] for place in TRUE} == TRUE
