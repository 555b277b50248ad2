"""Machines that are new, fractions, unknown GPUs, and Capacity Blocks."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from recommender.catalogs.providers.contract import Fetched, UnknownType
from recommender.catalogs.validation import type_problems
from tests.catalogs.providers.aws.cloud import NOW, Cloud, block_of, info_of, item_of, quotes_of
from tests.catalogs.providers.aws.conftest import Read
from tests.shipped import snapshot

NEW = "g6.12xlarge"
BLOCKS = frozenset({"reserved_block"})


def offered(cloud: Cloud, name: str, **gpu: Any) -> None:
    """AWS sells a machine that the catalog does not know."""
    machine = replace(snapshot().instance_types["aws", NEW], instance_type=name)
    info = info_of(machine)
    info["GpuInfo"]["Gpus"][0].update(gpu)
    cloud.infos[name] = info
    cloud.items.append(item_of(machine, "us-east-1", 4.6016))
    cloud.spot["us-east-1"] += quotes_of(name, "us-east-1", 4.6016)


def names(fetched: Fetched) -> set[str]:
    return {offer.instance_type for offer in fetched.offers}


def test_a_new_machine_with_a_known_gpu_is_described_and_offered(cloud: Cloud, read: Read) -> None:
    offered(cloud, NEW)
    fetched = read()
    (machine,) = fetched.types
    shipped = snapshot().instance_types["aws", NEW]
    assert machine == replace(
        shipped,
        source=1,
        as_of="2026-11-21",
        # What the API does not say comes from the nearest known machine, here of one GPU.
        intra_kind="pcie",
        intra_gb_per_s=None,
    )
    assert list(type_problems(machine, snapshot().gpus)) == []
    prices = {(o.market, o.zone): o.usd_per_hour for o in fetched.offers if o.instance_type == NEW}
    assert prices == {
        ("on_demand", ""): 4.6016,
        ("spot", "use1-az2"): 1.38048,
        ("spot", "use1-az1"): 2.07072,
    }


def test_half_a_gpu_is_no_gpu_and_no_cpu_machine_gpuhunt_164(cloud: Cloud, read: Read) -> None:
    memory = {"SizeInMiB": 2861}
    offered(cloud, "g6f.large", Count=0, GpuPartitionSize=0.125, MemoryInfo=memory)
    fetched = read()
    assert fetched.unknown_types == (UnknownType("g6f.large", "L4", 0.125, 3, "part of a GPU"),)
    assert "g6f.large" not in names(fetched)


def test_an_unknown_gpu_is_named_and_not_offered_gpuhunt_108(cloud: Cloud, read: Read) -> None:
    offered(cloud, "p7.48xlarge", Name="R100")
    fetched = read()
    assert [(t.instance_type, t.gpu, t.reason) for t in fetched.unknown_types] == [
        ("p7.48xlarge", "R100", "GPU not known")
    ]
    assert "p7.48xlarge" not in names(fetched)


def test_a_gpu_called_nvidia_is_not_guessed_skypilot_4652(cloud: Cloud, read: Read) -> None:
    """The H200 of p5en was once called "NVIDIA": the known machine stays, a new one is unknown."""
    gpu = cloud.infos["p5en.48xlarge"]["GpuInfo"]["Gpus"][0]
    gpu["Name"] = "NVIDIA"
    offered(cloud, "p5en.24xlarge", Name="NVIDIA", MemoryInfo={"SizeInMiB": 144384}, Count=1)
    cloud.infos["p5en.24xlarge"]["GpuInfo"]["TotalGpuMemoryInMiB"] = 144384
    fetched = read()
    assert "p5en.48xlarge" in names(fetched)
    assert [t.instance_type for t in fetched.unknown_types] == ["p5en.24xlarge"]


def test_memory_of_all_gpus_taken_for_one_is_refused_gpuhunt_92(cloud: Cloud, read: Read) -> None:
    offered(cloud, "g6.99xlarge", MemoryInfo={"SizeInMiB": 4 * 22888})
    (unknown,) = read().unknown_types
    assert unknown.reason == "the memory of one GPU and of all do not agree"


def test_two_a100_differ_by_their_memory(cloud: Cloud, read: Read) -> None:
    for name, memory in (("p4x.large", 40960), ("p4y.large", 81920)):
        offered(cloud, name, Name="A100", Count=1, MemoryInfo={"SizeInMiB": memory})
        cloud.infos[name]["GpuInfo"]["TotalGpuMemoryInMiB"] = memory
    assert {t.instance_type: t.gpu for t in read().types} == {
        "p4x.large": "A100",
        "p4y.large": "A100-80GB",
    }


def test_a_machine_without_memory_is_quarantined(cloud: Cloud, read: Read) -> None:
    del cloud.infos["g6.xlarge"]["MemoryInfo"]
    fetched = read()
    assert {(row.rule, row.what) for row in fetched.quarantined} >= {
        ("missing_part", "instance type g6.xlarge (us-east-1)")
    }
    assert "g6.xlarge" not in names(fetched)


def test_a_machine_described_otherwise_than_in_the_catalog_is_reported(
    cloud: Cloud, read: Read
) -> None:
    cloud.infos["p5.48xlarge"]["GpuInfo"]["Gpus"][0]["Count"] = 4
    said = "p5.48xlarge: AWS describes 192 vCPUs and 4 GPUs, the catalog 192 and 8"
    assert said in read().warnings


def test_a_listed_price_where_the_machine_is_not_sold_is_no_offer(cloud: Cloud, read: Read) -> None:
    cloud.gone.add(("p5.48xlarge", "us-west-2"))
    cloud.infos["p4de.24xlarge"]["SupportedUsageClasses"] = ["spot", "capacity-block"]
    fetched = read(parts=frozenset({"on_demand"}))
    places = {(offer.instance_type, offer.region) for offer in fetched.offers}
    assert ("p5.48xlarge", "us-east-1") in places
    assert ("p5.48xlarge", "us-west-2") not in places
    assert "p4de.24xlarge" not in names(fetched)
    assert any("list prices of machines not sold" in said for said in fetched.warnings)


def test_every_row_is_an_offer_ignored_or_refused(cloud: Cloud, read: Read) -> None:
    offered(cloud, "p7.48xlarge", Name="R100")
    cloud.gone.add(("p5.48xlarge", "us-west-2"))
    cloud.quote("g5.xlarge", "us-east-1a")["SpotPrice"] = "0"
    fetched = read(parts=frozenset({"on_demand", "spot", "reserved_block"}))
    took = len(fetched.offers) + len(fetched.quarantined) + fetched.counters.ignored
    assert fetched.counters.raw_rows == took


def test_govcloud_is_listed_but_not_open_to_everybody(cloud: Cloud, read: Read) -> None:
    cloud.items.append(item_of(cloud.types["g4dn.xlarge"], "us-gov-west-1", 0.663))
    (offer,) = [o for o in read().offers if o.region == "us-gov-west-1"]
    assert offer.obtainable == "unknown"


def test_a_block_costs_its_fee_over_its_hours_in_a_market_of_its_own(
    cloud: Cloud, read: Read
) -> None:
    (offer,) = read(parts=BLOCKS).offers
    assert (offer.market, offer.zone, offer.usd_per_hour) == ("reserved_block", "use1-az2", 37.52)
    assert offer.usd_per_hour * 24 == pytest.approx(900.48)
    (source,) = [s for s in read(parts=BLOCKS).sources if s.source == offer.source]
    assert "paid upfront" in source.attribution


def test_the_block_that_starts_first_is_taken(cloud: Cloud, read: Read) -> None:
    cloud.blocks["us-east-1"].append(block_of("p5.48xlarge", "us-east-1a", "100.00", days=9))
    (offer,) = read(parts=BLOCKS).offers
    assert offer.usd_per_hour == 37.52


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"UpfrontFee": "0.00"}, "price"),
        ({"UpfrontFee": "-5"}, "price"),
        ({"CurrencyCode": "CNY"}, "currency"),
        ({"InstanceCount": 0}, "duration"),
        ({"CapacityBlockDurationHours": 336}, "duration"),
        ({"AvailabilityZone": "us-east-1-atl-1a"}, "zone"),
    ],
)
def test_a_changed_block_is_refused_by_name(
    cloud: Cloud, read: Read, fields: dict[str, Any], rule: str
) -> None:
    cloud.blocks["us-east-1"][0].update(fields)
    fetched = read(parts=frozenset({"reserved_block", "spot"}))
    assert not any(offer.market == "reserved_block" for offer in fetched.offers)
    assert [row.rule for row in fetched.quarantined] == [rule]
    assert "p5.48xlarge" in fetched.quarantined[0].what


def test_two_blocks_of_one_start_at_two_fees_are_refused(cloud: Cloud, read: Read) -> None:
    cloud.blocks["us-east-1"].append(block_of("p5.48xlarge", "us-east-1a", "100.00"))
    fetched = read(parts=frozenset({"reserved_block", "spot"}))
    assert [row.rule for row in fetched.quarantined] == ["duplicate"]


def test_a_block_of_a_day_and_a_bit_counts_its_minutes(cloud: Cloud, read: Read) -> None:
    row = cloud.blocks["us-east-1"][0]
    row |= {"CapacityBlockDurationMinutes": 1500, "EndDate": NOW + timedelta(hours=49)}
    (offer,) = read(parts=BLOCKS).offers
    assert offer.usd_per_hour == pytest.approx(900.48 / 25)
