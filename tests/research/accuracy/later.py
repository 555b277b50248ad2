"""Speed with nothing measured, on runs published after the constants were fitted.

Rows that judge (`later_runs.py`); what may be fitted on is left out. Pictures of which there is
less than one for each GPU are divided among GPUs, which the recommender does not plan: they count
as not predicted, as does a network between machines that its source does not describe.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.later_runs import (
    LATER,
    LaterRun,
    is_known,
    is_large,
    later_runs,
    layout_as_stated,
    predicted,
    predicted_unstated,
)
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import reference_folder


def judged(reference: Path) -> tuple[LaterRun, ...]:
    """The runs that judge and can be predicted."""
    runs = (run for run in later_runs(reference) if run.use == "judged" and is_known(run))
    return tuple(run for run in runs if run.tensor or run.batch >= run.gpus or is_large(run))


def held(runs: Iterable[LaterRun], stated: bool = True) -> Held:
    """Predictions next to what was measured, samples/s of the cluster.

    If the stack is not `stated`, runs are predicted as the recommender does by default. Those that
    typical scripts could not make (fewer samples than GPUs) count as not predicted.
    """
    each = tuple(runs)
    if stated:
        found = [layout_as_stated(run) if run.tensor else predicted(run) for run in each]
    else:
        both = [(run, predicted_unstated(run)) for run in each if not run.tensor]
        each, found = zip(*(pair for pair in both if pair[1][0] > 0), strict=True)
    rate, sigma = np.array(found).T
    measured = np.array([run.samples_per_s for run in each])
    return Held(tuple(run.label for run in each), rate, measured, sigma)


def _several(run: LaterRun) -> bool:
    return run.machines > 1


def _unstated(reference: Path | None) -> Score:
    return score(held(judged(reference_folder(reference, LATER)), stated=False))


def _score(chosen: Callable[[LaterRun], bool], reference: Path | None) -> Score:
    folder = reference_folder(reference, LATER)
    return score(held(run for run in judged(folder) if chosen(run)))


def _plain(several: bool, run: LaterRun) -> bool:
    return not run.tensor and not run.fp8 and _several(run) is several


def _in_fp8(several: bool, run: LaterRun) -> bool:
    return run.fp8 and _several(run) is several


_BEFORE = "this recommender before, on the same runs: "
_ASKED: tuple[tuple[str, str, Target, str, Callable[[LaterRun], bool]], ...] = (
    (
        "later-one",
        "later runs on one machine in 16 bits, nothing measured, stack known",
        Target(mean=20.0, median=14.0),
        _BEFORE + "36.1, 35.1 %",
        partial(_plain, False),
    ),
    (
        "later-several",
        "later runs on several machines in 16 bits, nothing measured, stack known",
        Target(mean=16.0, median=12.0),
        _BEFORE + "43.2, 49.1 %",
        partial(_plain, True),
    ),
    (
        "later-fp8-one",
        "later runs on one machine in FP8, nothing measured",
        Target(mean=20.0, bias=8.0),
        _BEFORE + "23.3, 29.9 %",
        partial(_in_fp8, False),
    ),
    (
        "later-fp8-several",
        "later runs on several machines in FP8, nothing measured",
        Target(mean=20.0, bias=8.0),
        _BEFORE + "27.6, 17.4 %",
        partial(_in_fp8, True),
    ),
    (
        "later-model-parallel",
        "OPT of 350 M in tensor and pipeline parallelism on GH200, nothing measured",
        Target(mean=25.0),
        "81 % as filed, on these runs and others",
        lambda run: run.tensor > 0,
    ),
)
STUDIES: tuple[Study, ...] = tuple(
    Study(
        key=key,
        subject=subject,
        split="nothing fitted on these runs; rules and rows frozen before the first was predicted",
        target=target,
        published=published,
        source="MLPerf Training v4.0, hivemind multi-cloud, sailor: measured/training2.csv.gz",
        run=partial(_score, chosen),
        needs_reference=True,
    )
    for key, subject, target, published, chosen in _ASKED
) + (
    Study(
        key="later-unstated",
        subject="later runs on one and several machines, nothing measured, stack not stated",
        split="nothing fitted on these runs",
        target=Target(),
        published="none known",
        source="MLPerf Training v4.0, hivemind multi-cloud: measured/training2.csv.gz",
        run=_unstated,
        needs_reference=True,
    ),
)
