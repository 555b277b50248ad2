"""Steps that Lambda's BERT runs report and those they ran, by the logs next to its tables."""

import os
from math import inf
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from recommender.errors import UsageError
from tests.research.fits.data import runs
from tests.research.fits.lambda_runs import SQUAD_FEATURES, share_run

FOLDER = os.environ.get("RECOMMEND_REFERENCE_DATA", "")


def run(model: str, gpu: str, gpus: int, source: str = "Lambda deeplearning-benchmark v2"):
    return SimpleNamespace(source=source, model=model, gpu=gpu, n_gpus=gpus)


def test_eight_b200_ran_thirty_steps_and_reported_a_hundred():
    """Log of 2025-12-10: 2 x 15 iterations in 20.3297 s, 30,221.77 samples/s reported."""
    share = share_run(run("BERT-base", "B200-192GB", 8), "bf16", inf)
    assert share == pytest.approx(0.30)
    assert 30_221.77 * share == pytest.approx(30 * 8 * 768 / 20.3297, rel=1e-5)


def test_eight_h200_ran_thirty_eight():
    """Log of 2025-02-19: 2 x 19 iterations of 8 x 592 samples."""
    assert share_run(run("BERT-base", "H200-140GB-SXM", 8), "bf16", inf) == pytest.approx(0.38)


def test_the_first_table_states_the_batch_of_all_gpus():
    """8 x A100, batch 2,560: 2 x 35 steps; BERT-large, 512 (log of 2022-11-19): all 100."""
    source = "Lambda deeplearning-benchmark v1"
    base = run("BERT-base", "A100 80GB SXM4", 8, source)
    assert share_run(base, "bf16", 2560.0) == pytest.approx(0.70)
    assert share_run(run("BERT-large", "A100 80GB SXM4", 8, source), "tf32", 512.0) == 1.0
    assert share_run(base, "bf16", 2 * SQUAD_FEATURES / 100) == 1.0


def test_other_networks_and_laboratories_stay_as_they_are():
    assert share_run(run("ResNet-50 v1.5", "B200-192GB", 8), "bf16", 26_624.0) == 1.0
    other = run("BERT-base", "A100", 8, "NVIDIA DeepLearningExamples")
    assert share_run(other, "bf16", 1e6) == 1.0


@pytest.mark.reference
@pytest.mark.skipif(not FOLDER, reason="needs RECOMMEND_REFERENCE_DATA")
def test_no_cluster_of_theirs_is_faster_per_gpu_than_one_gpu():
    """As reported eight B200 were 2.7 times as fast per GPU as one."""
    rows = runs(Path(FOLDER))
    mine = rows[rows.source.str.startswith("Lambda") & rows.model.str.startswith("BERT")]
    key = ["source", "model", "gpu", "precision"]
    alone = mine[mine.per_node == 1].groupby(key).rate.median()
    many = mine[mine.per_node > 1].set_index(key).rate
    ratio = (many / alone.reindex(many.index)).dropna()
    assert len(ratio) > 100
    assert np.asarray(ratio).max() < 1.06


def test_a_run_of_unknown_batch_is_refused_and_not_counted_as_zero():
    with pytest.raises(UsageError, match=r"BERT-base on Z9-999GB, bf16: .* lambda_batches.csv"):
        share_run(run("BERT-base", "Z9-999GB", 8), "bf16", inf)
