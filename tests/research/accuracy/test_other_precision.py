"""Pairs of runs in two precisions: which count, and the spreads that they give."""

import os
from pathlib import Path

import numpy as np
import pytest

from recommender.arrays import Z_90
from recommender.errors import UsageError
from recommender.performance.carried_precision import FORMAT, HALVED
from tests.research.accuracy.other_precision import (
    STUDIES,
    Pair,
    fitted_sd,
    held,
    narrow_pairs,
    of_halving,
    uncalibrated,
    wide_pairs,
)

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
needs_tables = pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
PAIR = Pair("a", "llama", "H100", "bf16", "fp8", missed_timed=0.3, missed=0.4)


def test_of_a_timing_what_the_formulas_miss_is_carried_either_way():
    assert PAIR.carried == pytest.approx(0.1)
    assert PAIR.turned().carried == pytest.approx(-0.1)
    assert (PAIR.halved, PAIR.turned().halved) == (16, 16)
    assert Pair("a", "llama", "B200", "fp8", "mxfp8", 0.0, 0.0).halved == 0


def test_a_pair_is_judged_by_other_laboratories_or_by_other_networks_and_gpus():
    wide = Pair("b", "llama", "H100", "bf16", "fp8", 0.0, 1.0)
    found = held([PAIR, PAIR, wide])
    assert found.sigma[[0, 2, 4]] == pytest.approx(
        np.hypot([1.0 / Z_90, 1.0 / Z_90, 0.1 / Z_90], 0.02)
    )
    other = Pair("a", "gpt", "H100", "bf16", "fp8", 0.0, 0.5)
    assert held([PAIR, other]).sigma[0] == pytest.approx(np.hypot(0.5 / Z_90, 0.02))


def test_a_network_on_a_gpu_weighs_the_root_of_its_pairs():
    """Of nine pairs that miss 0.1 and two of others that miss 0.2 these have 40 % of the weight."""
    others = [Pair("a", name, "H100", "bf16", "fp8", 0.0, 0.2) for name in ("gpt", "bert")]
    assert fitted_sd([PAIR] * 9 + others) == pytest.approx(0.2 / Z_90)
    assert fitted_sd([PAIR] * 9) == pytest.approx(0.1 / Z_90)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.key)
def test_a_study_without_its_tables_says_so(study):
    with pytest.raises(UsageError, match="reference tables"):
        study.run(None)


@pytest.mark.slow
@pytest.mark.reference
@needs_tables
def test_shipped_spreads_are_the_fit_and_hold_every_halving():
    pairs = [*wide_pairs(Path(REFERENCE)), *narrow_pairs(Path(REFERENCE))]
    assert [len(of_halving(pairs, bits)) for bits in (32, 16, 8, 0)] == [227, 7, 25, 16]
    for bits, sd in {**HALVED, 0: FORMAT}.items():
        alike = of_halving(pairs, bits)
        assert round(fitted_sd(alike), 2) == sd
        found = held(alike)
        inside = np.abs(np.log(found.predicted)) <= Z_90 * found.sigma
        assert 0.85 <= inside.mean() <= 0.95, bits


@pytest.mark.slow
@pytest.mark.reference
@needs_tables
@pytest.mark.parametrize(("pairs", "before"), [(wide_pairs, 18.5), (narrow_pairs, 16.1)])
def test_a_carried_timing_is_closer_than_no_timing(pairs, before):
    """At every halving of the bits."""
    found = pairs(Path(REFERENCE))
    assert uncalibrated(found) == pytest.approx(before, abs=0.05)
    for bits in {pair.halved for pair in found}:
        alike = of_halving(found, bits)
        missed = np.abs(held(alike).predicted - 1.0)
        assert 100.0 * missed.mean() < uncalibrated(alike)
