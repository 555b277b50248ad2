"""Pairs of layouts: which count, and which the model orders wrongly."""

from tests.research.accuracy.layout_order import LayoutRun, parcae, wrong_pairs


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
