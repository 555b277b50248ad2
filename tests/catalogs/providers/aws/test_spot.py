"""Spot prices: per zone, newest, and refused by name where they are not understood."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from recommender.catalogs.providers.contract import Fetched
from tests.catalogs.providers.aws.cloud import NOW, Cloud, Item
from tests.catalogs.providers.aws.conftest import Read

NAME, ZONE, ID = "p5.48xlarge", "us-east-1a", "use1-az2"
SPOT = frozenset({"spot"})


def spot(fetched: Fetched) -> dict[tuple[str, str], float]:
    return {(o.instance_type, o.zone): o.usd_per_hour for o in fetched.offers if o.market == "spot"}


def rules(fetched: Fetched) -> list[str]:
    return [row.rule for row in fetched.quarantined]


def test_each_zone_keeps_its_price_not_the_least_of_the_region(read: Read) -> None:
    prices = spot(read(parts=SPOT))
    assert prices[NAME, "use1-az2"] == pytest.approx(0.3 * 55.04, rel=1e-6)
    assert prices[NAME, "use1-az1"] == pytest.approx(0.45 * 55.04, rel=1e-6)


def test_zones_are_ids_which_mean_the_same_to_every_account(read: Read) -> None:
    assert {o.zone for o in read(parts=SPOT).offers if o.region == "us-east-1"} == {
        "use1-az1",
        "use1-az2",
    }


def test_rows_without_a_zone_id_are_named_by_the_account(cloud: Cloud, read: Read) -> None:
    for row in cloud.spot["us-east-1"]:
        del row["AvailabilityZoneId"]
    assert (NAME, ID) in spot(read(parts=SPOT))


def test_a_missing_spot_price_is_no_offer_opencost_3725(cloud: Cloud, read: Read) -> None:
    """Neither the on-demand price nor another zone's stands in for it."""
    cloud.spot["us-east-1"].remove(cloud.quote(NAME, ZONE))
    fetched = read()
    assert (NAME, ID) not in spot(fetched)
    assert any(o.instance_type == NAME and o.market == "on_demand" for o in fetched.offers)


def test_the_newest_price_of_a_zone_wins_whatever_the_order(cloud: Cloud, read: Read) -> None:
    row = cloud.quote(NAME, ZONE)
    newer = {**row, "SpotPrice": "20.5", "Timestamp": NOW - timedelta(hours=1)}
    older = {**row, "SpotPrice": "1.5", "Timestamp": NOW - timedelta(days=60)}
    cloud.spot["us-east-1"] += [newer, older]
    fetched = read(parts=SPOT)
    assert spot(fetched)[NAME, ID] == 20.5
    assert rules(fetched) == []


def test_a_price_that_last_changed_weeks_ago_is_as_of_today(read: Read) -> None:
    assert {offer.as_of for offer in read(parts=SPOT).offers} == {"2026-11-21"}


def test_two_prices_of_one_moment_are_both_refused(cloud: Cloud, read: Read) -> None:
    cloud.spot["us-east-1"].append({**cloud.quote(NAME, ZONE), "SpotPrice": "20.5"})
    fetched = read(parts=SPOT)
    assert (NAME, ID) not in spot(fetched)
    assert rules(fetched) == ["duplicate"]


def test_products_of_one_price_are_one_offer(cloud: Cloud, read: Read) -> None:
    row = cloud.quote(NAME, ZONE)
    cloud.spot["us-east-1"].append({**row, "ProductDescription": "Linux/UNIX (Amazon VPC)"})
    assert (NAME, ID) in spot(read(parts=SPOT))


def test_products_of_two_prices_are_refused(cloud: Cloud, read: Read) -> None:
    row = {**cloud.quote(NAME, ZONE), "ProductDescription": "Linux/UNIX (Amazon VPC)"}
    cloud.spot["us-east-1"].append({**row, "SpotPrice": "9.9", "Timestamp": NOW})
    fetched = read(parts=SPOT)
    assert (NAME, ID) not in spot(fetched)
    assert rules(fetched) == ["duplicate"]


def says(**fields: str) -> Callable[[Item], None]:
    return lambda row: row.update(fields)


REFUSED: dict[str, tuple[Callable[[Item], None], str]] = {
    "zero": (says(SpotPrice="0.000000"), "price"),
    "negative": (says(SpotPrice="-1"), "price"),
    "not a number": (says(SpotPrice="NaN"), "price"),
    "empty": (says(SpotPrice=""), "price"),
    "a word": (says(SpotPrice="n/a"), "price"),
    "of Windows": (says(ProductDescription="Windows"), "product"),
    "of no product": (lambda row: row.pop("ProductDescription"), "product"),
    "of an unknown zone": (says(AvailabilityZone="us-east-1z"), "zone"),
    "of two zones at once": (says(AvailabilityZoneId="use1-az9"), "zone"),
    "of no date": (lambda row: row.pop("Timestamp"), "date"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_changed_quote_is_refused_by_name(cloud: Cloud, read: Read, name: str) -> None:
    change, rule = REFUSED[name]
    before = len(cloud.spot["us-east-1"])
    change(cloud.quote(NAME, ZONE))
    fetched = read(parts=SPOT)
    assert (NAME, ID) not in spot(fetched)
    assert [(row.rule, NAME in row.what) for row in fetched.quarantined] == [(rule, True)]
    assert sum(o.region == "us-east-1" for o in fetched.offers) == before - 1


def test_a_local_zone_is_ignored_and_counted(cloud: Cloud, read: Read) -> None:
    row = cloud.quote("g4dn.xlarge", "us-west-2a")
    cloud.spot["us-west-2"].append({**row, "AvailabilityZone": "us-west-2-lax-1a"})
    fetched = read(parts=SPOT)
    assert fetched.counters.ignored == 1
    assert rules(fetched) == []


def test_a_quote_where_the_machine_is_not_offered_is_refused(cloud: Cloud, read: Read) -> None:
    cloud.gone.add((NAME, ID))
    fetched = read(parts=SPOT)
    assert (NAME, ID) not in spot(fetched)
    assert rules(fetched) == ["not_offered"]


def test_every_page_is_read(cloud: Cloud, read: Read) -> None:
    cloud.page = 2
    assert len(spot(read(parts=SPOT))) == sum(len(rows) for rows in cloud.spot.values())


def test_offers_carry_the_range_of_interruption(cloud: Cloud, read: Read) -> None:
    cloud.advisor["spot_advisor"]["us-east-1"]["Linux"][NAME]["r"] = 4
    ranges = {(o.instance_type, o.region): o.interruption_range for o in read(parts=SPOT).offers}
    assert ranges[NAME, "us-east-1"] == 4
    assert ranges[NAME, "us-west-2"] == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["ranges"][0].update(label="<1%"),
        lambda tree: tree["ranges"].pop(),
        lambda tree: tree.pop("spot_advisor"),
        lambda tree: tree["spot_advisor"]["us-east-1"]["Linux"][NAME].update(r=5),
        lambda tree: tree["spot_advisor"]["us-east-1"]["Linux"][NAME].update(r=True),
        lambda tree: tree["spot_advisor"]["us-east-1"]["Linux"][NAME].pop("s"),
    ],
)
def test_an_advisor_of_another_form_is_not_used(
    cloud: Cloud, read: Read, change: Callable[[Item], None]
) -> None:
    change(cloud.advisor)
    fetched = read(parts=SPOT)
    assert {offer.interruption_range for offer in fetched.offers} == {None}
    assert any("spot advisor's file has changed its form" in said for said in fetched.warnings)
