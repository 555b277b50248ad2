"""Save paths by hand, and the best interval against its two limits and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recommender.performance.checkpoint import (
    CHECKPOINT_PATHS,
    CHIEF_STREAM,
    Receiver,
    anchor,
    as_good_intervals,
    best_interval,
    crash_save_interval_s,
    disk_held_bytes,
    memory_tier,
    none,
    object_store,
    object_store_rate,
    progress,
    transfer_of,
    transfers,
    write_s,
)
from recommender.risk.laws import RUN_FAMILY
from tests.recommender.performance.parts import G6, P5, clusters, columns, llama

SIZE = 112e9
AWS = transfer_of("aws")


def fleet(kind=P5, machines=1, **changes):
    job = llama(**changes)
    found = columns(job, (kind,))
    return job, clusters(found, {0: machines})


def stored(job, fleet, notice_s=30.0, provider="aws"):
    return object_store(job, fleet, notice_s, transfer_of(provider))


def test_the_tool_moves_the_checkpoint_where_it_is_slower_than_disk_and_network():
    """An 8B model's 112 GB from two machines by 587 MB/s each, 40 s after they are on the disk."""
    job, two = fleet(machines=2)
    saved = stored(job, two)
    assert saved.transfer_s[0] == pytest.approx(112 / (2 * 2.0))  # disks of 2 GB/s
    assert saved.lag_s[0] == pytest.approx(40 + 112e3 / (2 * 587))
    assert saved.restore_s[0] == pytest.approx(112e3 / 580 + 112 / (2 * 8 * 25))  # all, on each


@pytest.mark.parametrize(("writer", "parts"), [("all", 16), ("chief", 1)])
def test_of_a_shared_folder_a_training_reads_the_part_that_it_wrote(writer: str, parts: int):
    job, many = fleet(machines=16, writer=writer)
    saved = stored(job, many, provider="own")
    copied = 112 / (parts * 8 * 25) if writer == "all" else 112 / 25
    assert saved.restore_s[0] == pytest.approx(112e3 / (parts * 300) + copied)


def test_a_slow_nic_or_disk_bounds_the_upload():
    rows = np.array([1e9, 0.0, 100e9]), np.array([1e10, 1e10, 125e6])
    seconds = transfer_of("gcp").upload_s(30e9, np.ones(3), *rows) - 40
    assert seconds == pytest.approx([30e3 / 298, 30e3 / 298, 30e3 / 125])
    slow = transfer_of("gcp").upload_s(30e9, np.ones(1), np.array([2e8]), np.array([1e10]))
    assert slow[0] == pytest.approx(40 + 30e3 / (0.6 * 200))


def test_data_are_read_in_64_parts_of_80_mb_per_machine():
    assert object_store_rate(np.array([1e9]))[0] == pytest.approx(0.6e9)
    assert object_store_rate(np.array([0.0]))[0] == pytest.approx(0.6 * 1.25e9)
    assert object_store_rate(np.array([1e12]))[0] == pytest.approx(5.12e9)


def test_a_bucket_takes_200_gbit_per_s_from_any_number_of_machines():
    """5.7 TB of Llama 3.1 405B from 2,048 machines, to each of which it comes back whole."""
    job, many = fleet(machines=2048, checkpoint_bytes=5.7e12)
    saved = stored(job, many)
    assert saved.lag_s[0] == pytest.approx(40 + 5.7e12 / (200e9 / 8))
    assert saved.restore_s[0] == pytest.approx(2048 * 5.7e12 / 25e9, rel=1e-3)
    job, few = fleet(machines=4, checkpoint_bytes=5.7e12)
    assert stored(job, few).lag_s[0] == pytest.approx(40 + 5.7e6 / (4 * 587))
    assert crash_save_interval_s(job, 2048, 8, 1e7, AWS) >= 5.7e12 / 25e9


