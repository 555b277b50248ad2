"""Recipes of Hopper and Blackwell: which rows count, and that the studies reach their targets."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.research.accuracy.recipes import STUDIES, is_dense, is_mixture, recipes

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
needs_tables = pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")


@needs_tables
def test_the_latest_release_of_each_recipe_counts_once():
    runs = recipes(Path(REFERENCE))
    assert max(Counter(run.label for run in runs).values()) == 1
    oss = next(run for run in runs if run.label == "GPT OSS 120B, full, mxfp8, 64 GB200")
    assert (oss.release, oss.tokens_per_s) == ((26, 8), 1_835_008.0)  # 26.06.01 had 1,171,456
    assert (sum(map(is_dense, runs)), sum(map(is_mixture, runs))) == (12, 22)


@needs_tables
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.key)
def test_both_studies_reach_their_targets_and_spans(study):
    found = study.run(Path(REFERENCE))
    assert study.target.met_by(found)
    assert found.spans_met
