"""The fit predicts with the same formulas as the recommender, and its result is what ships."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recommender.performance.fit.data import HERE, h100_run
from recommender.performance.fit.model import Constants, columns_of, errors, fit, per_gpu_rate
from recommender.performance.fit_priors import FITTED, fitted_row
from recommender.performance.fleet import STRATEGIES
from recommender.performance.priors import load_priors, prior_of
from recommender.performance.terms import terms_of
from tests.recommender.performance.parts import P5, clusters, columns, llama

NETWORKS = pd.read_csv(HERE / "networks.csv", index_col=0)
H100 = pd.DataFrame(
    [
        h100_run(item, NETWORKS.loc[item.model])
        for item in pd.read_csv(HERE / "runs.csv", index_col=0).itertuples()
    ]
)


@pytest.mark.parametrize("index", range(len(H100)))
def test_a_run_is_predicted_as_the_recommender_would(index):
    run = H100.iloc[index]
    gpus = int(run.nodes * run.per_node)
    job = llama(
        flop_per_sample=run.flop,
        parameters=run.parameters,
        trainable_parameters=run.parameters,
        hidden=int(run.hidden),
        layers=int(run.layers),
        gradient_tensors=int(run.tensors),
        global_batch=int(run.batch * run.rounds * gpus),
        activation_bytes_per_sample=1e9,
        recomputed_activation_bytes_per_sample=1e9,
        vocabulary=0,
    )
    prior = prior_of(job)
    machine = replace(P5, intra_gb_per_s=450.0)
    found = columns(job, (machine,))
    states = 16 * run.parameters / gpus
    scale = run.memory / 3350e9
    assert scale in (1.0, pytest.approx(2400 / 3350))
    per_flop = 1 / (prior.efficiency * run.matmul)
    per_flop += 1 / (prior.intensity(job.hidden) * run.memory)
    found = replace(
        found,
        memory_bytes=np.array([1.5e9 + states + 1e9 * (run.batch + 0.5)]),
        compute_per_s=np.array([8 / (run.flop * per_flop)]),
    )
    terms = terms_of(job, prior, clusters(found, {0: int(run.nodes)}))
    row = STRATEGIES.index(("fsdp", bool(run.recompute)))
    assert terms.accumulation[row, 0] == run.rounds
    expected = job.global_batch / gpus / terms.step_s[row, 0]
    one = columns_of(H100.iloc[[index]])
    rate = per_gpu_rate(
        one,
        np.array(prior.efficiency),
        prior.flop_per_byte,
        prior.batch_penalty,
        prior.overlap,
    )
    assert rate[0] == pytest.approx(expected, rel=1e-3)


def test_a_fit_finds_the_constants_it_was_given():
    truth = Constants(0.5, 0.5, 100.0, 0.05)
    made = H100.assign(rate=1.0)
    made["rate"] = np.exp(errors(made, truth))
    found = fit(made)
    assert np.abs(errors(made, found)).mean() < 0.03


@pytest.mark.reference
@pytest.mark.skipif(
    not os.environ.get("RECOMMEND_REFERENCE_DATA"), reason="needs RECOMMEND_REFERENCE_DATA"
)
def test_the_shipped_priors_are_the_fit_of_the_reference_runs():
    from recommender.performance.fit.data import runs

    rows = runs(Path(os.environ["RECOMMEND_REFERENCE_DATA"]))
    for family, stack in FITTED:
        fitted, shipped = fitted_row(rows, family, stack), load_priors()[family, stack]
        assert fitted["efficiency"] == pytest.approx(shipped.efficiency, rel=0.1)
        assert fitted["flop_per_byte"] == pytest.approx(shipped.flop_per_byte, rel=0.2)
        assert fitted["rows"] == shipped.rows
