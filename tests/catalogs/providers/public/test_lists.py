"""Each public list by its reader: what it offers, what it leaves out, and its age."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.provider_info import ANY_REGION
from recommender.catalogs.providers.clients import has_account, update_makers
from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.providers.public import aws, ovh
from recommender.catalogs.registry import CLOUDS
from tests.catalogs.providers.public.world import (
    PATIENCE,
    World,
    gpuhunt_rows,
    order_catalog,
    readers,
    served,
    shipped,
    skypilot_rows,
    wanted,
)
from tests.catalogs.refresh.servers import Reply, http_server

P5 = "p5.48xlarge"


def read(provider: str, world: World, **more: Any) -> Fetched:
    """What the real reader hands over."""
    with served(world) as server:
        return readers(server.address)[provider]().fetch(wanted(provider, **more))


def lists_of(provider: str, *rows: dict[str, Any]) -> World:
    return World(gpuhunt={provider: [*gpuhunt_rows(provider), *rows]})


@pytest.mark.parametrize("provider", ["lambda", "nebius", "oci", "runpod", "verda", "cloudrift"])
def test_a_published_catalog_gives_the_prices_of_its_day(provider: str) -> None:
    made = read(provider, lists_of(provider))
    prices = {(o.instance_type, o.region, o.market): o.usd_per_hour for o in made.offers}
    expected = {(o.instance_type, o.region, o.market): o.usd_per_hour for o in shipped(provider)}
    assert prices == expected
    assert {o.as_of for o in made.offers} == {made.since} == {"2026-11-21"}
    assert made.quarantined == ()


def test_google_is_read_by_zone_with_the_gpus_of_n1_hosts() -> None:
    made = read("gcp", lists_of("gcp"))
    t4 = [o for o in made.offers if o.instance_type == "n1-standard-8+1xT4"]
    assert t4
    assert all(o.zone.startswith(f"{o.region}-") for o in made.offers)


def test_a_price_that_holds_anywhere_is_one_offer() -> None:
    row = next(r for r in gpuhunt_rows("lambda") if r["instance_name"] == "gpu_8x_h100_sxm5")
    made = read("lambda", lists_of("lambda", *({**row, "location": f"us-east-{n}"} for n in "123")))
    assert [o.region for o in made.offers if o.instance_type == "gpu_8x_h100_sxm5"] == [ANY_REGION]


def test_a_machine_with_several_prices_anywhere_is_not_believed() -> None:
    row = next(r for r in gpuhunt_rows("lambda") if r["instance_name"] == "gpu_8x_h100_sxm5")
    made = read("lambda", lists_of("lambda", {**row, "location": "us-east-1", "price": 30.0}))
    assert "gpu_8x_h100_sxm5" not in {o.instance_type for o in made.offers}
    assert [q.rule for q in made.quarantined] == ["regions_differ"]


def test_a_marketplace_s_price_is_the_median_of_its_hosts() -> None:
    one, *_ = skypilot_rows("vast")
    asks = {"Texas, US, NA": 3, "France, FR, EU": 9, "Vietnam, VN, AS": 5}
    hosts = [{**one, "Region": place, "Price": usd} for place, usd in asks.items()]
    made = read("vast", World(sky={"vast": hosts}))
    (offer,) = made.offers
    assert (offer.region, offer.usd_per_hour) == (ANY_REGION, 5.0)
    assert made.quarantined == ()


@pytest.mark.parametrize(
    "change", [{"flags": "gcp-dws-calendar-mode"}, {"flags": "runpod-cluster"}, {"price": 0}]
)
def test_other_products_and_what_is_not_sold_are_no_offers(change: dict[str, Any]) -> None:
    row = gpuhunt_rows("oci")[0]
    made = read("oci", lists_of("oci", {**row, "location": "us-1", "price": 1.0, **change}))
    assert made.counters.ignored == 1
    assert made.quarantined == ()


def test_a_pod_of_a_strangers_host_is_no_offer_of_the_secure_cloud() -> None:
    row = next(r for r in gpuhunt_rows("runpod") if r["gpu_count"] == 8)
    made = read("runpod", lists_of("runpod", {**row, "location": "CZ", "price": 1.0}))
    assert made.counters.ignored == 1


@pytest.mark.parametrize("change", [{"price": "a lot"}, {"spot": "maybe"}, {"gpu_count": "8x"}])
def test_a_malformed_row_is_told_and_costs_no_other(change: dict[str, Any]) -> None:
    made = read("verda", lists_of("verda", {**gpuhunt_rows("verda")[0], **change}))
    assert [q.rule for q in made.quarantined] == ["malformed"]
    assert len(made.offers) == len(shipped("verda"))


def test_a_machine_without_hardware_facts_is_told_and_not_offered() -> None:
    row = {**gpuhunt_rows("lambda")[0], "instance_name": "gpu_8x_r100", "gpu_name": "R100"}
    made = read("lambda", lists_of("lambda", row))
    assert [(t.instance_type, t.gpu) for t in made.unknown_types] == [("gpu_8x_r100", "R100")]
    assert "gpu_8x_r100" not in {o.instance_type for o in made.offers}


def test_the_file_is_fetched_once_a_version(tmp_path: Path) -> None:
    world = lists_of("lambda")
    with served(world) as server:
        reader = readers(server.address)["lambda"]()
        first, again = (reader.fetch(wanted("lambda", copies=tmp_path)) for _ in range(2))
        asked = [each.path.rpartition("/")[2] for each in server.asked]
        assert asked == ["version", "catalog.zip", "version"]
        assert first.offers == again.offers
        world.version = "20261121-4712"
        reader.fetch(wanted("lambda", copies=tmp_path))
        assert server.asked[-1].path.endswith("4712/catalog.zip")


@pytest.mark.parametrize("version", ["20261122-1", "today", "20261341-1", ""])
def test_a_version_that_is_none_or_of_a_day_to_come_is_refused(version: str) -> None:
    with pytest.raises(ProviderError):
        read("lambda", replace(lists_of("lambda"), version=version))


def test_skypilots_file_is_as_old_as_its_last_change() -> None:
    made = read("hyperstack", World(sky={"hyperstack": skypilot_rows("hyperstack")}))
    prices = {(o.instance_type, o.region, o.market): o.usd_per_hour for o in made.offers}
    assert prices == {
        (o.instance_type, o.region, o.market): o.usd_per_hour for o in shipped("hyperstack")
    }
    assert {o.as_of for o in made.offers} == {"2026-11-20"}


def aws_world(zones: dict[str, float], feed: str, region: str = "us-east-1") -> World:
    """One machine in one region, with quotes by zone and in the feed."""
    row = {"InstanceType": P5, "AcceleratorName": "H100", "AcceleratorCount": 8, "Region": region}
    quotes = [{**row, "AvailabilityZone": zone, "SpotPrice": usd} for zone, usd in zones.items()]
    return World(
        sky={"aws": quotes},
        listed={region: {P5: 55.04, "m5.large": 0.096}},
        spot={(P5, region): feed},
    )


def spot(made: Fetched) -> dict[str, float]:
    return {o.zone: o.usd_per_hour for o in made.offers if o.market == "spot"}


def test_zone_quotes_count_where_their_lowest_is_the_feeds_price() -> None:
    zones = {"use1-az1": 21.0, "use1-az2": 30.0}
    assert spot(read("aws", aws_world(zones, "21.5"))) == zones


def test_where_quotes_disagree_the_feed_wins_for_the_whole_region() -> None:
    zones = {"use1-az1": 21.0, "use1-az2": 30.0}
    assert spot(read("aws", aws_world(zones, "26.0"))) == {"": 26.0}


@pytest.mark.parametrize("usd", ["0", "N/A*", ""])
def test_what_the_feed_does_not_price_is_not_offered_at_any_zone(usd: str) -> None:
    assert spot(read("aws", aws_world({"use1-az1": 21.0}, usd))) == {}


def test_list_prices_are_those_of_the_region_and_of_known_machines() -> None:
    made = read("aws", aws_world({}, "21.0"))
    listed = [(o.instance_type, o.usd_per_hour) for o in made.offers if o.market == "on_demand"]
    assert listed == [(P5, 55.04)]
    assert {o.as_of for o in made.offers} == {"2026-11-21"}


@pytest.mark.parametrize(
    ("down", "failed", "warned"),
    [
        ("/files", (), True),
        ("/commits", (), True),
        ("/feed", (("", "spot"),), False),
        (f"/ec2/ec2-ondemand-without-sec-sel/{aws.LOCATIONS['us-east-1']}",
         (("us-east-1", "on_demand"),), False),
    ],
)  # fmt: skip
def test_a_part_of_aws_that_is_down_is_told(
    down: str, failed: tuple[tuple[str, str], ...], warned: bool
) -> None:
    made = read("aws", replace(aws_world({"use1-az1": 21.0}, "21.0"), down=(down,)))
    told = tuple((f.region, f.market) for f in made.failed if f.market != "on_demand" or f.region)
    assert tuple(each for each in told if each in failed) == failed
    assert bool(made.warnings) == warned


def test_without_a_network_every_list_says_so_after_a_few_calls() -> None:
    said: list[str] = []
    with pytest.raises(ProviderError, match="cannot be reached"):
        readers("http://127.0.0.1:1")["aws"]().fetch(wanted("aws", progress=said.append))
    assert said == []  # no region after the first is asked


def test_an_account_wins_over_the_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for info in CLOUDS.values():
        for variable in info.credential_variables:
            monkeypatch.delenv(variable, raising=False)
    assert not has_account("aws")
    assert has_account("azure")
    assert isinstance(update_makers(["aws"])["aws"](), aws.AwsLists)
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert not isinstance(update_makers(["aws"])["aws"](), aws.AwsLists)


def test_the_list_of_each_provider_has_a_reader_of_its_name() -> None:
    for name in ("gcp", "lambda", "nebius", "oci", "runpod", "verda", "cloudrift", "hyperstack",
                 "jarvislabs", "seeweb", "ovh"):  # fmt: skip
        assert update_makers([name])[name]().name == name


@pytest.mark.parametrize(
    ("catalog", "said"),
    [(order_catalog([], "EUR"), "not in USD"), ({"addons": []}, "no known form"),
     (order_catalog([{"instance_name": "b3-8", "price": 0.1}]), "no price of a known machine")],
)  # fmt: skip
def test_an_order_catalog_that_is_none_is_refused(catalog: Any, said: str) -> None:
    with (
        http_server(lambda asked: Reply(catalog)) as server,
        pytest.raises(ProviderError, match=said),
    ):
        ovh.OvhCatalog("ovh", server.address, PATIENCE).fetch(wanted("ovh"))


def test_instances_are_read_by_the_hour_with_linux_and_odd_addons_are_told() -> None:
    rows = [{"instance_name": "h100-380", "price": 2.99}, {"instance_name": "l4-90", "price": 1.0}]
    catalog = order_catalog([*rows, {"instance_name": "a10-45", "price": "1.00"}])
    monthly = {"price": 1, "intervalUnit": "month"}
    catalog["addons"] += [{"planCode": "l40s-90.consumption", "pricings": [monthly],
                           "blobs": catalog["addons"][2]["blobs"]}, 7]  # fmt: skip
    with http_server(lambda asked: Reply(catalog)) as server:
        found = ovh.OvhCatalog("ovh", server.address, PATIENCE).fetch(wanted("ovh"))
    assert {o.instance_type: o.usd_per_hour for o in found.offers} == {
        "h100-380": 2.99, "l4-90": 1.0,
    }  # fmt: skip
    assert [row.rule for row in found.quarantined] == ["malformed"] * 3


def test_a_list_in_euros_is_read_in_dollars_and_a_machine_without_a_site_is_not_sold() -> None:
    rows = [r | ({"Region": ""} if r["InstanceType"] == "ECS1GPU8" else {})
            for r in skypilot_rows("seeweb")]  # fmt: skip
    with served(World(sky={"seeweb": rows})) as server:
        found = readers(server.address)["seeweb"]().fetch(wanted("seeweb"))
    usd = {o.instance_type: o.usd_per_hour for o in shipped("seeweb")}
    read = {o.instance_type: o.usd_per_hour for o in found.offers}
    assert read == pytest.approx({name: usd[name] for name in usd.keys() - {"ECS1GPU8"}}, abs=1e-5)
    assert "EUR" in found.sources[0].attribution


def test_a_cloud_without_a_list_is_not_asked() -> None:
    assert update_makers(["coreweave"]) == {}
