"""How sure a calibration is of clusters by size: one spread per band of numbers of machines."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recommender.job import Job, Run
from recommender.performance import least_squares as lsq
from recommender.performance.calibration_model import COMPUTE, Model
from recommender.performance.calibration_spread import residual_sd, spans
from recommender.performance.fleet import MachineColumns

Floats = NDArray[np.float64]

DOUBLINGS = 4  # of the most machines that were timed, up to which spans are worked out


def bands(runs: tuple[Run, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Bands of numbers of machines: the most of each, and which stand for it.

    One machine; several, no more than were timed; then one band for every doubling.
    """
    timed = max(2, *(run.machines for run in runs))
    powers = tuple(2**i for i in range(1, timed.bit_length()))
    doubled = (timed * 2**i for i in range(1, DOUBLINGS + 1))
    return ((1, (1,)), (timed, powers), *((n, (n,)) for n in doubled))


def sigmas_of(
    model: Model, fit: lsq.Fit, job: Job, columns: MachineColumns
) -> tuple[tuple[int, float], ...]:
    """Root mean square of the spans of each band of sizes: (most machines, sd).

    Bands in which no timed machine can run the job's batch are left out, but for the first two.
    """
    known = {most: _rms_span(model, fit, job, columns, n) for most, n in bands(model.runs)}
    one, several, *_ = known
    noise = residual_sd(model, fit)
    otherwise = float(np.hypot(noise, np.sqrt(fit.covariance(noise)[COMPUTE, COMPUTE])))
    least = next((span for span in known.values() if span is not None), otherwise)
    known[one] = least if known[one] is None else known[one]
    known[several] = known[one] if known[several] is None else known[several]
    return tuple((most, span) for most, span in known.items() if span is not None)


def _rms_span(
    model: Model, fit: lsq.Fit, job: Job, columns: MachineColumns, sizes: tuple[int, ...]
) -> float | None:
    """Root mean square of the spans of the timed machines in some numbers; None if none can run."""
    runs = whole(model.runs, columns, sizes, job.global_batch)
    with np.errstate(divide="ignore"):
        steps = [Model(job, (run,), columns, model.gpus)(fit.value)[0] for run in runs]
    fine = tuple(run for run, step in zip(runs, steps, strict=True) if np.isfinite(step))
    if not fine:
        return None
    return rms(spans(model, fit, Model(job, fine, columns, model.gpus)))


def rms(values: Floats) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def whole(
    runs: tuple[Run, ...], columns: MachineColumns, sizes: tuple[int, ...], batch: int
) -> tuple[Run, ...]:
    """Clusters of some numbers of each timed machine, whole ones, on the job's batch."""
    return tuple(
        replace(run, gpus=n * each, machines=n, batch=batch)
        for run in {run.machine: run for run in runs}.values()
        for each in [round(float(columns.gpus[columns.names.index(run.machine)]))]
        for n in sizes
    )


def beyond_each(sigmas: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """(n, spread of more than n machines) from the spreads of up to so many."""
    return tuple((n, more) for (n, least), (_, more) in pairwise(sigmas) if more != least)
