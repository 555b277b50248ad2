"""What a suite will take is reckoned from its cases and from how fast this machine is now."""

from dataclasses import replace
from pathlib import Path

import pytest

from recommender.benchmarks.estimate import Probe, probe, suite_seconds
from recommender.benchmarks.method import Rule
from recommender.benchmarks.subject import Case, Trial

RULE = Rule(warm_up=2, least=7, most=50, most_s=1.5, half_width=0.02)
QUIET = Probe(tflops=0.1, gb_per_s=10.0, fresh_gb_per_s=1.0, disk_gb_per_s=0.8, busy=False)


def product(work: float) -> Case:
    facts: dict[str, object] = {"precision": "fp32", "m": 100, "k": 100, "n": 100}
    return Case("matmul", "fp32", "TFLOP/s", work, lambda: Trial(lambda: None), None, facts)


def test_by_hand():
    """A product of 0.05 s: 2 to warm up, 7 of them (less than 0.3 · 1.5 s would be 9)."""
    found = suite_seconds([product(0.005)], RULE, gpu=False, found=QUIET)
    assert found == pytest.approx(0.02 + 2 * 0.05 + 9 * 0.05 + 3e4 * 15e-9)


def test_a_busy_machine_takes_each_case_to_its_end_but_no_further():
    busy = replace(QUIET, busy=True)
    found = suite_seconds([product(0.005)], RULE, gpu=False, found=busy)
    assert found == pytest.approx(1.3 * (0.02 + 2 * 0.05 + 1.5), rel=0.01)
    short = suite_seconds([product(1e-5)], RULE, gpu=False, found=busy)
    assert short == pytest.approx(1.3 * (0.02 + 52 * 1e-4), rel=0.03)


def test_a_product_of_ten_seconds_is_taken_three_times_and_warmed_up_once():
    found = suite_seconds([product(1.0)], RULE, gpu=False, found=QUIET)
    assert found == pytest.approx(0.02 + 11.5 + 30.0, rel=0.01)


def test_a_slower_machine_takes_longer_and_cases_add_up():
    one = suite_seconds([product(0.05)], RULE, gpu=False, found=QUIET)
    slow = suite_seconds([product(0.05)], RULE, gpu=False, found=replace(QUIET, tflops=0.05))
    assert slow > one
    two = suite_seconds([product(0.05)] * 2, RULE, gpu=False, found=QUIET)
    assert two == pytest.approx(2 * one)


def test_a_slow_disk_is_waited_for_and_files_are_drawn_once():
    """A GiB at 0.125 GB/s: one to warm up, three, one written before; 64 MiB drawn."""
    facts: dict[str, object] = {"bytes": 2**30}
    write = Case(
        "checkpoint", "write", "GB/s", 2**30 / 1e9, lambda: Trial(lambda: None), None, facts
    )
    slow = replace(QUIET, disk_gb_per_s=0.125)
    found = suite_seconds([write], RULE, gpu=False, found=slow)
    once = 2**30 / 1e9 / 0.125
    assert found == pytest.approx(1.5 + once + 3 * once + once, rel=0.02)


def test_the_probe_gives_positive_rates_and_leaves_nothing(tmp_path: Path):
    found = probe(tmp_path)
    rates = found.tflops, found.gb_per_s, found.fresh_gb_per_s, found.disk_gb_per_s
    assert min(rates) > 0
    assert list(tmp_path.iterdir()) == []