def test_a_tier_flushes_no_faster_than_the_tool_or_the_bucket_allows():
    job, many = fleet(machines=64, checkpoint_bytes=5.7e12, asynchronous_save=True)
    slow = memory_tier(job, many, 30.0, Receiver(100e9, 1e13), 32, AWS)
    assert slow.interval_min_s[0] == pytest.approx(5.7e6 / (32 * 587))
    wide = memory_tier(job, many, 30.0, Receiver(100e9, 1e13), 64, AWS)
    assert wide.interval_min_s[0] == pytest.approx(5.7e12 / 25e9)


def test_a_chief_writes_alone():
    job, four = fleet(machines=4, writer="chief")
    assert stored(job, four).lag_s[0] == pytest.approx(40 + 112e3 / 587)


def test_every_rate_has_its_source_and_date_and_is_one_that_somebody_measured():
    for each in transfers().values():
        assert all((each.tool, each.source, each.as_of))
        assert 127e6 < each.upload_bytes_per_s < 5e9  # above one mounted stream
    assert {"aws", "gcp", "azure", "", "own"} == set(transfers())


def test_a_disk_holds_the_restored_checkpoint_and_two_parts():
    assert disk_held_bytes(SIZE, 1) == 3 * SIZE
    assert disk_held_bytes(SIZE, 4) == 1.5 * SIZE


@settings(deadline=None, max_examples=100)
@given(
    some.floats(1e6, 5e12), some.integers(1, 64), some.booleans(),
    some.sampled_from(["aws", "gcp", "azure", "own"]),
)  # fmt: skip
def test_no_interval_is_shorter_than_its_own_upload(size, machines, asynchronous, provider):
    """A machine uploads one checkpoint after the other, while the next one is made."""
    changes = {"checkpoint_bytes": size, "asynchronous_save": asynchronous}
    job, some_machines = fleet(machines=machines, **changes)
    saved = stored(job, some_machines, provider=provider)
    tool = transfer_of(provider)
    upload = size / min(machines * min(tool.upload_bytes_per_s, 2e9), 25e9)
    assert saved.interval_min_s[0] >= upload
    assert crash_save_interval_s(job, machines, 8 * machines, 1e5, tool) >= upload
    behind = (saved.transfer_s if asynchronous else 0.0) + upload
    assert saved.lag_s[0] == pytest.approx(behind + 40)


def test_the_chief_of_a_parameter_server_job_writes_in_one_stream():
    """CM-DARE's Shake-Shake (26 M parameters): 7.67 s for 210 MB and 216 tensors."""
    facts = {"checkpoint_bytes": 209.7e6, "gradient_tensors": 216, "sync": "parameter_server"}
    job, four = fleet(machines=4, writer="chief", **facts)
    saved = stored(job, four)
    assert saved.transfer_s[0] == pytest.approx(7.67, rel=0.07)
    assert saved.lag_s[0] == 0.0  # in the bucket, when training goes on


def test_a_slow_network_slows_the_single_stream_too():
    seconds = write_s(CHIEF_STREAM, 1e9, 100, np.array([1e7, 1e12]))
    assert seconds[0] - seconds[1] == pytest.approx(1e9 / 1e7 - 1e9 / CHIEF_STREAM.bytes_per_s)


def test_asynchronous_saves_stop_training_for_the_copy_to_the_host_only():
    job, one = fleet(asynchronous_save=True)
    waiting, one_too = fleet(asynchronous_save=False)
    copy, written, upload = 112 / (8 * 25), 112 / 2, 40 + 112e3 / 587
    quick, slow = stored(job, one), stored(waiting, one_too)
    assert quick.stall_s[0] == pytest.approx(copy)
    assert quick.interval_min_s[0] == pytest.approx(written + upload)
    assert slow.stall_s[0] == pytest.approx(copy + written)  # to the disk: the upload is behind
    assert slow.interval_min_s[0] == pytest.approx(upload)


