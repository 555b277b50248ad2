"""The rules of AWS prices, each on a few rows made for it."""

from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.schema import Offer
from tests.catalogs import small
from tests.catalogs.small import Known
from tests.research.snapshot import aws, aws_spot
from tests.research.snapshot.sources import SourceBook


def listed_row(**changed: str) -> dict[str, str]:
    """A list price of AWS."""
    row = {
        "date": "2026-01-21",
        "region": "us-east-1",
        "instance_type": "g5.xlarge",
        "usd_per_hour": "1.0",
        "source": "tsaol/aws-gpu",
    }
    return row | changed


def on_demand(*rows: dict[str, str], machines: Any = None) -> list[Offer]:
    return aws.on_demand_offers(list(rows), machines or Known(), SourceBook())


def quote(zone: str, usd: float | None, **changed: Any) -> aws_spot.Quote:
    """A spot quote of g5.xlarge in us-east-1."""
    facts = {
        "instance_type": "g5.xlarge",
        "region": "us-east-1",
        "zone": zone,
        "usd_per_hour": usd,
        "at_floor": False,
        "as_of": "2026-06-20",
        "source": 1,
    }
    return aws_spot.Quote(**(facts | changed))


def g5(name: str = "g5.xlarge", usd: float = 1.0, **changed: Any) -> Offer:
    """A list price of the family of the quotes."""
    return small.offer(instance_type=name, usd_per_hour=usd, **changed)


def test_the_newest_price_of_a_region_wins() -> None:
    offers = on_demand(listed_row(), listed_row(date="2026-08-21", usd_per_hour="1.1"))
    assert [(o.usd_per_hour, o.as_of) for o in offers] == [(1.1, "2026-08-21")]


@pytest.mark.parametrize("region", ["us-west-2-lax-1", "us-east-1-wl1-bos1", "eu-central-1-ham-1"])
def test_local_and_wavelength_zones_are_no_regions(region: str) -> None:
    assert on_demand(listed_row(region=region)) == []


def test_machines_that_do_not_train_are_left_out() -> None:
    assert on_demand(listed_row(instance_type="g4ad.xlarge")) == []


def test_govcloud_is_kept_as_unknown() -> None:
    (offer,) = on_demand(listed_row(region="us-gov-west-1"))
    assert offer.obtainable == "unknown"


def test_retired_machines_are_kept_as_retired() -> None:
    (offer,) = on_demand(listed_row(), machines=Known(g5_xlarge="retired"))
    assert offer.obtainable == "retired"


def test_a_quote_becomes_an_offer_of_its_zone() -> None:
    (offer,) = aws_spot.quoted_offers([quote("use1-az1", 0.4)], Known())
    assert (offer.zone, offer.usd_per_hour, offer.kind) == ("use1-az1", 0.4, "quote")


def test_a_zone_at_the_list_price_has_no_offer() -> None:
    assert aws_spot.quoted_offers([quote("use1-az1", None)], Known()) == []


def test_a_quote_at_the_price_floor_takes_the_median_of_the_other_zones() -> None:
    quotes = [quote("use1-az1", 0.1, at_floor=True), quote("use1-az2", 0.4), quote("use1-az3", 0.6)]
    floor = aws_spot.quoted_offers(quotes, Known())[0]
    assert (floor.usd_per_hour, floor.flag, floor.kind) == (0.5, "floor", "derived")
    assert floor.uncertainty > 0


def test_a_lone_quote_at_the_price_floor_stays_a_flagged_quote() -> None:
    (offer,) = aws_spot.quoted_offers([quote("use1-az1", 0.1, at_floor=True)], Known())
    assert (offer.usd_per_hour, offer.flag, offer.kind) == (0.1, "floor", "quote")


def test_a_zone_known_from_another_size_gets_the_median_at_the_upper_third() -> None:
    quotes = [
        quote("use1-az1", 0.4),
        quote("use1-az2", 0.4),
        quote("use1-az3", 2.0, instance_type="g5.12xlarge"),
    ]
    derived = aws_spot.zone_offers(quotes, [g5()])
    (offer,) = [o for o in derived if o.instance_type == "g5.xlarge"]
    assert (offer.zone, offer.flag, offer.kind) == ("use1-az3", "zone_median", "derived")
    assert 0.4 < offer.usd_per_hour < 0.4 * (1 + offer.uncertainty)


def test_a_zone_at_the_list_price_is_not_filled_from_its_neighbours() -> None:
    quotes = [quote("use1-az1", 0.4), quote("use1-az2", None)]
    assert aws_spot.zone_offers(quotes, [g5()]) == []


def test_missing_zones_of_p_families_stay_missing() -> None:
    quotes = [
        quote("use1-az1", 20.0, instance_type="p5.48xlarge"),
        quote("use1-az2", 2.0, instance_type="p5.4xlarge"),
    ]
    listed = [g5("p5.48xlarge", 55.0), g5("p5.4xlarge", 6.88)]
    assert aws_spot.zone_offers(quotes, listed) == []
    assert aws_spot.regional_offers(quotes, listed, {}, 1) == []


