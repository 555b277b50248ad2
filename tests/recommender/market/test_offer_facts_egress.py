"""What bytes cost between regions, and what failover lists and data pay of it."""

import math
from dataclasses import replace
from typing import Any

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.job.job import DataSet
from recommender.market.offer_facts import (
    Facts,
    Pool,
    continent,
    copies_usd_per_gb,
    migration_usd_per_gb,
    usd_per_gb,
)
from recommender.market.sites import SiteBuilder
from recommender.performance.machines import machine_columns
from recommender.plan.limits import Choice, Limits
from tests.catalogs.small import machine
from tests.recommender import planning
from tests.shipped import snapshot


def facts(catalog: Catalog | None = None, job: Any = None, **choice: Any) -> Facts:
    found = catalog or snapshot()
    return Facts(found, Choice(**choice), job or planning.job(), planning.NOW)


@pytest.mark.parametrize(
    ("region", "where"),
    [
        ("australiaeast", "oceania"),
        ("australia-southeast1", "oceania"),
        ("austriaeast", "europe"),
        ("uksouth", "europe"),
        ("northamerica-northeast1", "north america"),
        ("southcentralus", "north america"),
        ("southamerica-east1", "south america"),
        ("southafricanorth", "africa"),
        ("malaysiawest", "asia"),
        ("me-central1", "middle east"),
        ("here", ""),
    ],
)
def test_the_name_of_a_region_shows_its_continent(region: str, where: str) -> None:
    assert continent(region) == where


def test_every_region_of_the_snapshot_lies_on_a_continent() -> None:
    assert all(continent(region) for region in set(snapshot().offers.region))


@pytest.mark.parametrize(
    ("provider", "ends", "usd"),
    [  # price pages as the catalog's tables have them
        ("aws", ("us-east-1", "us-east-1"), 0.0),
        ("aws", ("us-west-2", "eu-west-1"), 0.02),
        ("aws", ("ap-southeast-3", "us-west-2"), 0.10),
        ("gcp", ("us-central1", "us-east4"), 0.02),
        ("gcp", ("us-central1", "europe-west4"), 0.08),
        ("azure", ("eastus", "westus3"), 0.02),
        ("azure", ("eastus", "japaneast"), 0.05),
        ("own", ("here", "there"), 0.0),
    ],
)
def test_a_gb_between_regions_costs_the_providers_price(
    provider: str, ends: tuple[str, str], usd: float
) -> None:
    assert usd_per_gb(facts(), provider, *ends) == pytest.approx(usd)


def test_a_list_inside_one_region_moves_checkpoints_for_nothing() -> None:
    assert migration_usd_per_gb(facts(), "aws", ("eu-north-1", "eu-north-1")) == 0.0


def test_a_move_costs_the_mean_over_the_pairs_of_zones() -> None:
    # Two zones of one region and one abroad: 4 of 6 moves cross, two each way.
    regions = ("ap-southeast-3", "ap-southeast-3", "us-west-2")
    assert migration_usd_per_gb(facts(), "aws", regions) == pytest.approx((2 * 0.10 + 2 * 0.02) / 6)


def test_the_data_are_copied_to_every_region_of_a_list_once() -> None:
    listed = ("us-west-2", "us-east-1", "eu-west-1", "eu-west-1")
    assert copies_usd_per_gb(facts(), "aws", listed, "aws:us-east-1") == pytest.approx(0.04)
    gcp = ("us-central1", "us-east4")  # out of AWS once, then inside Google Cloud
    assert copies_usd_per_gb(facts(), "gcp", gcp, "aws:us-east-1") == pytest.approx(0.09 + 0.02)


def test_a_discount_leaves_spot_prices_as_they_are() -> None:
    o = snapshot().offers
    mine = facts(discounts=(("aws", 0.25),))
    for provider, market, share in (
        ("aws", "on_demand", 0.75),
        ("aws", "spot", 1.0),
        ("gcp", "on_demand", 1.0),
    ):
        row = next(r for r in range(len(o)) if (o.provider[r], o.market[r]) == (provider, market))
        assert mine.listed_usd(row) == pytest.approx(share * o.usd_per_hour[row])


def test_a_derived_price_spreads_by_its_median_error_over_0_6745() -> None:
    """Half of all normal errors lie within 0.6745 sd."""
    quoted = facts(prices_as_quoted=True)
    assert quoted.price_sigma("aws", "spot", "2026-06-20", 0.22) == pytest.approx(0.22 / 0.6745)
    old = facts()
    drift = old.price_sigma("aws", "spot", "2026-06-20", 0.0)
    both = old.price_sigma("aws", "spot", "2026-06-20", 0.22)
    assert both == pytest.approx(math.hypot(drift, 0.22 / 0.6745))


@pytest.mark.parametrize(
    ("gbit", "disk", "mb_per_s"),
    [
        (10.0, 1000.0, 0.6 * 0.85 * 1250.0),  # the network
        (3200.0, 8000.0, 64 * 80.0),  # the store's parallel parts
        (100.0, 500.0, 500.0),  # the disk
        (100.0, 0.0, 125.0),  # no disk: the volume
    ],
)
def test_staging_is_as_fast_as_store_network_and_disk_allow(
    gbit: float, disk: float, mb_per_s: float
) -> None:
    kind = "rdma" if gbit > 1000 else "tcp"
    t = machine(network_gbit_per_s=gbit, local_disk_mb_per_s=disk, network_kind=kind)
    job = replace(planning.job(), data=DataSet(gib=1000.0, read="stage"))
    found = facts(job=job)
    builder = SiteBuilder(found, Limits(), {}, None, 1.0)  # type: ignore[arg-type]
    staged_s = builder.entries.start_s(Pool((0,), "on_demand", 0, t)) - found.boot_s(
        t.provider, t.gpus
    )
    assert staged_s == pytest.approx(1000.0 * 2**30 / (mb_per_s * 1e6))


def test_a_machine_without_a_disk_keeps_staged_data_and_anchors_on_its_volume() -> None:
    catalog = snapshot()
    bare = catalog.instance_types["gcp", "a2-highgpu-8g"]
    job = replace(planning.job(), data=DataSet(gib=10.0, read="stage", bytes_per_sample=125e3))
    columns = machine_columns(job, [bare], catalog.gpus, catalog.achieved)
    assert columns.disk_bytes_per_s[0] == 125e6
    assert columns.fetch_per_s[0] == pytest.approx(1000.0)