def test_a_notice_is_trusted_when_save_and_upload_take_sixty_per_cent_of_it():
    job, four = fleet(machines=4)
    whole = 112 / (4 * 8 * 25) + 112 / (4 * 2) + 40 + 112e3 / (4 * 587)
    assert stored(job, four, whole / 0.6 * 1.01).notice_saves[0] == 0.95
    assert stored(job, four, whole / 0.6 * 0.99).notice_saves[0] == 0.0


def test_an_anchor_is_bound_by_its_disk_or_its_network():
    job, many = fleet(machines=4)
    assert anchor(job, many, 30.0).transfer_s[0] == pytest.approx(SIZE / 2e9)
    job, slow = fleet(G6, machines=4)
    nic = 0.85 * 2.5e9 / 8
    saved = anchor(job, slow, 30.0)
    assert saved.transfer_s[0] == pytest.approx(SIZE * 3 / 4 / nic)
    copied = SIZE / slow.host_bytes_per_s[0]
    assert saved.restore_s[0] == pytest.approx(SIZE * 3 / nic + copied)  # all of it, to three


def test_a_memory_tier_shares_its_network_and_holds_two_buffers():
    job, eight = fleet(machines=8)
    receiver = Receiver(network_bytes_per_s=1.25e9, memory_bytes=64e9)
    saved = memory_tier(job, eight, 30.0, receiver, 4, AWS)
    assert saved.possible[0]
    assert saved.transfer_s[0] == pytest.approx(SIZE / (4 * 1.25e9))
    copied = SIZE / eight.host_bytes_per_s[0]
    assert saved.restore_s[0] == pytest.approx(8 * SIZE / (4 * 1.25e9) + copied)  # all, to each
    assert saved.interval_min_s[0] > 0
    assert not memory_tier(job, eight, 30.0, receiver, 3, AWS).possible[0]  # 75 GB each


def test_a_memory_tier_keeps_to_the_fan_in_of_deepvm():
    job, many = fleet(G6, machines=30, checkpoint_bytes=1e9)
    receiver = Receiver(network_bytes_per_s=1.7e9 / 8, memory_bytes=64e9)
    assert not memory_tier(job, many, 30.0, receiver, 2, AWS).possible[0]
    assert memory_tier(job, many, 30.0, receiver, 3, AWS).possible[0]
    assert np.isinf(memory_tier(job, many, 30.0, receiver, 2, AWS).transfer_s[0])


def test_no_checkpoints_cost_nothing_and_never_come():
    _, one = fleet()
    saved = none(one)
    assert saved.path in CHECKPOINT_PATHS
    assert saved.stall_s[0] == saved.restore_s[0] == saved.notice_saves[0] == 0.0
    assert math.isinf(saved.interval_min_s[0])
    found = best_interval(
        *(np.array([x]) for x in (3600.0, 1.0, 300.0, 0.0)), saved.interval_min_s, 0.0
    )
    assert math.isinf(found[0])


def arrays(*values):
    return [np.array([value]) for value in values]


def test_progress_sums_the_intervals_that_a_run_outlives():
    tau, mean, sigma, away, stall = 900.0, 7200.0, 1.5, 600.0, 60.0
    ends = away + np.arange(1, 200_000) * (tau + stall)
    expected = tau * RUN_FAMILY.survival(ends, np.array(mean), np.array(sigma)).sum()
    found = progress(*arrays(tau, mean, sigma, away, stall, 0.0))[0]
    assert found == pytest.approx(expected, rel=1e-3)


def test_a_covered_notice_loses_only_the_stalls():
    tau, mean, sigma, away, stall = arrays(900.0, 7200.0, 1.5, 600.0, 60.0)
    found = progress(tau, mean, sigma, away, stall, np.array([1.0]))
    assert found == pytest.approx(RUN_FAMILY.excess(away, mean, sigma) * tau / (tau + stall))


