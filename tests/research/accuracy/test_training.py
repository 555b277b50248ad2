"""The speed studies, run on the published runs."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recommender.arrays import Z_90
from recommender.errors import UsageError
from recommender.performance.speed_spread import EACH, SAME
from tests.research.accuracy import laboratories, other_gpu, training
from tests.research.accuracy.other_gpu import pairs

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
STUDIES = {s.key: s for s in training.STUDIES + laboratories.STUDIES + other_gpu.STUDIES}
needs_reference = pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")


@pytest.mark.parametrize("key", STUDIES)
def test_a_study_without_its_tables_says_so(key):
    assert STUDIES[key].needs_reference
    with pytest.raises(UsageError, match="reference tables"):
        STUDIES[key].run(None)


def test_pairs_are_ratios_within_a_series_both_ways():
    table = pd.DataFrame(
        {
            "source": ["a", "a", "b"],
            "model": ["m"] * 3,
            "setting": ["mixed"] * 3,
            "gpu": ["H100-SXM", "V100-16GB", "A10"],
            "score": [1.0, 3.0, 100.0],
            "rate": [10.0, 20.0, 1.0],
        }
    )
    said, true, between = pairs(table)
    assert sorted(np.exp(said)) == pytest.approx([1 / 3, 3])
    assert sorted(np.exp(true)) == pytest.approx([1 / 2, 2])
    assert between.tolist() == [3, 3]  # generations from Volta to Hopper


def test_the_spread_between_gpus_is_found_in_errors_that_have_it():
    random = np.random.default_rng(7)
    between = np.tile([0.0, 1.0, 2.0, 3.0], 2000)
    missed = random.normal(size=len(between)) * np.sqrt(0.1**2 + 0.15**2 * between)
    same, each = other_gpu.fitted_spread([(missed, np.zeros_like(missed), between)])
    assert (same, each) == (pytest.approx(0.1, abs=0.015), pytest.approx(0.15, abs=0.015))


@needs_reference
def test_shipped_spreads_between_gpus_are_the_fit_and_hold_each_distance():
    found = [pairs(one) for one in other_gpu.predictions(Path(REFERENCE))]
    assert other_gpu.fitted_spread(found) == pytest.approx((SAME, EACH))
    held = other_gpu.from_one_timing(Path(REFERENCE))
    between = np.concatenate([far for _, _, far in found])
    inside = np.abs(np.log(held.predicted / held.measured)) <= Z_90 * held.sigma
    shares = [inside[between == d].mean() for d in range(4)]
    assert all(0.85 <= share <= 0.95 for share in shares), shares


@pytest.mark.slow
@pytest.mark.reference
@needs_reference
@pytest.mark.parametrize("key", ["training-one", "training-one-unstated", "training-several"])
def test_a_target_that_was_reached_stays_reached(key):
    assert STUDIES[key].target.met_by(STUDIES[key].run(Path(REFERENCE)))


@pytest.mark.slow
@pytest.mark.reference
@needs_reference
@pytest.mark.parametrize(
    "key", ["training-one", "training-one-unstated", "training-several", "training-other-gpu"]
)
def test_spans_hold_what_they_promise(key):
    assert STUDIES[key].run(Path(REFERENCE)).spans_met


@pytest.mark.slow
@pytest.mark.reference
@needs_reference
def test_another_gpu_is_predicted_better_than_by_peaks_and_no_worse_than_the_best_published():
    """Published: 22-29 % by the ratio of TFLOPS, 10-13 % by the geometric-mean score."""
    assert STUDIES["training-other-gpu"].run(Path(REFERENCE)).median < 13


@pytest.mark.slow
@pytest.mark.reference
@needs_reference
def test_the_models_are_closer_than_laboratories_are_to_each_other():
    noise = STUDIES["training-noise"].run(Path(REFERENCE))
    assert 30 < noise.median < 50
    assert STUDIES["training-one"].run(Path(REFERENCE)).median < noise.median
