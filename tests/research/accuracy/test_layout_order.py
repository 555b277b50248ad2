"""Pairs of layouts: which count, and which the model orders wrongly."""

import os
from pathlib import Path

import pytest

from tests.research.accuracy.layout_order import (
    LayoutRun,
    bridge,
    lost_speed,
    parcae,
    wrong_pairs,
)

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")


def test_pairs_are_of_one_job_and_further_apart_than_repeats():
    runs = [
        LayoutRun(("a",), 100.0, 10.0),
        LayoutRun(("a",), 102.0, 9.0),
        LayoutRun(("b",), 300.0, 1.0),
    ]
    assert wrong_pairs(runs) == []


def test_an_order_is_wrong_whatever_the_level():
    runs = [
        LayoutRun(("a",), 100.0, 10.0),
        LayoutRun(("a",), 120.0, 11.0),
        LayoutRun(("a",), 150.0, 5.0),
    ]
    assert sorted(wrong_pairs(runs)) == [0.0, 100.0, 100.0]


def test_most_pipelines_of_gpt_on_single_v100s_are_in_order():
    wrong = wrong_pairs(parcae())
    assert len(wrong) == 26
    assert sum(wrong) <= 300.0


def test_what_is_lost_is_the_speed_of_the_layout_that_is_taken_for_the_fastest():
    runs = [
        LayoutRun(("a",), 100.0, 10.0),
        LayoutRun(("a",), 120.0, 11.0),
        LayoutRun(("a",), 150.0, 5.0),
        LayoutRun(("b",), 100.0, 2.0),  # one layout alone
        LayoutRun(("c",), 90.0, 1.0),
        LayoutRun(("c",), 100.0, 2.0),
    ]
    assert lost_speed(runs) == pytest.approx([20.0, 0.0])


@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_releases_of_megatron_bridge_are_pairs_where_layouts_differ_by_more_than_software():
    runs = bridge(Path(REFERENCE))
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    assert [(one.job[0], one.job[3]) for one, _ in pairs] == [
        ("DeepSeekV3", "B200"),
        ("GPT OSS 120B", "B300"),
        ("GPT OSS 120B", "B200"),
    ]
    assert all(other.measured > 1.13 * one.measured for one, other in pairs)
    assert wrong_pairs(runs) == [100.0, 0.0, 0.0]
