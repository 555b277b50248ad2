"""Runs with model parallelism: they agree with what their papers say elsewhere, and the errors."""

import csv
import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.performance.priors import load_priors
from tests.research.accuracy.parallel import (
    PEAK,
    STUDIES,
    held,
    networks,
    predicted,
    published_runs,
    reference_runs,
    scaled,
    spread_without,
)
from tests.research.accuracy.study import score

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA", "")
needs_tables = pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
BY_KEY = {study.key: study for study in STUDIES}


def runs_of(source, again=None):
    return [
        run for run in published_runs() if run.source == source and again in (None, run.recompute)
    ]


def test_iteration_times_agree_with_the_utilisation_stated_next_to_them():
    """Table 5 of arXiv 2205.05198: 41.5, 51.4, 56.0, 56.3 % MFU without full recomputation."""
    runs = [run for run in runs_of("arXiv 2205.05198", again=False) if run.gpus < 1000]
    flop = [networks()[run.network].paper_flop(run.tokens, False) for run in runs]
    used = [run.samples_per_s / run.gpus * f / PEAK for run, f in zip(runs, flop, strict=True)]
    assert used == pytest.approx([0.415, 0.514, 0.560, 0.563], abs=0.003)


def test_rates_per_gpu_agree_with_the_petaflops_of_the_cluster():
    """Table 1 of arXiv 2104.04473 states both."""
    runs = runs_of("arXiv 2104.04473")[:9]
    flop = [networks()[run.network].paper_flop(run.tokens, True) for run in runs]
    petaflops = [run.samples_per_s * f / 1e15 for run, f in zip(runs, flop, strict=True)]
    stated = [8.8, 18.2, 34.6, 70.8, 143.8, 227.1, 297.4, 410.2, 502.0]
    assert petaflops == pytest.approx(stated, rel=0.005)


def test_two_groups_measured_the_largest_network_alike_within_a_tenth():
    """530 B on 2,240 GPUs with recomputation, Megatron-LM of 2021 and of 2022."""
    rates = [
        run.samples_per_s
        for run in published_runs()
        if run.gpus == 2240 and run.recompute and run.source != "arXiv 2201.11990"
    ]
    assert len(rates) == 2
    assert max(rates) / min(rates) < 1.11


def test_our_count_of_flop_is_the_papers_less_half_of_the_attention_scores():
    network = networks()["GPT-3 175B"]
    scores = 12.0 * network.layers * network.hidden * 2048.0**2
    counted = network.paper_flop(2048, False) - scores / 2
    assert network.flop(2048) == pytest.approx(counted, rel=0.002)


def test_every_run_holds_its_states_and_one_sample():
    """Published runs did fit their GPUs: the prediction is finite for each."""
    assert all(np.isfinite(predicted(run)) for run in published_runs())


def test_a_series_starts_from_its_smallest_measurement():
    one = runs_of("arXiv 2104.04473")[9]
    two = replace(one, gpus=2 * one.gpus, samples_per_s=1.0)
    found = scaled([two, one])
    expected = one.samples_per_s * predicted(two) / predicted(one) * one.tokens
    assert found.predicted.tolist() == pytest.approx([expected])


@pytest.mark.parametrize("key", ["parallel", "parallel-scaling"])
def test_the_studies_of_the_papers_reach_their_targets(key):
    study = BY_KEY[key]
    assert study.target.met_by(study.run(None))


def test_the_printed_span_is_that_of_the_papers_and_covers_nine_of_ten_runs_of_others():
    shipped = load_priors()["decoder", "tuned"].sigma_several
    assert shipped == pytest.approx(spread_without(), abs=0.005)
    assert score(held(published_runs())).spans_met


def test_the_tables_in_fp8_need_the_reference_folder():
    with pytest.raises(UsageError, match="reference tables"):
        BY_KEY["parallel-fp8"].run(None)


@pytest.mark.reference
@needs_tables
def test_the_tables_in_fp8_reach_their_target():
    study = BY_KEY["parallel-fp8"]
    found = study.run(Path(REFERENCE))
    assert found.points == 16
    assert study.target.met_by(found)


@pytest.mark.reference
@needs_tables
def test_the_networks_in_fp8_do_the_flop_that_their_tables_state():
    """Causal attention is counted once or twice, by version of the tables."""
    stated = {}
    with gzip.open(Path(REFERENCE) / "measured" / "training.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            if row["tflops_per_gpu"] and row["throughput"]:
                stated[float(row["throughput"])] = float(row["tflops_per_gpu"]) * 1e12
    for run in reference_runs(Path(REFERENCE)):
        network = networks()[run.network]
        flop = network.flop(run.tokens) + 6.0 * network.hidden * network.layers * run.tokens**2
        said = stated[run.samples_per_s * run.tokens] * run.gpus / run.samples_per_s
        nearest = min(abs(count / said - 1.0) for count in (flop, network.flop(run.tokens)))
        assert nearest < 0.065, run.label
