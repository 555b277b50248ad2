"""Runs that were published after the fits: what counts, and what their sources say elsewhere."""

import os
from pathlib import Path

import numpy as np
import pytest

from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.speed_spread import LONG_RUN
from tests.research.accuracy.later_runs import counted_runs, is_known, later_runs, networks
from tests.research.accuracy.tables import table
from tests.research.accuracy.whole_runs import fitted_sd, goodput, hours, job_of
from tests.shipped import snapshot

REFERENCE = os.environ.get("RECOMMEND_REFERENCE_DATA")


@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_rows_that_judge_are_in_no_fit():
    runs = later_runs(Path(str(REFERENCE)))
    fitted = {(r.model, r.gpu_canon, r.gpus, r.samples_per_s) for r in runs if r.use == "fit"}
    judged = [r for r in runs if r.use == "judged"]
    assert len(judged) == 176
    assert not fitted & {(r.model, r.gpu_canon, r.gpus, r.samples_per_s) for r in judged}
    assert all(is_known(r) for r in judged if r.machines == 1)


@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_hiveminds_rates_include_the_work_of_the_gpu():
    """An A10 multiplies 75 TFLOP/s; what its host launches looks like 60 of a WideResNet.

    Two networks of the first day that wait for the same loader run at the same rate.
    """
    runs = [r for r in later_runs(Path(str(REFERENCE))) if r.source.startswith("cirquit")]
    flop = {name: float(row["flop_per_sample"]) for name, row in networks().items()}
    assert len(runs) == len(counted_runs()) == 26
    assert max(r.samples_per_s / r.gpus * flop[r.model] for r in runs) < 0.45 * 75e12
    small, large = (
        min(r.samples_per_s for r in runs if r.model == name) for name in ("ResNet-18", "ResNet-50")
    )
    assert small == pytest.approx(large, rel=0.05)


@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_hopper_runs_nvidias_bert_in_eight_bits_and_its_resnet_in_sixteen():
    for run in later_runs(Path(str(REFERENCE))):
        if run.gpu_canon == "H100-SXM" and run.model in ("MLPerf bert", "MLPerf resnet"):
            assert run.fp8 is (run.model == "MLPerf bert")


@pytest.mark.skipif(not REFERENCE, reason="needs RECOMMEND_REFERENCE_DATA")
def test_a_run_in_deepspeed_is_a_script_and_a_third_as_fast_as_nvidias_recipe():
    runs = [r for r in later_runs(Path(str(REFERENCE))) if r.model == "MLPerf llama2_70b_lora"]
    assert sum(r.stack == "typical" for r in runs) == 3
    eight = [r for r in runs if r.gpu_canon == "H100-SXM" and r.gpus == 8]
    (script,) = (r.samples_per_s for r in eight if r.stack == "typical" and not r.fp8)
    (recipe,) = (r.samples_per_s for r in eight if r.submitter == "NVIDIA" and r.fp8)
    assert script / recipe == pytest.approx(1 / 3, abs=0.05)


def test_flop_of_a_lora_sample_are_four_of_six_and_attention():
    """MLPerf's Llama 2 70B: 8,192 tokens, 68.7 B multiplied parameters, 80 layers 8,192 wide."""
    expected = 4 * 68.7e9 * 8192 + 6 * 8192 * 80 * 8192**2
    found = float(networks()["MLPerf llama2_70b_lora"]["flop_per_sample"])
    assert found == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(
    ("run", "days"),
    [("OPT-175B", 34.0), ("Llama 65B", 21.0), ("GPT-2 1558M in llm.c", 1.0), ("BLOOM 176B", 117.5)],
)
def test_published_hours_agree_with_the_days_that_authors_state(run, days):
    """BLOOM: 1,082,990 hours are 117.5 days; its diary says March 11 to July 6, 2022."""
    row = next(row for row in table("whole_runs") if row["run"] == run)
    assert float(row["gpu_hours"]) == pytest.approx(float(row["gpus"]) * 24.0 * days, rel=0.02)


def test_no_run_reaches_the_peak_of_its_gpus():
    peaks = {"A100": 312e12, "A100-80GB": 312e12, "H100": 989e12}
    for row in table("whole_runs"):
        mfu = job_of(row).total_flop / (float(row["gpu_hours"]) * 3600.0 * peaks[row["gpu"]])
        assert 0.1 < mfu < 0.6, row["run"]


def test_faults_leave_llama_405b_nine_tenths_of_its_time():
    """ "A higher than 90 % effective training time" on 16,384 H100 (arXiv 2407.21783, 3.3.4)."""
    row = next(row for row in table("whole_runs") if row["run"] == "Llama 3.1 405B")
    job, machine = job_of(row), snapshot().instance_types["aws", "p5.48xlarge"]
    columns = machine_columns(job, (machine,), snapshot().gpus, snapshot().achieved)
    shares = [goodput(job, clusters_of(columns, np.array([[n]])), 400.0) for n in (16, 256, 2048)]
    assert 0.9 < shares[2] < 0.96 < shares[1] < shares[0] < 1.0


def test_the_spread_of_long_runs_that_ships_is_that_of_the_published_ones():
    assert round(fitted_sd(hours()), 2) == LONG_RUN
