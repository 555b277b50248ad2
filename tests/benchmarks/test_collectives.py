"""Collectives among local processes give right sums, and their times a latency and a bandwidth."""

from pathlib import Path

import numpy as np
import pytest

from recommender.benchmarks import collectives
from recommender.benchmarks.collectives import fit_line, fit_lines
from recommender.benchmarks.errors import BenchError, Skipped
from recommender.benchmarks.ring import COLLECTIVES, measure_ring
from tests.benchmarks.machines import bench

SIZES = np.array([4e3, 64e3, 1e6, 16e6, 256e6])


def test_a_line_is_recovered_exactly():
    found = fit_line(SIZES, 30e-6 + SIZES / 10e9)
    assert found.latency_s == pytest.approx(30e-6)
    assert found.bytes_per_s == pytest.approx(10e9)
    assert found.r2 == pytest.approx(1.0)
    assert max(map(abs, found.residuals)) < 1e-9


def test_noise_moves_the_line_by_about_as_much():
    rng = np.random.default_rng(1)
    noisy = (30e-6 + SIZES / 10e9) * (1 + 0.05 * rng.standard_normal(len(SIZES)))
    found = fit_line(SIZES, noisy)
    assert found.latency_s == pytest.approx(30e-6, rel=0.15)
    assert found.bytes_per_s == pytest.approx(10e9, rel=0.15)
    assert found.r2 > 0.95


def test_times_that_break_are_two_lines_and_the_break_is_found():
    """Above 24 MB a byte costs three times as much, as in Gloo's all-gather."""
    sizes = np.array([4e3, 64e3, 1e6, 4e6, 16e6, 24e6, 32e6, 48e6, 64e6])
    seconds = np.where(sizes < 30e6, 1e-3 + sizes / 1e9, 0.05 + 3 * sizes / 1e9)
    assert fit_line(sizes, seconds).r2 < 0.95
    small, large = fit_lines(sizes, seconds)
    assert (small.bytes_per_s, large.bytes_per_s) == pytest.approx((1e9, 1e9 / 3))
    assert (small.latency_s, large.latency_s) == pytest.approx((1e-3, 0.05))
    assert (small.least_bytes, large.least_bytes) == (0.0, 32e6)
    assert (small.r2, large.r2) == pytest.approx((1.0, 1.0))


def test_times_that_lie_on_one_line_are_not_broken():
    rng = np.random.default_rng(3)
    sizes = np.array([4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6, 64e6])
    for _ in range(50):
        noisy = (1e-3 + sizes / 1e9) * (1 + 0.05 * rng.standard_normal(len(sizes)))
        (line,) = fit_lines(sizes, noisy)
        assert line.least_bytes == 0.0


def test_a_latency_is_never_negative():
    found = fit_line([1e6, 2e6, 4e6], [1e-3, 2.1e-3, 4.4e-3])
    assert found.latency_s == 0
    assert found.bytes_per_s == pytest.approx(0.95e9, rel=0.05)


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [1, 2, 0]), ([1, 2, 4], [9, 4, 2])],
)
def test_what_is_no_line_is_refused(sizes: list[float], seconds: list[float]):
    with pytest.raises(ValueError):
        fit_line(sizes, seconds)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_processes_of_a_ring_agree_with_a_sum_in_float64(name: str):
    """Each process checks its own sums; a wrong one would raise."""
    found = measure_ring(3, name, (12, 4096), 3)
    assert set(found) == {12, 4096}
    assert all(len(times) == 3 and min(times) > 0 for times in found.values())


def test_a_failing_process_is_reported():
    with pytest.raises(BenchError, match="process of the ring failed"):
        measure_ring(2, "no such collective", (8,), 1)


def test_rates_are_those_of_the_busiest_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """nccl-tests: bytes · 2(n-1)/n for an all-reduce, half of it for its two parts."""
    monkeypatch.setattr(
        collectives, "measure_ring", lambda n, name, sizes, _: {s: (s / 1e9,) * 3 for s in sizes}
    )
    found = list(collectives.ring(bench(tmp_path)))
    rates = {(dict(r.facts)["collective"], r.median) for r in found}
    assert {(n, round(r, 9)) for n, r in rates} == {
        ("all_reduce", 1.5), ("all_gather", 0.75), ("reduce_scatter", 0.75),
    }  # fmt: skip
    lines = dict(collectives.links(found))
    assert set(lines) == {f"{name} 4 sockets" for name in COLLECTIVES}
    assert lines["all_reduce 4 sockets"].bytes_per_s == pytest.approx(1.5e9)


def test_a_single_process_measures_no_collectives(tmp_path: Path):
    (found,) = collectives.collectives(bench(tmp_path))
    assert isinstance(found, Skipped)
    assert "torchrun" in str(found)
