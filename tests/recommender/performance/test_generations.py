"""A timing says less of a GPU the more generations away it is."""

import math

import pytest

from recommender.performance.speed_spread import (
    EACH,
    FARTHEST,
    SAME,
    generation,
    generations_apart,
    related_sd,
)


@pytest.mark.parametrize(
    ("gpu", "timed", "apart"),
    [
        ("H200", ("H100",), 0),
        ("L40S", ("H100",), 0),  # Ada and Hopper are of 2022
        ("A100", ("H100",), 1),
        ("B200", ("H100",), 1),
        ("H100", ("V100",), 3),  # Turing and Ampere between them
        ("H100", ("V100", "A100"), 2),  # as the level is the mean of both
        ("B200", ("K80",), 7),
    ],
)
def test_generations_are_counted_to_the_timed_gpus_in_the_mean(gpu, timed, apart):
    assert generations_apart(gpu, timed) == apart


def test_a_gpu_that_is_not_listed_is_as_far_as_the_farthest_pairs_of_the_fit():
    assert generation("MI300X") is None
    assert generations_apart("MI300X", ("H100",)) == generations_apart("H100", ("MI300X",))
    assert related_sd("MI300X", ("H100",)) == related_sd("H100", ("V100",))
    assert generations_apart("H100", ("V100",)) == FARTHEST


def test_every_generation_adds_the_same_variance():
    sds = [related_sd(gpu, ("V100",)) for gpu in ("V100-32GB", "T4", "A100", "H100", "B200")]
    assert sds == pytest.approx([math.sqrt(SAME**2 + EACH**2 * d) for d in range(5)])
