"""The fit of the spreads, on errors whose law is known."""

import csv
import io

import numpy as np
import pytest

from recommender.performance.calibration_spread import Beyond
from tests.research.accuracy import fit_spreads
from tests.research.accuracy.extrapolation import Extrapolated


def drawn(
    seed: int, runs: int, source: str, kind: str, links: float, step: float, fold: float = 0.0
) -> Extrapolated:
    """Runs whose time on links is off by a normal ln of sd `links`, the step by `step`.

    And by `fold` for each e-fold of GPUs.
    """
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.0, 0.8, runs) if kind == "inside" else np.zeros(runs)
    true = 1.0 - share + share * np.exp(links * rng.standard_normal(runs))
    away = rng.uniform(0.7, 5.0, runs) if kind != "inside" else np.zeros(runs)
    true *= np.exp(fold * away * rng.standard_normal(runs))
    return Extrapolated(
        labels=("",) * runs,
        source=(source,) * runs,
        predicted=np.ones(runs),
        measured=true * np.exp(step * rng.standard_normal(runs)),
        beyond=Beyond((kind,) * runs, share, away),
        own=np.zeros(runs),
    )


def fitted(*parts: Extrapolated) -> dict[tuple[str, str], float]:
    rows = csv.DictReader(io.StringIO(fit_spreads.table(fit_spreads.joined(parts))))
    return {(row["kind"], row["left_out"]): float(row["sd"]) for row in rows}


def test_both_spreads_are_found_again_from_errors_drawn_with_them():
    sds = fitted(
        drawn(1, 3000, "a", "inside", 0.6, 0.04),
        drawn(2, 3000, "b", "inside", 0.6, 0.04),
    )
    assert sds["links", ""] == pytest.approx(0.6, abs=0.1)
    assert sds["inside", ""] == pytest.approx(0.04, rel=0.5)


def test_the_laboratory_that_distance_costs_most_sets_what_an_e_fold_of_gpus_adds():
    sds = fitted(
        drawn(7, 3000, "a", "machines", 0.0, 0.02, fold=0.06),
        drawn(8, 3000, "b", "machines", 0.0, 0.02, fold=0.02),
        drawn(9, 100, "a", "inside", 0.0, 0.02),
        drawn(10, 100, "b", "inside", 0.0, 0.02),
    )
    assert sds["gpus", ""] == sds["gpus", "b"] == pytest.approx(0.06, rel=0.05)
    assert sds["gpus", "a"] == pytest.approx(0.02, rel=0.2)


def test_what_judges_a_source_has_not_seen_it():
    wild = drawn(4, 500, "wild", "inside", 1.2, 0.1)
    tame = [drawn(seed, 500, name, "inside", 0.2, 0.03) for seed, name in ((5, "a"), (6, "b"))]
    alone, beside = fitted(*tame), fitted(*tame, wild)
    assert beside["links", "wild"] == alone["links", ""]
    assert beside["inside", "wild"] == alone["inside", ""]
    assert beside["links", ""] > alone["links", ""]
