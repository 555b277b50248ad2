"""Facts of an offer by hand: fees, starts, ranking, age of prices, price floors, failover lists."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from recommender.catalogs.catalog import Catalog
from recommender.job.jobfile import find_job
from recommender.market.offer_facts import Facts, Pool
from recommender.market.sites import SiteBuilder
from recommender.optimize.space import Fallbacks
from recommender.plan.limits import Choice, Limits
from tests.recommender import planning
from tests.shipped import snapshot

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def facts(job: Any = None, **choice: Any) -> Facts:
    return Facts(snapshot(), Choice(**choice), job or planning.job(), NOW)


def builder(found: Facts) -> SiteBuilder:
    kinds = {key: k for k, key in enumerate(found.catalog.instance_types)}
    return SiteBuilder(found, Limits().max_machines, kinds, np.zeros((0, 0)), 1e5)


def rows(catalog: Catalog, provider: str, name: str, market: str, flag: str = "") -> list[int]:
    o = catalog.offers
    wanted = (provider, name, market, flag)
    return [
        r
        for r in range(len(o))
        if (o.provider[r], o.instance_type[r], o.market[r], o.flag[r]) == wanted
    ]


def pool(catalog: Catalog, chosen: list[int]) -> Pool:
    o, first = catalog.offers, chosen[0]
    t = catalog.instance_types[o.provider[first], o.instance_type[first]]
    return Pool(tuple(chosen), o.market[first], 0, t)


def test_a_running_machine_pays_its_disk_of_100_gib_and_its_address() -> None:
    assert facts().running_fees("aws", "on_demand") == pytest.approx(100 * 0.08 / 730 + 0.005)
    assert facts().running_fees("gcp", "spot") == pytest.approx(100 * 0.10 / 730 + 0.0025)


@pytest.mark.parametrize(
    ("gpus", "image", "setup_s", "seconds"),
    [
        (1, "cold", None, 31.0 + 310.0),
        (8, "cold", None, 105.0 + 310.0),
        (8, "prebuilt", None, 105.0),
        (1, "cold", 77.0, 77.0),
    ],
)
def test_a_start_is_the_boot_of_its_size_and_the_pull_of_a_cold_image(
    gpus: int, image: Any, setup_s: float | None, seconds: float
) -> None:
    job = replace(planning.job(), image=image, setup_s=setup_s)
    assert facts(job).boot_s("aws", gpus) == seconds


def test_the_rarely_interrupted_are_up_more_often_by_a_fifth_of_the_zones_spread() -> None:
    found = facts()
    law = found.spot_class(snapshot().instance_types["aws", "g5.xlarge"])
    assert law is not None
    level = math.log(law.availability / (1 - law.availability))
    shifts = [found.availability_logit(law, index) - level for index in (None, 0, 2, 4)]
    assert shifts == pytest.approx([0.0, 0.2 * law.zone_sd, 0.0, -0.2 * law.zone_sd])


def test_prices_spread_by_their_age_between_the_listed_days() -> None:
    found = facts()
    table = {
        d.age_days: d.sigma
        for d in snapshot().price_drift
        if (d.provider, d.market) == ("aws", "spot")
    }
    half = (table[113] + table[180]) / 2
    assert found.price_sigma("aws", "spot", "2026-07-31", 0.0) == pytest.approx(table[113])
    at = found.price_sigma("aws", "spot", "2026-06-27", 0.0)  # 147 days
    assert at == pytest.approx(table[113] + (table[180] - table[113]) * 34 / 67)
    assert at == pytest.approx(half, rel=0.01)
    assert found.price_sigma("aws", "spot", "2020-01-01", 0.0) == pytest.approx(table[365])


def test_an_empty_auction_of_aws_is_planned_with_at_the_median_of_its_type() -> None:
    found = facts()
    catalog = found.catalog
    o = catalog.offers
    floors = [r for r in range(len(o)) if o.flag[r] == "floor" and o.provider[r] == "aws"]
    assert floors
    for row in floors:
        quotes = [o.usd_per_hour[r] for r in rows(catalog, "aws", o.instance_type[row], "spot")]
        typical = float(np.median(quotes)) if quotes else 0.0
        assert found.planning_price(row) == pytest.approx(max(o.usd_per_hour[row], typical))
    azure = next(r for r in range(len(o)) if o.flag[r] == "floor" and o.provider[r] == "azure")
    assert found.planning_price(azure) == o.usd_per_hour[azure]


def test_a_failover_list_costs_what_its_zones_cost_when_each_is_the_first_that_is_up() -> None:
    found = facts()
    chosen = sorted(
        rows(found.catalog, "aws", "g5.xlarge", "spot"),
        key=found.catalog.offers.usd_per_hour.__getitem__,
    )[:3]
    listed = pool(found.catalog, chosen)
    law = found.spot_class(listed.type)
    assert law is not None
    a = law.availability
    first_up = [a, a * (1 - a), a * (1 - a) ** 2]
    usd = [found.planning_price(r) for r in chosen]
    mean = sum(w * p for w, p in zip(first_up, usd, strict=True)) / sum(first_up)
    expected = mean + found.running_fees("aws", "spot")
    assert builder(found).entries.machine_usd(listed) == pytest.approx(expected)


def test_a_failover_list_holds_four_zones_at_most_and_none_above_1_6_times_the_first() -> None:
    found = facts()
    o, cut = found.catalog.offers, 0
    names = {o.instance_type[r] for r in range(len(o)) if o.market[r] == "spot"}
    for name in sorted(names):
        everywhere = [
            r for r in range(len(o)) if (o.instance_type[r], o.market[r]) == (name, "spot")
        ]
        prices = sorted(found.planning_price(r) for r in everywhere)
        near = [usd for usd in prices if usd <= 1.6 * prices[0]][:4]
        kept = builder(found).lists.of(everywhere).rows
        assert [found.planning_price(r) for r in kept] == near, name
        cut += len(near) < min(4, len(prices))
    assert cut > 5


def test_zones_of_one_region_fall_together_more_than_those_of_two() -> None:
    found = facts()
    o = found.catalog.offers
    by_region: dict[str, list[int]] = {}
    for row in rows(found.catalog, "aws", "g5.xlarge", "spot"):
        by_region.setdefault(o.region[row], []).append(row)
    two = next(v for v in by_region.values() if len(v) > 1)[:2]
    other = next(v for k, v in by_region.items() if k != o.region[two[0]])[:1]
    of = builder(found).entries._correlation
    assert of(pool(found.catalog, two), 0.37) == pytest.approx(0.37)
    assert of(pool(found.catalog, two + other), 0.37) == pytest.approx((0.37 + 2 * 0.07) / 3)
    assert of(pool(found.catalog, other), 0.37) == 0.0


def test_h100_on_demand_may_have_to_be_waited_for() -> None:
    found, types = facts(), snapshot().instance_types
    assert found.wait(types["aws", "p5.48xlarge"]) == (0.7, 3600.0, 1.66)
    assert found.wait(types["aws", "g5.48xlarge"]) == (0.99, 3600.0, 0.33)
    sure = facts(on_demand_obtainable=1.0)
    assert sure.wait(types["aws", "p5.48xlarge"]) == (1.0, 3600.0, 1.66)
    row = rows(found.catalog, "aws", "p5.48xlarge", "on_demand")[:1]
    entries = builder(found).entries.of([pool(found.catalog, row)])
    assert (entries.at_once[0], entries.wait_s[0]) == (0.7, 3600.0)


def test_one_gpu_is_there_sooner_than_the_machine_of_eight_that_the_catalog_states() -> None:
    # Spot machines with one H100 are there 0.893 of the time, those with eight 0.67: odds of 4.1.
    found, types = facts(), snapshot().instance_types
    at_once, wait_s, _ = found.wait(types["aws", "p5.4xlarge"])
    harder = (0.107 / 0.893) / (0.33 / 0.67)
    assert (1 - at_once) / at_once == pytest.approx(harder * 0.3 / 0.7)
    assert wait_s == pytest.approx(3600.0 * harder)


def test_two_checkpoints_are_kept_in_the_store() -> None:
    found = facts(replace(planning.job(), checkpoint_bytes=2**30 * 10.0))
    row = rows(found.catalog, "gcp", "g2-standard-4", "on_demand")[:1]
    site = builder(found).site_of([pool(found.catalog, row)], ()).sites[0]
    assert site.store_usd_per_hour == pytest.approx(2 * 10 * 0.020 / 730)


def queues(fall: Fallbacks, kind: int) -> dict[int, tuple[float, float]]:
    """How soon so many machines of a kind are there."""
    mine = np.flatnonzero(fall.kind == kind)
    return {int(fall.count[i]): (fall.at_once[i], fall.wait_s[i]) for i in mine}


def test_a_fallback_queues_as_long_as_its_gpus_are_waited_for() -> None:
    found = facts()
    names = ("p5.48xlarge", "g5.xlarge")
    both = [rows(found.catalog, "aws", name, "on_demand")[0] for name in names]
    kinds = {("aws", name): kind for kind, name in enumerate(names)}
    step_s = np.array([[1.0, 0.6], [9.0, 5.0]])  # the slow machine is cheaper for the work
    pools = [replace(pool(found.catalog, [row]), kind=kind) for kind, row in enumerate(both)]
    fall, _ = SiteBuilder(found, 2, kinds, step_s, 1e5).fallbacks(pools)
    first = queues(fall, 0)
    assert first[1] == (0.7, 3600.0)
    # Two of them: odds against them of (9/8)^(1.66/ln 2) = 1.33 times those of one machine.
    harder = 1.125 ** (1.66 / math.log(2.0))
    assert first[2] == pytest.approx((0.7 / (0.7 + 0.3 * harder), 3600.0 * harder))
    assert min(at_once for at_once, _ in queues(fall, 1).values()) > 0.99
    for kind, row in enumerate(both):
        mine = fall.kind == kind
        usd = builder(found).entries.machine_usd(pool(found.catalog, [row]))
        assert fall.usd_per_hour[mine] == pytest.approx(fall.count[mine] * usd)
    assert fall.boot_s[fall.kind == 0] == pytest.approx(105.0 + 310.0)


@pytest.mark.parametrize(
    ("name", "kind", "seconds"),
    [
        # 16.06 GB from the bucket to a disk of 3,539 MB/s; 141 GB to one of 8,000, at 64 parts.
        ("llama3-8b-lora", "p5.4xlarge", 8.03e9 * 2 / 3.539e9),
        ("llama3-70b-qlora", "p5.48xlarge", 70.55e9 * 2 / 5.12e9),
        ("llama3-8b-sft", "p5.48xlarge", 0.0),  # its checkpoints hold all weights
    ],
)
def test_base_weights_are_read_at_each_start(name: str, kind: str, seconds: float) -> None:
    found = facts(find_job(name))
    row = rows(found.catalog, "aws", kind, "on_demand")[0]
    one = pool(found.catalog, [row])
    added = builder(found).entries.start_s(one) - found.boot_s(one.type.provider, one.type.gpus)
    assert added == pytest.approx(seconds, rel=0.01)
    known = facts(replace(find_job(name), setup_s=60.0))
    assert builder(known).entries.start_s(one) == 60.0
