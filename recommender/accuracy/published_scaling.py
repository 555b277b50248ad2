"""Scaling of published runs from one that was measured; reads the reference tables.

The split was fixed before any error was looked at. A series is a source, network, software,
precision and GPU; its smallest clusters are known, and each larger cluster is predicted from the
known run of the nearest micro-batch, by the fit behind `recommend calibrate`. Runs on several
machines whose network is not stated are left out. Two numbers of that fit were set with
these rows in view: an overlap of 0 to start from (the best whichever source is left out), and the
usual error of 0.05, at which 90 % of the rows lie in their span.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from recommender.accuracy.published_runs import columns_of, job_of, micro_of, runs_of, series_of
from recommender.accuracy.scaling import joined
from recommender.accuracy.study import Held, Score, Study, Target, score
from recommender.job import Run
from recommender.performance.calibration import Model, solve, spans
from recommender.performance.fit.data import runs as published


@cache
def from_smaller(reference: Path) -> tuple[Held, pd.DataFrame]:
    """Throughput of every larger cluster, and a row about each: several machines, sharded."""
    rows = published(reference)
    rows = rows[(rows.nodes == 1) | (rows.network > 0)]
    rows = rows.assign(gpus=rows.nodes * rows.per_node)
    parts, about = [], []
    for _, series in rows.groupby(series_of(rows), sort=True):
        for held, unseen, known in _series(series):
            parts.append(held)
            about.append(unseen.assign(several=unseen.nodes > known))
    return joined(parts), pd.concat(about, ignore_index=True)


def one_per_gpu(reference: Path) -> Held:
    """One run of each series, the smallest with the largest batch, against all other GPU counts."""
    rows = published(reference)
    rows = rows[(rows.nodes == 1) | (rows.network > 0)]
    rows = rows.assign(gpus=rows.nodes * rows.per_node)
    parts = []
    for _, series in rows.groupby(series_of(rows), sort=True):
        ordered = series.sort_values(["gpus", "batch"], ascending=[True, False], kind="stable")
        other = np.flatnonzero(ordered.gpus > ordered.gpus.iloc[0])
        if len(other):
            parts.append(_held(ordered, 0, other))
    return joined(parts)


def _series(series: pd.DataFrame) -> Iterator[tuple[Held, pd.DataFrame, float]]:
    """Each known run of a series with the larger clusters that are predicted from it."""
    ordered = series.sort_values(["gpus", "batch"], ascending=[True, False], kind="stable")
    known = np.flatnonzero(ordered.gpus == ordered.gpus.iloc[0])
    micro = np.log([micro_of(row) for row in ordered.itertuples()])
    nearest = known[np.abs(micro[known][:, None] - micro[None]).argmin(axis=0)]
    for start in known:
        unseen = np.flatnonzero((nearest == start) & (ordered.gpus > ordered.gpus.iloc[0]))
        if len(unseen):
            held = _held(ordered, int(start), unseen)
            yield held, ordered.iloc[unseen], float(ordered.nodes.iloc[start])


def _held(
    rows: pd.DataFrame, start: int, unseen: "np.ndarray[tuple[int], np.dtype[np.intp]]"
) -> Held:
    job = job_of(next(rows.itertuples()))
    runs, columns = runs_of(rows), columns_of(job, rows)
    seen: tuple[Run, ...] = (runs[start],)
    other = tuple(runs[i] for i in unseen)
    model = Model(job, seen, columns)
    fit = solve(model, seen)
    larger = Model(job, other, columns, model.gpus)
    batch = np.array([run.batch for run in other])
    return Held(
        labels=tuple(run.place for run in other),
        predicted=batch / np.exp(larger(fit.value)),
        measured=batch / np.array([run.step_s for run in other]),
        sigma=spans(larger, fit),
    )


def _some(held: Held, which: "pd.Series[bool]") -> Held:
    """The points of a comparison for which something holds."""
    chosen = which.to_numpy()
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
    return score(_some(held, about.several))


def _sharded(reference: Path | None) -> Score:
    held, about = from_smaller(_folder(reference))
    return score(_some(held, about.sharded))


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
