"""Records are pooled by machine, named by the catalog, and judged before they are believed."""

from dataclasses import replace

import pytest

from recommender.benchmarks.metadata import Place
from recommender.errors import RecordError
from recommender.performance.measurements.flopp import FloppFilter, flopp_of_offers, price_of
from recommender.performance.measurements.pool import (
    StoredRecord,
    by_words,
    catalog_gpu,
    compared,
    impossible,
    newest,
    pooled,
    rates,
    too_small,
)
from tests.benchmarks.machines import record
from tests.shipped import snapshot

CATALOG = snapshot()
GPUS = dict(CATALOG.gpus)


def kept(tflops: float, machine: str, day: int = 20) -> StoredRecord:
    return StoredRecord(
        "H100", record(tflops, machine=machine, taken_at=f"2026-11-{day}T10:00:00+00:00")
    )


def test_the_newest_record_of_a_machine_wins():
    (only,) = newest([kept(700, "a", 21), kept(600, "a", 19), kept(650, "a", 20)])
    assert only.record.taken_at.startswith("2026-11-21")


def test_machines_are_pooled_by_their_median():
    (found,) = pooled([kept(700, "a"), kept(720, "b"), kept(740, "c")], GPUS)
    assert (found.gpu, found.precision, found.machines) == ("H100", "bf16", 3)
    assert found.tflops == pytest.approx(720)
    assert found.low == pytest.approx(0.95 * 700)
    assert found.high == pytest.approx(1.1 * 740)
    assert found.share == pytest.approx(720 / 989, rel=0.01)
    assert found.outliers == 0


def test_a_machine_far_from_the_others_is_flagged_and_does_not_move_the_median_far():
    (found,) = pooled([kept(700, "a"), kept(720, "b"), kept(400, "c")], GPUS)
    assert found.outliers == 1
    assert found.tflops == pytest.approx(700)


def test_records_that_name_no_machine_all_count():
    (found,) = pooled([kept(700, ""), kept(720, "")], GPUS)
    assert found.machines == 2


def test_a_processors_record_gives_no_speed_of_a_gpu():
    own = replace(record(1.0), device="cpu")
    assert pooled([StoredRecord("", own)], GPUS) == ()
    names = [rate.name for rate in rates([StoredRecord("", own)])]
    assert names[0] == "matmul bf16"
    assert "memory device copy" in names


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 NVL", "H100-NVL"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla V100-SXM2-32GB", "V100-32GB"),
        ("Tesla V100-PCIE-16GB", "V100-PCIe"),
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 2080 Ti", None),
    ],
)
def test_the_drivers_name_is_found_in_the_catalog(device: str, name: str | None):
    assert by_words(device, GPUS) == name


def test_the_instance_type_wins_over_the_drivers_name_and_a_flag_over_both():
    name = "NVIDIA GeForce RTX 2080 Ti"
    assert catalog_gpu(CATALOG, name, "aws", "p5.48xlarge", None) == "H100"
    assert catalog_gpu(CATALOG, name, "aws", "p5.48xlarge", "h200") == "H200"
    with pytest.raises(RecordError, match="--gpu"):
        catalog_gpu(CATALOG, name, "", "", None)
    with pytest.raises(RecordError, match="H10"):
        catalog_gpu(CATALOG, "x", "", "", "H10")


def test_a_slice_of_a_gpu_is_not_taken_for_the_whole():
    with pytest.raises(RecordError, match="slice of a GPU"):
        catalog_gpu(CATALOG, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "aws", "p5.48xlarge", None)
    whole = record()
    tenth = replace(whole, machine=replace(whole.machine, gpu_memory_gib=9.8))
    assert too_small(whole, GPUS["H100"]) == []
    assert "has 9.8 GiB, H100 80" in too_small(tenth, GPUS["H100"])[0]


def test_more_than_the_vendors_peak_is_impossible():
    assert impossible(record(760.0), GPUS["H100"]) == []
    (said,) = impossible(record(990.0), GPUS["H100"])
    assert "peak" in said
    assert impossible(record(760.0), GPUS["A100"])
    assert impossible(record(760.0), None) == []


def test_a_copy_faster_than_the_memory_is_impossible():
    own = record(760.0)
    fast = replace(own.results[-1], seconds=(0.005, 0.005, 0.005))
    (said,) = impossible(replace(own, results=(*own.results[:-1], fast)), GPUS["H100"])
    assert "3350" in said


def test_a_copy_measures_memory_bandwidth_as_vendors_count_it():
    """30 GB in 0.0105 s are 2857 GB/s, of which a copy reaches 0.95."""
    (found,) = pooled([kept(700, "a")], GPUS)
    assert found.memory_gb_per_s == pytest.approx(30.0 / 0.0105 / 0.95)


def test_differences_beyond_noise_are_distinguished_from_noise():
    first, second = record(760.0), record(700.0)
    found = {c.name: c for c in compared(first, second)}
    assert found["matmul bf16 8192x8192x8192"].ratio == pytest.approx(700 / 760)
    assert found["matmul bf16 8192x8192x8192"].beyond_noise
    assert not found["memory device copy 1024 MiB"].beyond_noise


def test_a_dollar_buys_gpus_times_speed_times_an_hour():
    ranked = flopp_of_offers(CATALOG, FloppFilter("H100", "spot", "", "bf16"))
    best = ranked[0]
    speed = CATALOG.achieved["H100", "bf16"].tflops
    hand = best.gpus * speed * 1e12 * 3600 / best.usd_per_hour
    assert best.flop_per_usd == pytest.approx(hand)
    assert [r.flop_per_usd for r in ranked] == sorted(r.flop_per_usd for r in ranked)[::-1]
    assert {(r.gpu, r.market) for r in ranked} == {("H100", "spot")}


def test_only_what_is_requested_is_ranked():
    ranked = flopp_of_offers(CATALOG, FloppFilter("", "on_demand", "us-east-1", "fp16"))
    assert {r.region for r in ranked} == {"us-east-1"}
    assert {CATALOG.gpus[r.gpu].vendor for r in ranked} == {"nvidia"}
    assert flopp_of_offers(CATALOG, FloppFilter("V100", "", "", "bf16")) == []


def test_the_price_of_the_machine_one_sits_on():
    place = Place("aws", "p5.48xlarge", "us-east-1", "", "on_demand")
    where = (place.provider, place.instance_type, place.region, place.market)
    price = price_of(CATALOG, *where)
    assert price is not None
    assert 20 < price < 120
    assert price_of(CATALOG, "", "", "", "") is None
    assert price_of(CATALOG, "aws", "none.such", "", "") is None
