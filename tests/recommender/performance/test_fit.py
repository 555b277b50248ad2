"""The fit predicts with the same formulas as the recommender, and its result is what ships."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recommender.arrays import Z_90
from recommender.performance.data_parallel import ROWS
from recommender.performance.gpu_speed import sample_rate
from recommender.performance.least_squares import students_excess
from recommender.performance.memory import bytes_of
from recommender.performance.priors import load_priors, prior_of
from recommender.performance.step import terms_of
from tests.recommender.performance.parts import P5, clusters, columns, llama
from tests.research.fits.data import HERE, h100_run
from tests.research.fits.estimate import estimate, trials_of
from tests.research.fits.fit_priors import fitted_row
from tests.research.fits.held_out import (
    Group,
    Left,
    between_laboratories,
    conformal,
    constants,
    groups_of,
    one_machine,
    sigma,
    weighted_quantile,
    without,
)
from tests.research.fits.model import Constants, columns_of, errors, per_gpu_rate

NETWORKS = pd.read_csv(HERE / "networks.csv", index_col=0)
LISTED = pd.read_csv(HERE / "runs.csv", index_col=0)
H100 = pd.DataFrame([h100_run(item, NETWORKS.loc[item.model]) for item in LISTED.itertuples()])


@pytest.mark.parametrize("index", range(len(H100)))
def test_a_run_is_predicted_as_the_recommender_would(index):
    run = H100.iloc[index]
    gpus = int(run.nodes * run.per_node)
    job = llama(
        flop_per_sample=run.flop,
        tokens_per_sample=int(LISTED.tokens.iloc[index]),
        parameters=run.parameters,
        trainable_parameters=run.parameters,
        hidden=int(run.hidden),
        layers=int(run.layers),
        gradient_tensors=int(run.tensors),
        global_batch=int(run.batch * run.rounds * gpus),
        activation_bytes_per_sample=1e11,  # more than an update holds besides the states
        recomputed_activation_bytes_per_sample=1e11,
        vocabulary=0,
    )
    prior = replace(prior_of(job), update_bytes=0.0)  # the constants hold that of their runs
    machine = replace(P5, intra_gb_per_s=450.0)
    found = columns(job, (machine,))
    gathered = bytes_of(job, prior).whole * (1 - 1 / gpus)
    states = 16 * run.parameters / gpus + gathered
    scale = run.memory / 3350e9
    assert scale in (1.0, pytest.approx(2400 / 3350))
    found = replace(
        found,
        memory_bytes=np.array([1.5e9 + states + 1e11 * (run.batch + 0.5)]),
        compute_per_s=np.array([8 * sample_rate(job, prior, "bf16", run.matmul, run.memory)]),
    )
    terms = terms_of(job, prior, clusters(found, {0: int(run.nodes)}))
    row = ROWS.index(("fsdp", bool(run.recompute)))
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


ALL = np.ones(len(H100), dtype=bool)


def made_with(truth: Constants) -> pd.DataFrame:
    """The H100 runs, at the rates that some constants give."""
    made = H100.assign(rate=1.0)
    made["rate"] = np.exp(errors(made, truth))
    return made


def test_an_estimate_predicts_as_the_constants_it_was_given():
    made = made_with(Constants(0.5, 0.5, 100.0, 0.05))
    found = estimate(trials_of(made), ALL, fp32_ratio=1.0)
    assert np.abs(errors(made, found)).mean() < 0.03


def test_an_estimate_does_not_see_what_is_left_out():
    trials = trials_of(made_with(Constants(0.5, 0.5, 100.0, 0.05)))
    kept = trials.rows.source.str.startswith("Mosaic").to_numpy()
    spoilt = trials.rows.rate.where(kept, 1e6 * trials.rows.rate)
    with_noise = trials_of(trials.rows.assign(rate=spoilt))
    assert estimate(trials, kept, 1.0) == estimate(with_noise, kept, 1.0)


def test_arithmetic_without_runs_follows_by_the_ratio():
    found = estimate(trials_of(made_with(Constants(0.5, 0.5, 100.0, 0.05))), ALL, fp32_ratio=1.4)
    assert found.cuda == pytest.approx(min(1.4 * found.tensor, 1.0))


def laboratories(apart: float) -> tuple[Group]:
    """The H100 runs as four versions of one laboratory and one of another, by a factor faster."""
    made = made_with(Constants(0.5, 0.5, 100.0, 0.05)).assign(family="decoder", tuning="typical")
    rows = [
        made.assign(laboratory=name[0], source=name, nodes=1.0, rate=made.rate * factor)
        for name, factor in zip(("A1", "A2", "A3", "A4", "B1"), (1, 1, 1, 1, apart), strict=True)
    ]
    trials = trials_of(pd.concat(rows, ignore_index=True))
    return (Group("decoder", "typical", "source", trials, trials.rows.iloc[:0]),)


def test_laboratories_differ_by_what_versions_of_their_scripts_do_not_show():
    """Four versions of five folds are predicted by each other; each whole laboratory is e^0.5 away.

    By hand: 0.5² · (1 - 1/5); of two laboratories, Student's law has one degree of freedom.
    """
    assert between_laboratories(laboratories(1.0), several=False) < 0.02
    found = between_laboratories(laboratories(np.exp(0.5)), several=False)
    assert found == pytest.approx(0.5 * np.sqrt(0.8) * students_excess(1.0), rel=0.1)


def test_a_weighted_quantile_counts_weights_not_values():
    parts = (np.array([1.0, 2.0]), np.array([10.0]))
    heavy = (np.array([0.05, 0.05]), np.array([0.9]))
    assert weighted_quantile(parts, heavy, 0.5) == 10.0
    assert weighted_quantile(parts, (np.ones(2), np.ones(1)), 0.5) == 2.0


@pytest.fixture(scope="module")
def groups():
    from tests.research.fits.later import fitted_runs

    return groups_of(fitted_runs(Path(os.environ["RECOMMEND_REFERENCE_DATA"])))


needs_reference = pytest.mark.skipif(
    not os.environ.get("RECOMMEND_REFERENCE_DATA"), reason="needs RECOMMEND_REFERENCE_DATA"
)


@pytest.mark.slow
@pytest.mark.reference
@needs_reference
def test_the_shipped_priors_are_the_fit_of_the_reference_runs(groups):
    for group in groups:
        fitted, shipped = fitted_row(groups, group), load_priors()[group.family, group.stack]
        assert fitted["efficiency"] == pytest.approx(shipped.efficiency, rel=0.01)
        assert fitted["flop_per_byte"] == pytest.approx(shipped.flop_per_byte, rel=0.01)
        assert fitted["sigma_one"] == shipped.sigma_one
        assert fitted["rows"] == shipped.rows


@pytest.mark.reference
@needs_reference
def test_a_source_left_out_is_seen_by_neither_constants_nor_spread(groups):
    """Another laboratory's rates do not move what is predicted for it, nor how surely."""
    name = "NVIDIA DeepLearningExamples"
    left = Left("source", name)
    spoilt = tuple(
        replace(
            g,
            trials=trials_of(
                g.trials.rows.assign(
                    rate=g.trials.rows.rate * np.where(g.trials.rows.source == name, 7.0, 1.0)
                )
            ),
        )
        for g in groups
    )
    for before, after in zip(groups, spoilt, strict=True):
        if before.by == "source":
            out = frozenset((left,))
            assert constants(groups, before, out) == constants(spoilt, after, out)
            assert sigma(groups, before, False, left) == sigma(spoilt, after, False, left)
            shift = one_machine(groups, before, left) - one_machine(spoilt, after, left)
            assert shift == pytest.approx(np.log(7.0))


def test_a_conformal_spread_holds_nine_of_ten_of_what_is_still_to_come():
    """Split conformal prediction: coverage over many draws of 40 and one more is at least 90 %."""
    rng = np.random.default_rng(5)
    hits = []
    for _ in range(2000):
        seen, new = np.abs(rng.normal(0.0, 0.3, 40)), abs(rng.normal(0.0, 0.3))
        hits.append(new <= Z_90 * conformal([seen / Z_90], [np.ones(40)]))
    assert 0.89 < np.mean(hits) < 0.93


def test_a_known_part_of_the_spread_is_taken_off_before_the_rest_is_measured():
    rest = without(np.array([0.3 * Z_90, 0.1]), np.array([0.18, 0.2]))
    assert rest.tolist() == pytest.approx([0.24, 0.0])  # 0.24² + 0.18² = 0.3²
