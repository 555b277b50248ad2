"""A timing on one GPU, carried to another: one network left out of everything."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from recommender.arrays import Z_90, Floats
from recommender.performance.speed_spread import SIGMA_MEASURED, generations_apart
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.splits import check, splits_of
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder
from tests.research.accuracy.training import groups_in
from tests.research.fits.held_out import Left
from tests.research.fits.transfer import LABORATORY_NAMES, left_out_model, readings

# Sds that are tried, within a generation and for each more
SAMES = tuple(np.round(np.arange(0.02, 0.30, 0.01), 2).tolist())
EACHES = tuple(np.round(np.arange(0.0, 0.20, 0.01), 2).tolist())
CATALOG = {name: gpu for gpu, name in LABORATORY_NAMES.items()} | {
    "A100-80GB-SXM": "A100-80GB",
    "A100-40GB-PCIe": "A100",
    "V100-16GB": "V100",
}
SERIES = ["source", "model", "setting"]  # runs of one network with the same scripts
SOURCE = "Lambda deeplearning-benchmark, ten networks on ten GPUs: training.csv.gz"
PUBLISHED = "geometric-mean score 10-13 %, Habitat 11.8 (mean), ratio of TFLOPS 22-29 %"


@cache
def predictions(reference: Path) -> tuple[pd.DataFrame, ...]:
    """Every network's speed on every GPU, predicted without it; one table per split."""
    groups, found = groups_in(reference), readings(reference)
    return tuple(
        left_out_model(found, groups, Left("model", s.left_out)) for s in splits_of("other-gpu")
    )


def pairs(one: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """ln ratio of every GPU to every other one of its series, predicted and measured.

    And how many generations lie between them.
    """
    said: list[Floats] = []
    true: list[Floats] = []
    between: list[Floats] = []
    for _, alike in one.groupby(SERIES):
        apart = ~np.eye(len(alike), dtype=bool)
        names = [CATALOG.get(gpu, gpu) for gpu in alike.gpu]
        far = [[generations_apart(gpu, (other,)) for other in names] for gpu in names]
        between.append(np.array(far, dtype=np.float64)[apart])
        for found, column in ((said, alike.score), (true, alike.rate)):
            speed = np.log(np.asarray(column, dtype=np.float64))
            found.append((speed[None, :] - speed[:, None])[apart])
    return np.concatenate(said), np.concatenate(true), np.concatenate(between)


def from_one_timing(reference: Path | None) -> Held:
    """The ratio of speeds between two GPUs, both ways round.

    The spread of a network follows from all others, joined by what a timing itself is known to.
    """
    tables = predictions(reference_folder(reference, *RUNS))
    found = [pairs(one) for one in tables]
    missed = [np.abs(said - true) for said, true, _ in found]
    labels: list[str] = []
    sigmas = []
    for at, split in enumerate(splits_of("other-gpu")):
        check(split, len(missed[at]))
        same, each = fitted_spread([pair for i, pair in enumerate(found) if i != at])
        labels += [split.left_out] * len(missed[at])
        related = np.sqrt(same**2 + each**2 * found[at][2])
        sigmas.append(np.hypot(related, SIGMA_MEASURED))
    said, true = (np.exp(np.concatenate([pair[i] for pair in found])) for i in (0, 1))
    return Held(tuple(labels), said, true, np.concatenate(sigmas))


def fitted_spread(found: Sequence[tuple[Floats, Floats, Floats]]) -> tuple[float, float]:
    """The sd within a generation and what each more adds, of least loss of a 90 % quantile.

    Every network weighs the square root of its pairs.
    """
    missed = np.concatenate([np.abs(said - true) for said, true, _ in found])
    between = np.concatenate([far for _, _, far in found])
    weight = np.concatenate([np.full(len(far), len(far) ** -0.5) for _, _, far in found])

    def lost(same: float, each: float) -> float:
        over = missed - Z_90 * np.sqrt(same**2 + each**2 * between)
        return float(weight @ np.where(over > 0, 0.9 * over, -0.1 * over))

    return min(product(SAMES, EACHES), key=lambda tried: lost(*tried))


def _scored_timing(reference: Path | None) -> Score:
    return score(from_one_timing(reference))


def _scored_rank(reference: Path | None) -> Score:
    """The share of GPU pairs in the wrong order, in %; no other figure of it means anything."""
    held = from_one_timing(reference)
    wrong = 100.0 * float(
        (np.sign(np.log(held.predicted)) != np.sign(np.log(held.measured))).mean()
    )
    return Score(len(held.labels) // 2, wrong, None, None, None)


STUDIES: tuple[Study, ...] = (
    Study(
        "training-other-gpu",
        "speed from one measured run on another GPU",
        "one network left out",
        Target(mean=12.0, median=8.0),
        PUBLISHED,
        SOURCE,
        _scored_timing,
        needs_reference=True,
    ),
    Study(
        "training-gpu-rank",
        "share of GPU pairs in the wrong order",
        "one network left out",
        Target(mean=2.5),
        "2.5 % in sample (geometric-mean score)",
        SOURCE,
        _scored_rank,
        needs_reference=True,
    ),
)
