"""How far two laboratories are apart on the same set-up: the floor under any speed model."""

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder
from tests.research.accuracy.training import SOURCE
from tests.research.fits.data import VERSION, precision_of

SAME_TASK = 10.0  # a larger factor means another task or unit under the same name
SETTING = ["network", "gpu_canon", "arithmetic", "nodes", "gpus_per_node", "unit"]
SUFFIX = re.compile(r"^mlperf |\bv\d(\.\d)?\b|\bpytorch\b|[^a-z0-9]")


def between_laboratories(reference: Path | None) -> Held:
    """Each laboratory next to each other one: same network, GPU, precision, machines and unit.

    The best rate of one is what is predicted for the best rate of the other, both ways round.
    """
    path = reference_folder(reference, *RUNS) / "measured" / "training.csv.gz"
    runs = pd.read_csv(path, low_memory=False)
    runs = runs[runs.throughput.gt(0) & runs.gpu_canon.notna()]
    runs = runs.assign(
        network=[SUFFIX.sub("", str(name).lower()) for name in runs.model],
        arithmetic=[precision_of(item) for item in runs.itertuples()],
        laboratory=runs.source.str.replace(VERSION, "", regex=True),
    )
    best = runs.groupby([*SETTING, "laboratory"]).throughput.max().reset_index()
    labels, one, other = [], [], []
    for _, alike in best.groupby(SETTING):
        for i, j in permutations(range(len(alike)), 2):
            first, second = float(alike.throughput.iloc[i]), float(alike.throughput.iloc[j])
            if 1 / SAME_TASK < first / second < SAME_TASK:
                names = alike.laboratory.iloc[i], alike.laboratory.iloc[j]
                labels.append(f"{alike.network.iloc[i]}: {names[0]} for {names[1]}")
                one.append(first)
                other.append(second)
    return Held(tuple(labels), np.array(one), np.array(other))


def _scored(reference: Path | None) -> Score:
    return score(between_laboratories(reference))


STUDIES: tuple[Study, ...] = (
    Study(
        "training-noise",
        "one laboratory's speed taken for another's, same set-up: no model",
        "none: each beside each other one",
        Target(),
        "none",
        SOURCE,
        _scored,
        needs_reference=True,
    ),
)
