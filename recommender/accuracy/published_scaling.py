"""Scaling of published runs from one that was measured; reads the reference tables.

The split was fixed before any error was looked at. A series is a source, network, software,
precision and GPU; its smallest clusters are known, and each larger cluster is predicted from the
known run of the nearest micro-batch, by the fit behind `recommend calibrate`. Runs on several
machines whose network is not stated are left out. Two numbers of that fit were set with
these rows in view: an overlap of 0 to start from (the best whichever source is left out), and the
usual error of 0.05, at which 90 % of the rows lie in their span.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from recommender.accuracy.published_runs import columns_of, job_of, micro_of, runs_of, series_of
from recommender.accuracy.scaling import joined
from recommender.accuracy.study import Held, Score, Study, Target, score
from recommender.performance.calibration import Model, solve, spans
from recommender.performance.fit.data import runs as published


@dataclass(frozen=True, slots=True)
class Point:
    """What kind of scaling a prediction is."""

    several: bool  # more machines than were measured
    sharded: bool


@cache
def from_smaller(reference: Path) -> tuple[Held, tuple[Point, ...]]:
    """Throughput of every larger cluster from the smallest ones, and what kind each is."""
    parts: list[Held] = []
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


def one_per_gpu(reference: Path) -> Held:
    """One run of each series, the smallest with the largest batch, against all other GPU counts."""
    return joined(
        _held(series, 0, [i for i, row in enumerate(series) if _gpus(row) > _gpus(series[0])])
        for series in _series(reference)
    )


@cache
def _series(reference: Path) -> tuple[tuple[Any, ...], ...]:
    """Series of at least two sizes, smallest clusters first, of these the largest batch."""
    rows = published(reference)
    rows = rows[(rows.nodes == 1) | (rows.network > 0)]
    found: dict[str, list[Any]] = {}
    for name, row in zip(series_of(rows), rows.itertuples(), strict=True):
        found.setdefault(name, []).append(row)
    ordered = [sorted(found[name], key=lambda r: (_gpus(r), -r.batch)) for name in sorted(found)]
    return tuple(tuple(rows) for rows in ordered if _gpus(rows[-1]) > _gpus(rows[0]))


def _gpus(row: Any) -> float:
    return float(row.nodes * row.per_node)


def _held(series: tuple[Any, ...], start: int, unseen: list[int]) -> Held:
    """Calibrate on one run of a series and predict the throughput of others."""
    rows = [series[start], *(series[i] for i in unseen)]
    job = job_of(rows[0])
    (seen, *other), columns = runs_of(rows), columns_of(job, rows)
    model = Model(job, (seen,), columns)
    fit = solve(model, (seen,))
    larger = Model(job, tuple(other), columns, model.gpus)
    batch = np.array([run.batch for run in other])
    return Held(
        labels=tuple(run.place for run in other),
        predicted=batch / np.exp(larger(fit.value)),
        measured=batch / np.array([run.step_s for run in other]),
        sigma=spans(larger, fit),
    )


def _some(held: Held, which: list[bool]) -> Held:
    """The points of a comparison for which something holds."""
    chosen = np.array(which)
    return Held(
        labels=tuple(label for label, keep in zip(held.labels, chosen, strict=True) if keep),
        predicted=held.predicted[chosen],
        measured=held.measured[chosen],
        sigma=None if held.sigma is None else held.sigma[chosen],
    )


def _folder(reference: Path | None) -> Path:
    if reference is None:
        raise ValueError("this study reads the reference tables; name their folder")
    return reference


def _all(reference: Path | None) -> Score:
    return score(from_smaller(_folder(reference))[0])


def _several(reference: Path | None) -> Score:
    held, about = from_smaller(_folder(reference))
    return score(_some(held, [point.several for point in about]))


def _sharded(reference: Path | None) -> Score:
    held, about = from_smaller(_folder(reference))
    return score(_some(held, [point.sharded for point in about]))


def _one_per_gpu(reference: Path | None) -> Score:
    return score(one_per_gpu(_folder(reference)))


_SPLIT = "the smallest cluster of each series is known, larger ones are predicted"
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
        subject="the same, more machines than were measured",
        split=_SPLIT,
        target=Target(mean=12.0),
        published="two-resource roofline 20 %; linear scaling 60 %",
        source=_SOURCE,
        run=_several,
        needs_reference=True,
    ),
    Study(
        key="scaling-fsdp",
        subject="the same, FSDP",
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
        published="Srifty 8 %, Sailor 4.5-6 %, spotDNN 1.8-6.9 %, each on its own runs",
        source=_SOURCE,
        run=_one_per_gpu,
        needs_reference=True,
    ),
)
