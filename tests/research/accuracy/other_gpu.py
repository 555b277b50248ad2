"""A timing on one GPU, carried to another: one network left out of everything."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from recommender.arrays import Z_90, Floats
from recommender.performance.measured import SIGMA_MEASURED
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.splits import check, splits_of
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder
from tests.research.accuracy.training import groups_in
from tests.research.fits.held_out import Left
from tests.research.fits.transfer import left_out_model, readings

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


def pairs(one: pd.DataFrame) -> tuple[Floats, Floats]:
    """ln ratio of every GPU to every other one of its series, predicted and measured."""
    said: list[Floats] = []
    true: list[Floats] = []
    for _, alike in one.groupby(SERIES):
        apart = ~np.eye(len(alike), dtype=bool)
        for found, column in ((said, alike.score), (true, alike.rate)):
            speed = np.log(np.asarray(column, dtype=np.float64))
            found.append((speed[None, :] - speed[:, None])[apart])
    return np.concatenate(said), np.concatenate(true)


def from_one_timing(reference: Path | None) -> Held:
    """The ratio of speeds between two GPUs, both ways round.

    The spread of a network is that of all others, joined by what a timing itself is known to.
    """
    tables = predictions(reference_folder(reference, *RUNS))
    found = [pairs(one) for one in tables]
    missed = [np.abs(said - true) for said, true in found]
    labels: list[str] = []
    sigmas = []
    for at, split in enumerate(splits_of("other-gpu")):
        check(split, len(missed[at]))
        others = np.concatenate([m for i, m in enumerate(missed) if i != at])
        spread = float(np.hypot(np.quantile(others, 0.9) / Z_90, SIGMA_MEASURED))
        labels += [split.left_out] * len(missed[at])
        sigmas.append(np.full(len(missed[at]), spread))
    said, true = (np.exp(np.concatenate([pair[i] for pair in found])) for i in (0, 1))
    return Held(tuple(labels), said, true, np.concatenate(sigmas))


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
