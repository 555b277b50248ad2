"""The error of a calibrated model, by cluster size and distance from the timed runs.

sd² = (base² + links² + a²·ln R + excess² + g'Cg)·t², of which base, links and a are from held-out
runs of others (`calibration_spreads.csv`):

    base    by the kind of extrapolation (`bases`)
    links   of a machine, if more of its GPUs share them than were timed
    a²·ln R of more machines with R times the most GPUs that were timed, R at least 2
    excess  residuals of the job's own runs beyond the usual
    g'Cg    constants that no run determined
    t       Student's factor of more than 32 times the GPUs, which few networks were timed on
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np

from recommender.arrays import Z_90, Floats
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job, TimedRun
from recommender.performance import least_squares as lsq
from recommender.performance.calibration_model import (
    COMPUTE,
    FARTHEST,
    LINKS,
    NOISE,
    USUAL,
    StepModel,
)
from recommender.performance.clusters import MachineColumns

NEXT_SIZE = 2.0  # times the GPUs that more machines are away at least: a network is new
USUAL_ROWS = 4.0  # as many runs as the usual error counts
FAR = 32.0  # times the GPUs of the largest timed run
# On more than `FAR` times as many ran BERT, ResNet-50 and RetinaNet (MLPerf), BERT-large and BART
# (NVIDIA DeepLearningExamples): 78 clusters of five networks (2026-11).
FAR_NETWORKS = 5
FILE = "calibration_spreads.csv"
DOUBLINGS = 7  # of the most machines that were timed, up to which spans are worked out


@cache
def bases(left_out: str = "") -> Mapping[str, float]:
    """Sd of ln(true / predicted) of each kind of extrapolation, in addition to that of the fit.

    `timed`: no more GPUs of a machine, and no more machines; `network`: more machines, and the runs
    used the network between them; `larger`: any other larger cluster. `links` is the sd of
    ln(true / predicted) of the time on the links of a machine if more of its GPUs share them than
    were timed; `gpus` is the sd that more machines add for the first e-fold of GPUs. `left_out`
    names a source of measurements that is held out, for accuracy studies. A source that no fit has
    used is always held out.
    """
    text = files("recommender.performance").joinpath(FILE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["left_out"], {"timed": NOISE})[row["kind"]] = float(row["sd"])
    return found.get(left_out, found[""])


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """How far some runs are from those that were timed."""

    kind: tuple[str, ...]  # of `bases`; (runs,)
    links: Floats  # share of the step on links that fewer GPUs of the machine were timed on
    gpus: Floats  # ln of GPUs over the most that were timed; 0 on no more machines

    @property
    def widened(self) -> Floats:
        """Student's factor of the whole sd, as few networks were timed on so many GPUs; (runs,)."""
        far = self.gpus > np.log(FAR) * (1.0 + 1e-9)
        return np.where(far, lsq.students_excess(FAR_NETWORKS - 1.0), 1.0)

    def base(self, sds: Mapping[str, float]) -> Floats:
        """Sd of ln(true / predicted) in addition to that of the fit; (runs,)."""
        alone = np.array([sds[kind] for kind in self.kind])
        return np.asarray(np.hypot(alone, self.added(sds)))

    def added(self, sds: Mapping[str, float]) -> Floats:
        """The sd that links and distance add to the base; (runs,)."""
        far = sds["gpus"] * np.sqrt(self.gpus)
        return np.asarray(np.hypot(links_sd(self.links, sds["links"]), far))


def links_sd(share: Floats, sd: float) -> Floats:
    """Sd of ln step whose upper end is that of the time on the links; (runs,).

    A step T with the share c on links takes T·(1 + c·(q - 1)) if they take q times the predicted
    time. Quantiles are preserved by increasing functions, so q = exp(1.645 sd) gives the upper end.
    Which GPUs share a switch, a bridge or a socket is not known: an all-reduce of two GPUs with a
    bridge moves 208 GB/s, of three on the same machine 20 (A100 PCIe, NVIDIA/nccl-tests issue 178,
    2023-11), of four 35 and of eight 28 (RTX 5090, NVIDIA/nccl issue 1639, 2025-03), of two, four
    and eight alike 6 (P100, M40: baidu-research/DeepBench, 2017).
    """
    return np.asarray(np.log1p(share * np.expm1(Z_90 * sd)) / Z_90)


