"""Billing rules, fees, traffic, start-up and obtainability: complete and in range."""

import csv
from pathlib import Path

import pytest

from recommender.catalogs.registry import OWN_CLIENTS
from recommender.catalogs.schema import BOOKED
from tests.catalogs.facts_data import book, reference
from tests.research.snapshot import facts_bills, facts_start, gpu_clouds

GPU_NAMES = Path(facts_bills.__file__).parent / "hand" / "gpu_names.csv"


def test_aws_does_not_charge_the_first_hour_that_it_interrupts() -> None:
    rules = {(r.provider, r.market): r for r in facts_bills.billing(book())}
    assert rules["aws", "spot"].free_if_interrupted_within_s == 3600
    assert rules["aws", "spot"].notice_s == 120
    assert rules["gcp", "spot"].free_if_interrupted_within_s == 60
    assert rules["azure", "spot"].free_if_interrupted_within_s == 0


def test_every_provider_and_market_has_one_rule() -> None:
    rules = facts_bills.billing(book())
    keys = {(r.provider, r.market) for r in rules}
    assert len(rules) == len(keys)
    asked = (*OWN_CLIENTS, "own")
    sold = {(name, market) for name in asked for market in ("on_demand", "spot")}
    sold |= {("aws", "reserved_block"), ("gcp", "reserved_block"), ("gcp", "flex_start")}
    assert keys == sold | {(n, m) for n in gpu_clouds.NAMES for m in ("on_demand", "spot")}
    for rule in rules:
        if rule.market == "on_demand":
            assert rule.free_if_interrupted_within_s == rule.notice_s == 0
        assert (rule.maximum_s is not None) == (rule.market in BOOKED)
        assert rule.upfront == ((rule.provider, rule.market) == ("aws", "reserved_block"))


def test_every_provider_has_every_fee() -> None:
    rows = facts_bills.fees(book())
    for provider in ("aws", "gcp", "azure"):
        mine = {r.item: r.usd for r in rows if r.provider == provider}
        assert set(mine) == set(facts_bills.UNITS)
        assert 0.05 <= mine["boot_disk_gib_month"] <= 0.2
        assert mine["egress_zone_gb"] <= mine["egress_region_gb"] <= mine["egress_continent_gb"]
    assert {r.kind for r in rows} == {"fallback"}


def test_figures_name_their_sources() -> None:
    sources = book()
    facts_bills.fees(sources)
    facts_start.obtainability(sources)
    names = [row.name for row in sources.rows()]
    assert "assumed: no public measurement of on-demand capacity" in names


def test_start_up_of_every_provider() -> None:
    rows = facts_start.start_up(book())
    for provider in ("aws", "gcp", "azure"):
        mine = [r for r in rows if r.provider == provider]
        assert [r.gpus_min for r in mine] == [1, 8]
        assert 25 <= mine[0].boot_s < mine[1].boot_s <= 180
        assert all(r.cold_image_s == 310 for r in mine)


def test_every_gpu_has_one_obtainability() -> None:
    with open(GPU_NAMES, newline="") as file:
        named = {row["gpu"] for row in csv.DictReader(file)}
    named |= {row["gpu"] for cloud in gpu_clouds.NAMES for row in gpu_clouds.rows_of(cloud)}
    rows = facts_start.obtainability(book())
    assert sorted(gpu for row in rows for gpu in row.gpus) == sorted(named)
    assert all(0.5 < row.share_at_once < 1 and row.kind == "fallback" for row in rows)


@pytest.mark.reference
def test_traffic_between_aws_regions_covers_every_pair() -> None:
    rows = facts_bills.egress(reference(), book())
    regions = {r.from_region for r in rows}
    pairs = {(r.from_region, r.to_region) for r in rows}
    assert len(rows) == len(pairs) == len(regions) * (len(regions) - 1) == 1122
    assert all(0.01 <= r.usd_per_gb <= 0.15 for r in rows)


@pytest.mark.reference
def test_start_up_agrees_with_the_measured_machines() -> None:
    with open(reference() / "measured" / "micro.csv", newline="") as file:
        rows = [
            r
            for r in csv.DictReader(file)
            if r["category"] == "spin_up" and r["provider"] in ("aws", "gcp", "azure")
        ]
    boot = {r["instance_type"]: float(r["value"]) for r in rows if "first boot" in r["metric"]}
    container = {r["instance_type"]: float(r["value"]) for r in rows if "container" in r["metric"]}
    images = sorted(container[name] - boot[name] for name in boot if name in container)
    assert images[len(images) // 2] == pytest.approx(facts_start.COLD_IMAGE_S, rel=0.1)
    assert boot["a2-highgpu-8g"] == facts_start.BOOT_8_GPUS_S
