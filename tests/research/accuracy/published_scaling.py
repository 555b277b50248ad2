"""Scaling of published runs from one that was measured; reads the reference tables.

The split was fixed before any error was looked at. A series is a source, network, software,
precision and GPU; its smallest clusters are known, and each larger cluster is predicted from the
known run of the nearest micro-batch, by the fit behind `recommend calibrate`. Runs on several
machines whose network is not stated are left out. One number of that fit was set with
these rows in view: an overlap of 0 to start from (the best whichever source is left out).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from recommender.performance.calibration_model import StepModel, solve
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.extrapolation import Extrapolated, extrapolated, joined
from tests.research.accuracy.published_runs import columns_of, job_of, micro_of, runs_of, series_of
from tests.research.accuracy.study import Study, score
from tests.research.accuracy.tables import RUNS, reference_folder
from tests.research.fits.data import VERSION
from tests.research.fits.data import runs as published


@dataclass(frozen=True, slots=True)
class Point:
    """What kind of scaling a prediction is."""

    several: bool  # more machines than were measured
    sharded: bool


@cache
def from_smaller(reference: Path) -> tuple[Extrapolated, tuple[Point, ...]]:
    """Throughput of every larger cluster from the smallest ones, and what kind each is."""
    parts: list[Extrapolated] = []
    about: list[Point] = []
    for series in _series(reference):
        micro = np.log([micro_of(row) for row in series])
        known = [i for i, row in enumerate(series) if _gpus(row) == _gpus(series[0])]
        apart = np.abs(micro[known][:, None] - micro[None])  # (known, runs)
        nearest = [known[k] for k in apart.argmin(axis=0)]
        for start in known:
            unseen = [i for i in range(len(known), len(series)) if nearest[i] == start]
            if unseen:
                parts.append(_held(series, start, unseen))
                about += [
                    Point(series[i].nodes > series[start].nodes, series[i].sharded) for i in unseen
                ]
    return joined(parts), tuple(about)


def one_per_gpu(reference: Path, by_machine: bool = False) -> Extrapolated:
    """One run of each series, the smallest with the largest batch, against all other GPU counts."""
    return joined(
        _held(series, 0, [i for i, row in enumerate(series) if _gpus(row) > _gpus(series[0])])
        for series in _series(reference, by_machine)
    )


@cache
def _series(reference: Path, by_machine: bool = False) -> tuple[tuple[Any, ...], ...]:
    """Series of at least two sizes, smallest clusters first, of these the largest batch."""
    rows = published(reference)
    rows = rows[(rows.nodes == 1) | (rows.network > 0)]
    found: dict[str, list[Any]] = {}
    for name, row in zip(series_of(rows, by_machine), rows.itertuples(), strict=True):
        found.setdefault(name, []).append(row)
    ordered = [sorted(found[name], key=lambda r: (_gpus(r), -r.batch)) for name in sorted(found)]
    return tuple(tuple(rows) for rows in ordered if _gpus(rows[-1]) > _gpus(rows[0]))


def _gpus(row: Any) -> float:
    return float(row.nodes * row.per_node)


def _held(series: tuple[Any, ...], start: int, unseen: list[int]) -> Extrapolated:
    """Calibrate on one run of a series and predict the throughput of others."""
    rows = [series[start], *(series[i] for i in unseen)]
    job = job_of(rows[0])
    (seen, *other), columns = runs_of(rows), columns_of(job, rows)
    model = StepModel(job, (seen,), columns)
    larger = StepModel(job, tuple(other), columns, model.gpus)
    laboratory = re.sub(VERSION, "", str(rows[0].source))
    network = str(rows[0].model)
    steps = extrapolated(model, solve(model), larger, tuple(other), laboratory, network)
    batch = np.array([run.batch for run in other])
    return replace(steps, predicted=batch / steps.predicted, measured=batch / steps.measured)


def _score(reference: Path | None, chosen: Callable[[Point], bool]) -> Score:
    found, about = from_smaller(reference_folder(reference, *RUNS))
    return score(found.take(i for i, point in enumerate(about) if chosen(point)).held())


def _all(reference: Path | None) -> Score:
    return _score(reference, lambda point: True)


def _several(reference: Path | None) -> Score:
    return _score(reference, lambda point: point.several)


def _sharded(reference: Path | None) -> Score:
    return _score(reference, lambda point: point.sharded)


def _one_per_gpu(by_machine: bool, reference: Path | None) -> Score:
    return score(one_per_gpu(reference_folder(reference, *RUNS), by_machine).held())


_SPLIT = "the smallest cluster of each series is known, larger ones are predicted"
_PUBLISHED = "Srifty 8 %, Sailor 4.5-6 %, spotDNN 1.8-6.9 %, each on its own runs"
_SOURCE = "NVIDIA, MLPerf, Lambda, TensorFlow, MosaicML, torchtitan: training.csv"
STUDIES: tuple[Study, ...] = (
    Study(
        key="scaling-one-run",
        subject="throughput of larger clusters, one and several machines",
        split=_SPLIT,
        target=Target(mean=8.0, median=4.0),
        published="two-resource roofline 12, median 5 %; linear scaling 27, 6 %",
        source=_SOURCE,
        run=_all,
        needs_reference=True,
    ),
    Study(
        key="scaling-several",
        subject="throughput of more machines than were measured",
        split=_SPLIT,
        target=Target(mean=12.0),
        published="two-resource roofline 20 %; linear scaling 60 %",
        source=_SOURCE,
        run=_several,
        needs_reference=True,
    ),
    Study(
        key="scaling-fsdp",
        subject="throughput of larger clusters under FSDP",
        split=_SPLIT,
        target=Target(mean=6.7),
        published="linear scaling 6.7 %",
        source="MosaicML llm-foundry, torchtitan: training.csv",
        run=_sharded,
        needs_reference=True,
    ),
    Study(
        key="one-row-per-gpu",
        subject="throughput at other numbers of GPUs",
        split="one run of each network, software and GPU is known",
        target=Target(mean=6.0),
        published=_PUBLISHED,
        source=_SOURCE,
        run=partial(_one_per_gpu, False),
        needs_reference=True,
    ),
    Study(
        key="one-row-per-machine",
        subject="throughput at other numbers of GPUs of the machine that was timed",
        split="one run of each network, software, GPU and machine is known",
        target=Target(),
        published=_PUBLISHED,
        source=_SOURCE,
        run=partial(_one_per_gpu, True),
        needs_reference=True,
    ),
)