def beyond(model: StepModel, fit: lsq.PosteriorFit, timed: tuple[TimedRun, ...]) -> Extrapolation:
    """How far the runs of a model are from those that were timed."""
    quick = fit.value.copy()
    quick[LINKS] = FARTHEST
    saved = 1.0 - model.steps(quick).min(axis=0) / model.steps(fit.value).min(axis=0)
    most = max(run.machines for run in timed)
    widest = max(run.gpus / run.machines for run in timed)
    wider = np.array([run.gpus / run.machines > widest for run in model.runs])
    larger = np.array([run.machines > most for run in model.runs])
    network = larger & (most > 1)
    gpus = np.array([run.gpus for run in model.runs]) / max(run.gpus for run in timed)
    return Extrapolation(
        kind=tuple(np.select([network, larger | wider], ["network", "larger"], "timed").tolist()),
        links=np.where(wider, np.maximum(saved, 0.0), 0.0),
        gpus=np.where(larger, np.log(np.maximum(gpus, NEXT_SIZE)), 0.0),
    )


def residual_sd(model: StepModel, fit: lsq.PosteriorFit) -> float:
    """Sd of ln(run / model): of the residuals, combined with the usual noise."""
    free = _degrees_of_freedom(model, fit)
    return float(np.sqrt((np.sum(fit.residual**2) + USUAL_ROWS * USUAL**2) / free))


def own_spread(model: StepModel, fit: lsq.PosteriorFit, to: StepModel) -> Floats:
    """Sd of ln(true / predicted) of other runs according to the fit of `model`; (runs,).

    The excess of residuals over the usual noise comes from few runs, so Student's law applies.
    """
    noise = residual_sd(model, fit)
    excess = lsq.students_excess(_degrees_of_freedom(model, fit)) * np.sqrt(
        max(noise**2 - USUAL**2, 0.0)
    )
    return np.asarray(np.hypot(excess, lsq.spread(to, fit, noise)))


def spans(model: StepModel, fit: lsq.PosteriorFit, to: StepModel) -> Floats:
    """Sd of ln(true / predicted step) of other runs after a fit to a model's own; (runs,)."""
    far = beyond(to, fit, model.runs)
    return np.asarray(np.hypot(far.base(bases()), own_spread(model, fit, to)) * far.widened)


def _degrees_of_freedom(model: StepModel, fit: lsq.PosteriorFit) -> float:
    """Runs behind the residuals' spread that the priors, not the runs, determine of the fit."""
    return USUAL_ROWS + max(len(fit.residual) - fit.determined_parameters(model.spread.noise), 0.0)


def machine_bands(runs: tuple[TimedRun, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Ranges of numbers of machines: the largest of each, and the numbers that represent it.

    One machine; several, up to the largest timed; then one range per doubling.
    """
    timed = max(2, *(run.machines for run in runs))
    powers = tuple(2**i for i in range(1, timed.bit_length()))
    doubled = (timed * 2**i for i in range(1, DOUBLINGS + 1))
    return ((1, (1,)), (timed, powers), *((n, (n,)) for n in doubled))


def sigmas_of(
    model: StepModel, fit: lsq.PosteriorFit, job: Job, columns: MachineColumns
) -> tuple[tuple[int, float], ...]:
    """Root mean square of the spans of each range of sizes: (largest number of machines, sd).

    Ranges in which no timed machine can run the job's batch are left out, except the first two.
    """
    known = {most: _rms_span(model, fit, job, columns, n) for most, n in machine_bands(model.runs)}
    one, several, *_ = known
    noise = residual_sd(model, fit)
    otherwise = float(np.hypot(noise, np.sqrt(fit.covariance(noise)[COMPUTE, COMPUTE])))
    least = next((span for span in known.values() if span is not None), otherwise)
    known[one] = least if known[one] is None else known[one]
    known[several] = known[one] if known[several] is None else known[several]
    return tuple((most, span) for most, span in known.items() if span is not None)


def _rms_span(
    model: StepModel,
    fit: lsq.PosteriorFit,
    job: Job,
    columns: MachineColumns,
    sizes: tuple[int, ...],
) -> float | None:
    """Root mean square of the spans of the timed machines in some numbers; None if none can run."""
    runs = whole(model.runs, columns, sizes, job)
    with np.errstate(divide="ignore"):
        steps = [StepModel(job, (run,), columns, model.gpus)(fit.value)[0] for run in runs]
    fine = tuple(run for run, step in zip(runs, steps, strict=True) if np.isfinite(step))
    if not fine:
        return None
    return rms(spans(model, fit, StepModel(job, fine, columns, model.gpus)))


def rms(values: Floats) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def whole(
    runs: tuple[TimedRun, ...], columns: MachineColumns, sizes: tuple[int, ...], job: Job
) -> tuple[TimedRun, ...]:
    """Clusters of some numbers of each timed machine, whole machines on the job's batch."""
    return tuple(
        replace(run, gpus=n * each, machines=n, batch=round(float(job.batch_on(n * each))))
        for run in {run.machine: run for run in runs}.values()
        for each in [round(float(columns.gpus[columns.names.index(run.machine)]))]
        for n in sizes
    )


def beyond_each(sigmas: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """Convert spreads of up to n machines to (n, spread of more than n machines)."""
    return tuple((n, more) for (n, least), (_, more) in pairwise(sigmas) if more != least)
