"""What other networks show of a GPU is found, and carries a timing to it."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recommender.catalogs.schema import Achieved, Gpu
from recommender.performance.priors import KINDS, load_gpu_factors, load_priors
from tests.research.fits import fit_priors
from tests.research.fits.fit_priors import gpu_factor_rows
from tests.research.fits.transfer import Readings, fitted, predicted
from tests.research.fits.transfer import readings as published

FOLDER = os.environ.get("RECOMMEND_REFERENCE_DATA", "")

GPUS = {"slow": (100.0, 1000.0), "middle": (200.0, 2000.0), "fast": (900.0, 4000.0)}
NETWORKS = tuple("abcdefghij")


def readings(true: dict[str, float]) -> pd.DataFrame:
    """Ten networks on three GPUs; each GPU is as much faster than the formula as is said."""
    rows = [
        {
            "source": "laboratory",
            "model": network,
            "setting": "mixed",
            "gpu": gpu,
            "precision": "bf16",
            "formula": tflops * (1 + at),
            "rate": 7.0 * (1 + at) * tflops * true[gpu],
            "tflops": tflops,
            "gb_per_s": memory,
        }
        for at, network in enumerate(NETWORKS)
        for gpu, (tflops, memory) in GPUS.items()
    ]
    return pd.DataFrame(rows)


def factors(true: dict[str, float]) -> dict[str, float]:
    missed = fitted(readings(true))
    return {gpu: missed.factor(gpu, "bf16", "sequence", figures) for gpu, figures in GPUS.items()}


def test_formulas_that_are_right_are_left_alone():
    found = factors(dict.fromkeys(GPUS, 1.0))
    assert list(found.values()) == pytest.approx([1.0] * 3)


def test_what_a_gpu_misses_is_found_up_to_the_belief_that_it_is_nothing():
    found = factors({"slow": 1.0, "middle": 1.0, "fast": 0.7})
    assert 0.68 < found["fast"] / found["slow"] < 0.80


def test_a_gpu_without_runs_takes_the_trend_but_no_more_than_its_end():
    missed = fitted(readings({"slow": 1.2, "middle": 1.0, "fast": 0.8}))
    between = missed.factor("new", "bf16", "cnn", (400.0, 3000.0))
    assert missed.factor("new", "bf16", "cnn", (900.0, 4000.0)) < between < 1.1
    assert missed.factor("new", "bf16", "cnn", (9e9, 9e9)) == missed.factor(
        "new", "bf16", "cnn", (900.0, 4000.0)
    )


def test_a_gpu_that_runs_one_kind_of_network_better_is_credited_for_that_kind_more():
    rows = readings(dict.fromkeys(GPUS, 1.0)).assign(model="ResNet-50 v1.5")
    slower = rows.assign(model="BERT-base", source="other")
    slower["rate"] = slower.rate.where(slower.gpu != "fast", 0.8 * slower.rate)
    missed = fitted(pd.concat([rows, slower], ignore_index=True))
    cnn, sequence, unseen = (
        missed.factor("fast", "bf16", kind, GPUS["fast"]) for kind in ("cnn", "sequence", "recsys")
    )
    assert cnn > unseen > sequence


def test_b200_is_slower_than_its_figures_promise():
    """Its published runs use software that is older than the GPU."""
    found = load_gpu_factors()
    for kind in KINDS:
        b200, h100, a100 = (found[gpu, "bf16", kind] for gpu in ("B200", "H100", "A100"))
        assert b200 < h100 < a100
    assert np.all([0.5 < factor < 1.5 for factor in found.values()])


def test_a_small_batch_runs_at_the_share_of_an_endless_one_that_terms_say():
    """One GPU under two names; eight samples against 64: (8/(8+b0)) / (64/(64+b0))."""
    gpu = Gpu(
        gpu="one", vendor="nvidia", memory_mib=0, memory_gb_per_s=900.0, peak_fp32_tflops=15.0,
        peak_tf32_tflops=None, peak_bf16_tflops=None, peak_fp16_tflops=None, peak_fp8_tflops=None,
        watts=None, released=None, kind="derived", source=0, as_of="",
    )  # fmt: skip
    same = {"source": "laboratory", "model": "BERT-large", "setting": "tf32", "rate": 1.0}
    rows = [same | {"gpu": "one", "batch": 8.0}, same | {"gpu": "two", "batch": 64.0}]
    achieved = {
        (name, "fp32"): Achieved(name, "fp32", 13.0, 13.0, 13.0, "derived", 0, "")
        for name in ("one", "two")
    }
    found = Readings(pd.DataFrame(rows), {"one": gpu, "two": gpu}, achieved)
    prior = load_priors()["encoder", "typical"]
    small, large = predicted(found, {"BERT-large": prior}).formula
    b0 = prior.batch_penalty
    assert small / large == pytest.approx((8 / (8 + b0)) / (64 / (64 + b0)))


@pytest.mark.reference
@pytest.mark.skipif(not FOLDER, reason="needs RECOMMEND_REFERENCE_DATA")
def test_the_shipped_factors_are_the_fit_of_the_laboratory_under_the_shipped_constants():
    shipped = fit_priors.SHIPPED
    found = gpu_factor_rows(published(Path(FOLDER)), pd.read_csv(shipped / "priors.csv"))
    kept = pd.read_csv(shipped / "gpu_factors.csv")
    text = ["gpu", "precision", "kind", "basis", "runs"]
    assert found[text].values.tolist() == kept[text].values.tolist()
    assert found.factor.to_numpy() == pytest.approx(kept.factor.to_numpy(), abs=0.002)


@pytest.mark.reference
@pytest.mark.skipif(not FOLDER, reason="needs RECOMMEND_REFERENCE_DATA")
def test_batches_are_those_of_the_laboratory():
    """V100 16 GB of the first table; H200 of config_v2/config_pytorch_140GB.sh."""
    rows = published(Path(FOLDER)).rows
    assert np.isfinite(rows.batch).all()
    large = rows[(rows.model == "BERT-large") & (rows.setting == "mixed")].set_index("gpu").batch
    assert large["V100-16GB"] == 16
    assert large["H200-SXM"] == 192
    assert set(large["H100-PCIe"]) == {112}