def test_a_size_without_quotes_follows_its_siblings_in_the_region() -> None:
    listed = [g5(), g5("g5.8xlarge", 2.4)]
    (offer,) = aws_spot.regional_offers([quote("use1-az1", 0.4)], listed, {}, 1)
    assert (offer.instance_type, offer.zone, offer.flag) == ("g5.8xlarge", "", "sibling")
    assert offer.usd_per_hour == pytest.approx(2.4 * 0.4 * (1 + 0.22 * 0.6386), rel=1e-3)


def test_without_siblings_the_advisor_decides_and_its_bias_is_undone() -> None:
    advice = {("g5.xlarge", "us-east-1"): aws_spot.Advice(0.6, 3)}
    (offer,) = aws_spot.regional_offers([], [g5()], advice, 9)
    assert (offer.flag, offer.source, offer.as_of) == ("advisor", 9, "2025-06-28")
    assert offer.usd_per_hour == pytest.approx(0.4 / 0.86 * (1 + 0.27 * 0.6386), rel=1e-3)


def test_a_region_quoted_at_the_list_price_only_has_no_derived_offer() -> None:
    advice = {("g5.xlarge", "us-east-1"): aws_spot.Advice(0.6, 3)}
    assert aws_spot.regional_offers([quote("use1-az1", None)], [g5()], advice, 1) == []


@pytest.mark.parametrize("saving", [0.05, 0.1])
def test_a_small_saving_is_no_spot_offer(saving: float) -> None:
    advice = {("g5.xlarge", "us-east-1"): aws_spot.Advice(saving, 0)}
    assert aws_spot.regional_offers([], [g5()], advice, 1) == []


def test_nothing_is_derived_for_machines_that_cannot_be_had() -> None:
    advice = {("g5.xlarge", "us-east-1"): aws_spot.Advice(0.6, 3)}
    assert aws_spot.regional_offers([], [g5(obtainable="retired")], advice, 1) == []


def write_spot_tables(folder: Path) -> None:
    """Write the three spot tables, small."""
    fresh = (
        "region,az_id,instance_type,spot_usd_per_hour,spot_over_ondemand,spot_quote,as_of,source"
    )
    rows = [
        "us-east-1,use1-az1,g5.xlarge,0.4,0.4,market,2026-06-20,SkyPilot catalog copy",
        "us-east-1,use1-az2,g5.xlarge,0.95,0.95,market,2026-06-20,SkyPilot catalog copy",
        "us-east-1,use1-az2,g5.12xlarge,2.0,0.4,market,2026-06-20,SkyPilot catalog copy",
        "eu-west-1,euw1-az1,g5.xlarge,0.95,0.95,market,2026-06-20,SkyPilot catalog copy",
        "eu-west-1,euw1-az1,g5.12xlarge,2.0,0.4,market,2026-06-20,SkyPilot catalog copy",
        "us-east-1,use1-atl2-az1,g5.xlarge,0.2,0.2,market,2026-06-20,SkyPilot catalog copy",
    ]
    (folder / "extra_aws_spot_by_zone.csv").write_text("\n".join([fresh, *rows]))
    old = "region,az_id,instance_type,spot_usd_per_hour,spot_over_ondemand,spot_quote"
    rows = [
        "us-east-1,use1-az1,p3.2xlarge,1.0,0.33,market",
        "us-east-1,use1-az4,g5.xlarge,0.1,0.1,market",
    ]
    (folder / "aws_spot_by_zone.csv").write_text("\n".join([old, *rows]))
    head = "snapshot_not_later_than,region,instance_type,range_index,savings_pct"
    rows = ["2025-06-28,us-east-1,g5.xlarge,3,60", "2024-02-28,us-east-1,p3.2xlarge,4,70"]
    (folder / "aws_spot_advisor.csv").write_text("\n".join([head, *rows]))


def test_old_quotes_serve_only_types_that_the_new_list_lacks(tmp_path: Path) -> None:
    write_spot_tables(tmp_path)
    offers = aws_spot.spot_offers(tmp_path, [g5()], Known(), SourceBook())
    assert {(o.instance_type, o.zone) for o in offers if o.kind == "quote"} == {
        ("g5.xlarge", "use1-az1"),
        ("g5.12xlarge", "use1-az2"),
        ("g5.12xlarge", "euw1-az1"),
        ("p3.2xlarge", "use1-az1"),
    }


def test_no_price_is_derived_where_the_quote_is_close_to_the_list_price(tmp_path: Path) -> None:
    write_spot_tables(tmp_path)
    listed = [g5(), g5("g5.12xlarge", 5.0)]
    listed += [g5(region="eu-west-1"), g5("g5.12xlarge", 5.0, region="eu-west-1")]
    offers = aws_spot.spot_offers(tmp_path, listed, Known(), SourceBook())
    derived = {(o.instance_type, o.region, o.zone) for o in offers if o.kind == "derived"}
    assert derived == {("g5.12xlarge", "us-east-1", "use1-az1")}


def test_interruption_ranges_come_from_the_newest_advice(tmp_path: Path) -> None:
    write_spot_tables(tmp_path)
    offers = aws_spot.spot_offers(tmp_path, [g5()], Known(), SourceBook())
    ranges = {o.instance_type: o.interruption_range for o in offers}
    assert ranges == {"g5.xlarge": 3, "g5.12xlarge": None, "p3.2xlarge": None}
