"""How far a calibrated model is off, by how far a prediction lies from what was timed.

sd² = base² + excess² + g'Cg: the base of the kind of step beyond the runs (from held-out runs
of others, `calibration_spreads.csv`), what the job's own runs miss beyond the usual, and the
constants that no run taught.
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from recommender.job import Run
from recommender.performance import least_squares as lsq
from recommender.performance.calibration_model import FARTHEST, LINKS, USUAL, Model
from recommender.performance.fleet import STRATEGIES

Floats = NDArray[np.float64]

USUAL_ROWS = 4.0  # as many runs as the usual error counts
SEEN = 0.03  # share of a step from which the links inside a machine are said to be in use
FILE = "calibration_spreads.csv"
REPLICATED = np.array([sharding == "ddp" for sharding, _ in STRATEGIES] + [False])  # last: cut


@cache
def bases(left_out: str = "") -> Mapping[str, float]:
    """Sd of ln(true / predicted) of each kind of extrapolation, beside what the fit itself says.

    `inside`: no more machines than were timed, links hardly in use; `links`: more GPUs of one
    machine than were timed, and links in use; `machines`: more machines, every GPU with the
    whole network; `sharded`: more machines, weights cut. `left_out` names a source of
    measurements that they have not seen; accuracy studies ask for that.
    """
    text = files("recommender.performance").joinpath(FILE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {row["kind"]: float(row["sd"]) for row in rows if row["left_out"] == left_out}


def kinds_of(model: Model, fit: lsq.Fit, timed: tuple[Run, ...]) -> tuple[str, ...]:
    """The kind of extrapolation of every run of a model from the runs that were timed."""
    steps = model.steps(fit.value)
    way, best = steps.argmin(axis=0), steps.min(axis=0)
    quick = fit.value.copy()
    quick[LINKS] = FARTHEST
    in_use = model.steps(quick).min(axis=0) < (1.0 - SEEN) * best
    most = max(run.machines for run in timed)
    widest = max(run.gpus / run.machines for run in timed)
    found = []
    for i, run in enumerate(model.runs):
        if run.machines > most:
            found.append("machines" if REPLICATED[way[i]] else "sharded")
        else:
            wider = run.gpus / run.machines > widest
            found.append("links" if wider and in_use[i] else "inside")
    return tuple(found)


def residual_sd(model: Model, fit: lsq.Fit) -> float:
    """Sd of ln(run / model) where the model is used: of the residuals and what is usual."""
    free = _freedom(model, fit)
    return float(np.sqrt((np.sum(fit.residual**2) + USUAL_ROWS * USUAL**2) / free))


def own_spread(model: Model, fit: lsq.Fit, to: Model) -> Floats:
    """Sd of ln(true / predicted) of other runs that the fit to `model` itself tells of; (runs,).

    What the residuals are beyond the usual is known from few runs: it counts by Student's law.
    """
    noise = residual_sd(model, fit)
    excess = lsq.students_excess(_freedom(model, fit)) * np.sqrt(max(noise**2 - USUAL**2, 0.0))
    return np.asarray(np.hypot(excess, lsq.spread(to, fit, noise)))


def spans(model: Model, fit: lsq.Fit, to: Model) -> Floats:
    """Sd of ln(true / predicted step) of other runs after a fit to a model's own; (runs,)."""
    base = bases()
    each = np.array([base[kind] for kind in kinds_of(to, fit, model.runs)])
    return np.asarray(np.hypot(each, own_spread(model, fit, to)))


def _freedom(model: Model, fit: lsq.Fit) -> float:
    """Runs behind the residuals' spread that the priors, not the runs, determine of the fit."""
    return USUAL_ROWS + max(len(fit.residual) - fit.taught(model.spread.noise), 0.0)
