"""Profiles of one GPU, one machine and several become one stall vector and a table to calibrate."""

from dataclasses import replace
from pathlib import Path

import pytest

from recommender.benchmarks.metadata import Place
from recommender.benchmarks.record import Record
from recommender.benchmarks.stalls import Run, profile
from recommender.errors import UsageError
from recommender.job.timings import read_runs
from recommender.performance.measurements.pool import StallVector
from recommender.performance.measurements.stall_vector import vector_of, write_timings
from tests.benchmarks.machines import record, runs
from tests.shipped import snapshot

CATALOG = snapshot()
PLACE = Place("aws", "p5.48xlarge", "us-east-1", "", "on_demand")
ONE, ALL, CACHED, COLD = runs(0.10, 0.12, 0.15, 0.25)


def made(*own: Run, day: int = 20, training: str = "cnn") -> Record:
    taken = f"2026-11-{day}T10:00:00+00:00"
    return replace(record(place=PLACE, taken_at=taken), profile=profile(own, training))


def wide(run: Run, extra: float) -> Run:
    return replace(run, machines=2, gpus=16, seconds=tuple(s + extra for s in run.seconds))


def merged(*records: Record) -> StallVector:
    return vector_of([(f"{i}.json", r) for i, r in enumerate(records)], ["H100"] * len(records))


def seconds(found: StallVector) -> dict[str, float]:
    return {each.name: each.seconds for each in found.stalls}


def test_one_machine_and_two_give_all_four_stalls_by_hand():
    """T0 0.10, T1 0.12 on one machine and 0.17 on two, T3 0.20 and T2 0.30 on two."""
    found = merged(
        made(ONE, ALL, CACHED, COLD),
        made(wide(ALL, 0.05), wide(CACHED, 0.05), wide(COLD, 0.05)),
    )
    assert seconds(found) == pytest.approx(
        {"interconnect": 0.02, "network": 0.05, "preparation": 0.03, "fetch": 0.10}
    )
    assert found.step_s == pytest.approx(0.30)
    assert sum(each.share for each in found.stalls) == pytest.approx(1 - 0.10 / 0.30)
    assert (found.training, found.device, found.machines, found.gpus) == ("cnn", "H100", 2, 16)
    assert found.missing == ()


def test_real_data_of_one_machine_are_not_forgotten_next_to_two():
    """T1 is 0.17 on two machines; each feeds itself, prepared in 0.15 and 0.25 with the fetch."""
    found = merged(made(ONE, ALL, CACHED, COLD), made(wide(ALL, 0.05)))
    assert seconds(found) == pytest.approx(
        {"interconnect": 0.02, "network": 0.05, "preparation": 0.0, "fetch": 0.08}
    )
    assert found.step_s == pytest.approx(0.25)
    assert [line.partition(":")[0] for line in found.missing] == ["real data on 2 machines"]
    assert {run.data for run in found.runs} == {"synthetic", "cached", "cold"}


def test_data_that_one_machine_prepares_too_slowly_hold_up_two_as_well():
    slow = tuple(
        replace(run, seconds=tuple(s + 0.1 for s in run.seconds)) for run in (CACHED, COLD)
    )
    found = merged(made(ONE, ALL, *slow), made(wide(ALL, 0.05)))
    assert seconds(found) == pytest.approx(
        {"interconnect": 0.02, "network": 0.05, "preparation": 0.08, "fetch": 0.10}
    )
    assert found.step_s == pytest.approx(0.35)


def test_a_record_of_one_process_is_the_run_of_one_gpu():
    alone = replace(ALL, gpus=1, seconds=ONE.seconds)
    data = replace(COLD, gpus=1)
    found = merged(made(alone, data), made(ALL, CACHED, COLD))
    assert seconds(found) == pytest.approx(
        {"interconnect": 0.02, "preparation": 0.03, "fetch": 0.10}
    )
    assert [line.partition(":")[0] for line in found.missing] == ["network"]


def test_one_gpu_alone_has_its_input_stalls():
    own = [replace(run, gpus=1) for run in (ALL, CACHED, COLD)]
    assert seconds(merged(made(*own))) == pytest.approx({"preparation": 0.03, "fetch": 0.10})


def test_what_no_run_determines_is_reported():
    found = merged(made(ALL, COLD))
    assert [line.partition(":")[0] for line in found.missing] == [
        "interconnect", "network", "preparation", "fetch",
    ]  # fmt: skip
    assert found.stalls == ()


def test_of_the_same_run_the_newer_counts():
    slow = replace(ALL, seconds=tuple(s + 0.01 for s in ALL.seconds))
    for order in (
        (made(ONE, ALL, day=20), made(slow, day=19)),
        (made(slow, day=19), made(ONE, ALL)),
    ):
        assert seconds(merged(*order)) == pytest.approx({"interconnect": 0.02})


def test_records_that_cannot_be_compared_are_refused():
    with pytest.raises(UsageError, match="more than one training"):
        merged(made(ALL), made(ONE, ALL, training="transformer"))
    with pytest.raises(UsageError, match="more than one GPU"):
        merged(made(ALL), replace(made(ONE, ALL), machine=replace(made(ALL).machine, gpu="V100")))
    with pytest.raises(UsageError, match="no stall profile"):
        merged(made(ALL), replace(made(ALL), profile=None))
    with pytest.raises(UsageError, match="more than one batch per GPU"):
        merged(made(ALL), made(replace(COLD, batch_per_gpu=32), replace(ALL, batch_per_gpu=32)))


def test_the_runs_are_the_table_that_calibrate_reads(tmp_path: Path):
    table = tmp_path / "t.csv"
    found = merged(made(ONE, ALL, CACHED, COLD), made(wide(ALL, 0.05)))
    write_timings(found, table, [name for _, name in CATALOG.instance_types], force=False)
    back = read_runs(table, CATALOG.instance_types.values(), 1)
    assert [(r.machine, r.machines, r.gpus, r.batch, r.data) for r in back] == [
        ("aws/p5.48xlarge", 1, 1, 16, "synthetic"),
        ("aws/p5.48xlarge", 1, 8, 128, "synthetic"),
        ("aws/p5.48xlarge", 1, 8, 128, "cached"),
        ("aws/p5.48xlarge", 1, 8, 128, "cold"),
        ("aws/p5.48xlarge", 2, 16, 256, "synthetic"),
    ]
    assert [r.step_s for r in back] == pytest.approx([0.10, 0.12, 0.15, 0.25, 0.17])
    with pytest.raises(UsageError, match="--force"):
        write_timings(found, table, [], force=False)


def test_a_machine_that_the_catalog_has_not_is_named_by_its_gpu(tmp_path: Path):
    table = tmp_path / "t.csv"
    write_timings(merged(made(ONE, ALL)), table, [], force=False)
    assert {r.gpu for r in read_runs(table, CATALOG.instance_types.values(), 1)} == {"H100"}
    processors = vector_of([("a", made(ONE, ALL))], [""])
    with pytest.raises(UsageError, match="processors"):
        write_timings(processors, tmp_path / "u.csv", [], force=False)
