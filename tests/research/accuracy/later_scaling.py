"""Larger clusters from one smaller run, on runs published after the constants were fitted.

A series is one submitter's runs of one network in one round, on one GPU in one precision. Its
smallest cluster is measured, and each larger one predicted from it as `recommend calibrate` would;
how far that reaches is told by the ratio of GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from recommender.job.job import TimedRun
from recommender.performance.calibration_model import StepModel, solve
from recommender.performance.machines import machine_columns
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.extrapolation import Extrapolated, extrapolated, joined
from tests.research.accuracy.later_runs import (
    LATER,
    LaterRun,
    is_known,
    is_large,
    job_of,
    later_runs,
    machine_of,
)
from tests.research.accuracy.study import Study, score
from tests.research.accuracy.tables import reference_folder
from tests.shipped import snapshot

DISTANCES = (("2", 1.0, 2.0), ("8", 2.0, 8.0), ("32", 8.0, 32.0), ("beyond", 32.0, np.inf))


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a prediction lies beyond the run that was measured."""

    gpus: float  # times as many
    use: str  # "fit" or "judged", of the run that is predicted


@cache
def from_smallest(reference: Path) -> tuple[Extrapolated, tuple[Reach, ...]]:
    """Every larger cluster of every series from the smallest one."""
    parts, reach = [], []
    for series in _series(reference):
        first, *more = series
        parts.append(_held(first, more))
        reach += [Reach(run.gpus / first.gpus, run.use) for run in more]
    return joined(parts), tuple(reach)


def fitted_on(reference: Path) -> Extrapolated:
    """Those on which spreads may be fitted; they are of the same laboratory as older rounds."""
    found, reach = from_smallest(reference)
    kept = found.take(i for i, each in enumerate(reach) if each.use == "fit")
    return replace(kept, source=("MLPerf",) * len(kept.source))


def _series(reference: Path) -> Iterator[list[LaterRun]]:
    found: dict[tuple[object, ...], list[LaterRun]] = {}
    for run in later_runs(reference):
        whole = run.batch >= run.gpus or is_large(run)
        if is_known(run) and whole and not run.tensor:
            key = run.source, run.submitter, run.model, run.gpu_canon, run.fp8
            found.setdefault(key, []).append(run)
    for series in found.values():
        ordered = sorted(series, key=lambda run: (run.gpus, -run.batch))
        kept = [run for run in ordered if run.gpus > ordered[0].gpus]
        if kept:
            yield [ordered[0], *kept]


def _held(first: LaterRun, more: list[LaterRun]) -> Extrapolated:
    """Calibrate on one run of a series and predict others, samples/s of the cluster."""
    every, catalog = [first, *more], snapshot()
    job = job_of(first)
    machines = tuple(
        replace(machine_of(run, job_of(run)), instance_type=f"run{i}")
        for i, run in enumerate(every)
    )
    columns = machine_columns(job, machines, catalog.gpus, catalog.achieved)
    timed = tuple(
        _timed(run, machine.gpu, i)
        for i, (run, machine) in enumerate(zip(every, machines, strict=True))
    )
    model = StepModel(job, timed[:1], columns)
    larger = StepModel(job, timed[1:], columns, model.gpus)
    steps = extrapolated(model, solve(model), larger, timed[1:], first.source, first.model)
    batch = np.array([run.batch for run in more], dtype=np.float64)
    return replace(steps, predicted=batch / steps.predicted, measured=batch / steps.measured)


def _timed(run: LaterRun, gpu: str, place: int) -> TimedRun:
    return TimedRun(
        place=run.label,
        machine=f"own/run{place}",
        gpu=gpu,
        gpus=run.gpus,
        machines=run.machines,
        batch=run.batch,
        step_s=run.batch / run.samples_per_s,
    )


def _score(above: float, most: float, reference: Path | None) -> Score:
    found, reach = from_smallest(reference_folder(reference, LATER))
    judged = (i for i, r in enumerate(reach) if r.use == "judged" and above < r.gpus <= most)
    return score(found.take(judged).held())


_TARGETS = {"2": 7.0, "8": 12.0, "32": 18.0, "beyond": 25.0}
STUDIES: tuple[Study, ...] = tuple(
    Study(
        key=f"later-scaling-{name}",
        subject=f"later runs on {said} the GPUs of one measured run",
        split="the smallest cluster of each submitter's series is known; v4.0 judges",
        target=Target(mean=_TARGETS[name]),
        published="8, -, 36 and 37 % as filed, on these runs and others",
        source="MLPerf Training v4.0: measured/training2.csv.gz",
        run=partial(_score, above, most),
        needs_reference=True,
    )
    for (name, above, most), said in zip(
        DISTANCES, ("up to 2 ×", "3 to 8 ×", "9 to 32 ×", "more than 32 ×"), strict=True
    )
)
