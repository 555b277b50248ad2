"""The speed studies, run on the published runs."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recommender.errors import UsageError
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
            "score": [1.0, 3.0, 100.0],
            "rate": [10.0, 20.0, 1.0],
        }
    )
    said, true = pairs(table)
    assert sorted(np.exp(said)) == pytest.approx([1 / 3, 3])
    assert sorted(np.exp(true)) == pytest.approx([1 / 2, 2])


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
