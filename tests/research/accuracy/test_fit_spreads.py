"""The fit of the spreads, on errors whose law is known."""

import csv
import io

import numpy as np
import pytest

from recommender.arrays import Z_90
from recommender.performance.calibration_spread import Extrapolation
from tests.research.accuracy import fit_spreads
from tests.research.accuracy.extrapolation import Extrapolated, joined


def drawn(
    seed: int, runs: int, source: str, links: float, step: float, fold: float | None = None
) -> Extrapolated:
    """Runs of a network: time on links is off by a normal ln of sd `links`, the step by `step`.

    And on more machines by `fold` for each e-fold of GPUs, one after another.
    """
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.0, 0.8, runs) if fold is None else np.zeros(runs)
    true = 1.0 - share + share * np.exp(links * rng.standard_normal(runs))
    away = np.zeros(runs) if fold is None else rng.uniform(0.7, 5.0, runs)
    true *= np.exp((fold or 0.0) * np.sqrt(away) * rng.standard_normal(runs))
    return Extrapolated(
        labels=("",) * runs,
        source=(source,) * runs,
        network=(str(seed),) * runs,
        predicted=np.ones(runs),
        measured=true * np.exp(step * rng.standard_normal(runs)),
        beyond=Extrapolation(("larger",) * runs, share, away),
        own=np.zeros(runs),
    )


def fitted(*parts: Extrapolated) -> dict[tuple[str, str], float]:
    rows = csv.DictReader(io.StringIO(fit_spreads.table(fit_spreads.joined(parts))))
    return {(row["kind"], row["left_out"]): float(row["sd"]) for row in rows}


def test_both_spreads_are_found_again_from_errors_drawn_with_them():
    sds = fitted(
        drawn(1, 3000, "a", 0.6, 0.04),
        drawn(2, 3000, "b", 0.6, 0.04),
    )
    assert sds["links", ""] == pytest.approx(0.6, abs=0.1)
    assert sds["larger", ""] == pytest.approx(0.04, rel=0.5)


def test_what_distance_adds_is_found_again():
    sds = fitted(
        drawn(7, 3000, "a", 0.0, 0.05, fold=0.06),
        drawn(8, 3000, "b", 0.0, 0.05, fold=0.06),
        drawn(9, 100, "b", 0.0, 0.05),
    )
    assert sds["gpus", ""] == pytest.approx(0.06, abs=0.011)
    assert sds["larger", ""] == pytest.approx(0.05, rel=0.2)


def test_a_distance_of_few_runs_counts_as_much_as_one_of_many():
    """Most runs are near by; nine of ten lie in their span far away as well."""
    near = drawn(11, 3000, "a", 0.0, 0.05, fold=0.06)
    near = near.take(np.flatnonzero(near.beyond.gpus < np.log(8.0)))
    far = drawn(12, 300, "b", 0.0, 0.05, fold=0.06)
    inside = [drawn(13, 100, source, 0.0, 0.05) for source in ("a", "b")]
    found = joined([near, far, *inside])
    sds = {kind: sd for (kind, source), sd in fitted(found).items() if not source}
    away = found.take(np.flatnonzero(found.beyond.gpus > np.log(32.0)))
    missed = np.abs(np.log(away.measured))
    assert (missed < Z_90 * away.beyond.base(sds)).mean() == pytest.approx(0.9, abs=0.05)


def test_a_network_of_many_runs_counts_as_one_of_few():
    many = drawn(14, 3000, "a", 0.0, 0.02)
    few = [drawn(seed, 60, "a", 0.0, 0.1) for seed in range(20, 29)]
    assert fitted(many, *few)["larger", ""] == pytest.approx(0.1, rel=0.15)


def test_what_judges_a_source_has_not_seen_it():
    wild = drawn(4, 500, "wild", 1.2, 0.1)
    tame = [drawn(seed, 500, name, 0.2, 0.03) for seed, name in ((5, "a"), (6, "b"))]
    alone, beside = fitted(*tame), fitted(*tame, wild)
    assert beside["links", "wild"] == alone["links", ""]
    assert beside["larger", "wild"] == alone["larger", ""]
    assert beside["links", ""] > alone["links", ""]
