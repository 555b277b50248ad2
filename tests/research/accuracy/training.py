"""Published training runs: the speed of machines that nothing was measured on."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from recommender.arrays import Floats
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.splits import Split, check, splits_of
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder
from tests.research.fits.held_out import (
    MIN_RUNS,
    Group,
    Left,
    groups_of,
    held_sd,
    one_machine,
    several_machines,
    sigma,
    unstated_errors_of,
    unstated_sds,
)
from tests.research.fits.later import ROUND, fitted_runs
from tests.research.fits.transfer import gpu_factors

SOURCE = (
    "MLPerf, NVIDIA DeepLearningExamples, Lambda, MosaicML and others: measured/training.csv.gz"
)


@cache
def groups_in(reference: Path) -> tuple[Group, ...]:
    """The published runs of a reference folder, by family and stack."""
    return groups_of(fitted_runs(reference), gpu_factors(reference))


def held(parts: list[tuple[str, Floats, Floats]], spread: float | Floats) -> Held:
    """Predictions from (label, ln errors, measured rates)."""
    errors = np.concatenate([part[1] for part in parts])
    measured = np.concatenate([part[2] for part in parts])
    labels = tuple(label for label, missed, _ in parts for _ in missed)
    return Held(labels, measured * np.exp(errors), measured, np.broadcast_to(spread, errors.shape))


def known_stack(reference: Path | None) -> Held:
    """One machine, nothing measured, the stack known: samples/s of one GPU."""
    groups = groups_in(reference_folder(reference, *RUNS))
    parts, spreads = [], []
    for split in splits_of("one-known"):
        group, left = _group(groups, split.family, split.stack), _left(split)
        parts.append(_part(split, one_machine(groups, group, left), group.trials.rows))
        spreads.append(held_sd(sigma(groups, group, False, left), group, False, left))
    return held(parts, np.concatenate(spreads))


def unstated_stack(reference: Path | None) -> Held:
    """The same where the job does not say its stack: between scripts and recipes."""
    groups = groups_in(reference_folder(reference, *RUNS))
    parts, spreads = [], []
    for split in splits_of("one-unknown"):
        left = _left(split)
        errors = unstated_errors_of(groups, split.family, left)
        both = [g.trials.rows for g in groups if g.family == split.family]
        parts.append(_part(split, errors, pd.concat(both)))
        spreads.append(unstated_sds(groups, split.family, left))
    return held(parts, np.concatenate(spreads))


def several(reference: Path | None) -> Held:
    """Several machines, nothing measured, the stack known."""
    groups = groups_in(reference_folder(reference, *RUNS))
    parts, spreads = [], []
    for split in splits_of("several-known"):
        group, left = _group(groups, split.family, split.stack), _left(split)
        parts.append(_part(split, several_machines(groups, group, left), group.many))
        spreads.append(held_sd(sigma(groups, group, True, left), group, True, left))
    return held(parts, np.concatenate(spreads))


def other_laboratory(reference: Path | None) -> Held:
    """One machine, the whole laboratory left out, where others have 20 runs of the family.

    MLPerf v3.1 may only be fitted on (`later_splits.csv`).
    """
    groups = groups_in(reference_folder(reference, *RUNS))
    parts, spreads = [], []
    for group in groups:
        rows = group.trials.rows
        for name in rows.laboratory.unique():
            left = Left("laboratory", str(name))
            if left.keeps(rows).sum() >= MIN_RUNS:
                judged = np.asarray(rows.source[~left.keeps(rows)] != ROUND)
                errors = one_machine(groups, group, left)[judged]
                spread = held_sd(sigma(groups, group, False, left), group, False, left)
                parts.append((str(name), errors, _rates(rows, left)[judged]))
                spreads.append(spread[judged])
    return held(parts, np.concatenate(spreads))


def _group(groups: tuple[Group, ...], family: str, stack: str) -> Group:
    return next(g for g in groups if (g.family, g.stack) == (family, stack))


def _left(split: Split) -> Left:
    return Left(split.left_out_by, split.left_out)


def _part(split: Split, errors: Floats, rows: pd.DataFrame) -> tuple[str, Floats, Floats]:
    """Label, ln errors and measured rates of one split; its size must be the frozen one."""
    check(split, len(errors))
    return split.left_out, errors, _rates(rows, _left(split))


def _rates(rows: pd.DataFrame, left: Left) -> Floats:
    return np.asarray(rows.rate[~left.keeps(rows)], dtype=np.float64)


def _scored_known(reference: Path | None) -> Score:
    return score(known_stack(reference))


def _scored_unstated(reference: Path | None) -> Score:
    return score(unstated_stack(reference))


def _scored_several(reference: Path | None) -> Score:
    return score(several(reference))


def _scored_laboratory(reference: Path | None) -> Score:
    return score(other_laboratory(reference))


STUDIES: tuple[Study, ...] = (
    Study(
        "training-one",
        "speed of one machine, nothing measured, stack known",
        "one source left out (of LLMs and encoder-decoders, one GPU)",
        Target(mean=25.0, median=15.0),
        "two-resource roofline 36.1, median 20.7 %; constant MFU 56.8, 35.9 %",
        SOURCE,
        _scored_known,
        needs_reference=True,
    ),
    Study(
        "training-one-unstated",
        "speed of one machine, nothing measured, stack not stated (CNNs and encoders)",
        "one source left out",
        Target(mean=33.0, median=19.0),
        "two-resource roofline 36.1, median 20.7 %",
        SOURCE,
        _scored_unstated,
        needs_reference=True,
    ),
    Study(
        "training-several",
        "speed of several machines, nothing measured",
        "one source left out (of LLMs and encoder-decoders, one GPU), overlap too",
        Target(mean=18.0, median=14.0),
        "two-resource roofline 25.1, median 20.8 %",
        SOURCE,
        _scored_several,
        needs_reference=True,
    ),
    Study(
        "training-laboratory",
        "speed of one machine in a laboratory never seen, nothing measured, stack known",
        "one laboratory left out with all its versions, where another has 20 runs",
        Target(mean=20.0, median=14.0),
        "none",
        SOURCE,
        _scored_laboratory,
        needs_reference=True,
    ),
)
