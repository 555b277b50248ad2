"""The rules of Google Cloud and Azure prices, each on a row made for it."""

from typing import Any

import pytest

from recommender.catalogs.schema import Offer
from tests.catalogs.small import Known
from tests.research.snapshot import azure, gcp
from tests.research.snapshot.sources import SourceBook


def gcp_row(**changed: str) -> dict[str, str]:
    """A whole machine of Google Cloud in two zones."""
    row = {
        "date": "2026-07-30",
        "instance_type": "a2-highgpu-1g",
        "region": "us-central1",
        "ondemand_usd_per_hour": "3.67",
        "spot_usd_per_hour": "1.8",
        "zones": "a c",
    }
    return row | changed


def gcp_offers(row: dict[str, str], machines: Any = None) -> list[Offer]:
    return gcp.machine_offers([row], machines or Known(), SourceBook())


def test_a_regional_price_is_offered_in_every_zone_of_the_machine() -> None:
    offers = gcp_offers(gcp_row())
    assert {(o.zone, o.market) for o in offers} == {
        (f"us-central1-{zone}", market) for zone in "ac" for market in ("on_demand", "spot")
    }


def test_unknown_zones_make_one_offer_for_the_region() -> None:
    assert [o.zone for o in gcp_offers(gcp_row(zones=""))] == ["", ""]


def test_machines_not_sold_on_demand_are_offered_as_spot_only() -> None:
    class SpotOnly(Known):
        def status(self, provider: str, instance_type: str) -> str:
            return "spot_only"

    offers = gcp_offers(gcp_row(zones="a"), SpotOnly())
    assert [(o.market, o.obtainable) for o in offers] == [("spot", "spot_only")]


def test_a_row_marked_as_not_sold_has_no_on_demand_offer() -> None:
    offers = gcp_offers(gcp_row(zones="a", on_demand_sold="0", source="Cyclenerd"))
    assert [o.market for o in offers] == ["spot"]


def part(**changed: str) -> dict[str, str]:
    """The GPU part of an N1 machine."""
    row = {
        "date": "2026-05-20",
        "gpu": "V100",
        "gpus": "1.0",
        "region": "us-central1",
        "zone": "us-central1-a",
        "gpu_ondemand_usd_per_hour": "2.48",
        "gpu_spot_usd_per_hour": "0.992",
        "suspect": "0",
    }
    return row | changed


HOST = {
    "instance_type": "n1-standard-8",
    "region": "us-central1",
    "on_demand_usd_per_hour": "0.38",
    "spot_usd_per_hour": "0.08",
    "as_of": "2026-07-30",
}


def attached(row: dict[str, str], hosts: list[dict[str, str]]) -> list[Offer]:
    return gcp.attached_offers([row], hosts, Known(), SourceBook())


def test_a_host_and_its_gpu_add_up_and_take_the_older_date() -> None:
    listed, spot = attached(part(), [HOST])
    assert (listed.instance_type, listed.kind) == ("n1-standard-8+1xV100", "composed")
    assert (listed.usd_per_hour, spot.usd_per_hour) == (2.86, 1.072)
    assert listed.as_of == "2026-05-20"


def test_a_missing_part_makes_no_offer() -> None:
    assert attached(part(), []) == []
    assert attached(part(), [{**HOST, "on_demand_usd_per_hour": ""}]) == []


def test_suspect_prices_and_other_gpus_are_left_out() -> None:
    assert attached(part(suspect="1"), [HOST]) == []
    assert attached(part(gpu="A100"), [HOST]) == []


def azure_offers(listed: str, spot: str) -> list[Offer]:
    row = {
        "date": "2026-05-20",
        "instance_type": "Standard_ND96isr_H100_v5",
        "region": "eastus",
        "ondemand_usd_per_hour": listed,
        "spot_usd_per_hour": spot,
    }
    return list(azure.offers_of(row, Known(), 1))


def test_azures_price_floor_is_flagged() -> None:
    assert [o.flag for o in azure_offers("100", "18.5")] == ["", "floor"]


def test_a_price_above_azures_price_floor_is_not_flagged() -> None:
    assert [o.flag for o in azure_offers("100", "40")] == ["", ""]


@pytest.mark.parametrize("spot", ["", "90", "100"])
def test_spot_at_nine_tenths_or_unknown_is_no_offer(spot: str) -> None:
    assert [o.market for o in azure_offers("100", spot)] == ["on_demand"]


def test_a_missing_list_price_is_no_offer() -> None:
    assert azure_offers("", "40") == []