def test_long_runs_of_small_spread_give_the_usual_interval_next_to_youngs():
    """A lognormal of sd 1 hardly differs from an exponential law: sqrt(2 C M) = 1.8 h."""
    found = best_interval(*arrays(100 * 3600.0, 1.0, 0.0, 60.0, 0.0, 0.0))[0]
    assert found == 2 * 3600.0


def test_the_sum_gives_daly_for_exponential_runs():
    """The same sum with S = exp(-t/M) has its maximum at Daly's interval (2006, eq. 37)."""
    mean, stall = 10_000.0, 100.0
    tau = np.geomspace(100, 20_000, 20_001)
    gained = tau / np.expm1((tau + stall) / mean)
    half = math.sqrt(stall / (2 * mean))
    daly = math.sqrt(2 * stall * mean) * (1 + half / 3 + half**2 / 9) - stall
    assert tau[gained.argmax()] == pytest.approx(daly, rel=0.002)


@settings(deadline=None, max_examples=100)
@given(
    some.floats(600, 2e5),
    some.floats(0.3, 2.5),
    some.floats(0, 1200),
    some.floats(0.1, 600),
    some.floats(0, 1200),
    some.sampled_from([0.0, 0.95]),
)
def test_no_usual_interval_makes_more_progress_than_the_best(
    mean, sigma, away, stall, least, saves
):
    law = arrays(mean, sigma, away, stall, saves)
    found = best_interval(*arrays(mean, sigma, away, stall, least, saves))
    usual = 60.0 * np.array([1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440])
    made = {tau: progress(*arrays(tau), *law)[0] for tau in usual if tau >= least}
    assert found[0] in made
    assert made[found[0]] == pytest.approx(max(made.values()), rel=1e-12)
    low, high = as_good_intervals(*arrays(mean, sigma, away, stall, least, saves))
    assert low <= found[0] <= high
    assert min(made[low], made[high]) >= (1 - 0.001) * made[found[0]] * (1 - 1e-12)


@settings(deadline=None, max_examples=60)
@given(some.floats(3600, 2e5), some.floats(0.3, 2.5), some.floats(0.5, 60))
def test_usual_intervals_cost_hardly_more_than_the_very_best(mean, sigma, stall):
    """Neighbours are at most twice apart, and the optimum is flat: from a minute on within 1 %."""
    law = arrays(mean, sigma, 600.0, stall, 0.0)
    very_best = progress(np.geomspace(60.0, 1e5, 600), *law).max()
    found = best_interval(*arrays(mean, sigma, 600.0, stall, 0.0, 0.0))
    assert progress(found, *law)[0] >= 0.99 * very_best


def test_after_a_transfer_longer_than_all_usual_intervals_whole_hours_are_used():
    found = best_interval(*arrays(1e6, 1.0, 0.0, 60.0, 90_000.0, 0.0))
    assert found[0] == 25 * 3600.0


@pytest.mark.parametrize("work_h", [0.2, 1, 5, 24, 500])
@pytest.mark.parametrize("size", [8e7, 5e9, SIZE, 2e12])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_saves_for_crashes_cost_next_to_nothing_or_are_few(
    work_h: float, size: float, asynchronous: bool
):
    """The stall is that of an ordinary machine of the catalog, with 100 Gbit/s."""
    job, two = fleet(machines=2, checkpoint_bytes=size, asynchronous_save=asynchronous)
    found = crash_save_interval_s(job, 2, 16, work_h * 3600.0, AWS)
    saved = stored(job, two)
    assert saved.stall_s[0] <= 0.005 * found or found >= work_h * 900.0
    assert size / (2 * 587e6) <= found
    assert found >= 60.0


def test_saves_for_crashes_are_an_hour_apart_in_long_runs_and_a_tenth_in_short_ones():
    job, _ = fleet(checkpoint_bytes=8e7, asynchronous_save=True)
    found = [
        crash_save_interval_s(job, 1, 8, hours * 3600.0, AWS) for hours in (0.2, 1.0, 4.0, 30.0)
    ]
    assert found == [60.0, 300.0, 1200.0, 3600.0]
