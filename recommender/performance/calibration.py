"""A job's speed constants from a handful of its own runs: a robust fit with priors.

Two ways lead from a user's timings to a plan. `readings.py` makes the model give a few timings
exactly, where they were taken (`measured:` in a job file, `--measured`). This module fits the
constants behind every term (`recommend calibrate`), so that runs on one and two machines say
something of thirty-two; the formulas are those of `terms.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recommender.errors import UsageError
from recommender.job import Calibration, Fitted, Job, Run
from recommender.performance import least_squares as lsq
from recommender.performance.feeds import feeds_of, with_feeds
from recommender.performance.fleet import Fleet, MachineColumns
from recommender.performance.priors import Prior, load_priors, prior_of
from recommender.performance.terms import terms_of

Floats = NDArray[np.float64]

COMPUTE, TENSOR, LATENCY, NETWORK, LINKS, OVERLAP, GPUS = range(7)  # of the parameters
SIGMA_GPU = 0.18  # between GPUs, one of them timed: docs/models.md, "Throughput" (2026-11)
NOISE = 0.02  # sd of ln step time between repeated runs: what a residual is weighed with
USUAL = 0.05  # sd of the model from one size to another: 90 % of held-out runs in their span
USUAL_ROWS = 4.0  # as many runs as the usual error counts
FARTHEST = 7.0  # no constant moves by more than e^7
SLOW = 2.0  # ln: a second start of the fit, with a network that hides behind nothing
LARGER = 4  # spans hold up to so many times the most machines that were timed


@dataclass(frozen=True, slots=True)
class Spread:
    """How far constants differ between jobs, sd of their ln; of the overlap itself."""

    tensor: float
    latency: float
    network: float
    links: float
    overlap: float


# Latency: 0.1 ms over RDMA to 30-50 ms of loops over TCP (DeepVM, figure 5, 2024). Network:
# a burst is up to ten times the baseline. Tensors, links: two launches or four; 0.5 to 1 of what
# is listed. Overlap: nothing is hidden until runs show it. docs/accuracy.md, "Calibration".
USERS = Spread(tensor=0.7, latency=2.0, network=1.0, links=0.7, overlap=0.1)
# Non-negative least squares on latency and bandwidth: what published fits are compared with.
TWO_TERMS = Spread(tensor=1e-3, latency=100.0, network=100.0, links=1e-3, overlap=1e-3)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, and the step it gives for each run."""

    calibration: Calibration
    predicted_s: Floats  # (runs,)


def calibrate(
    job: Job,
    runs: tuple[Run, ...],
    columns: MachineColumns,
    gpu_of: tuple[str, ...],
    as_of: str,
) -> Calibrated:
    """Fit the job's constants to its runs; `columns` are those of the job uncalibrated.

    Maximum a posteriori of the ln of all constants under ln(step) = ln(model) + noise, Huber
    weights; the sds are the posterior's. Runs on synthetic data teach compute and communication,
    `cached` and `cold` ones what the input adds (`feeds.py`). The model must be able to make
    every run (`step.why_infeasible`).
    """
    job = replace(job, calibration=None, timings=())
    free = tuple(run for run in runs if run.data in ("", "synthetic")) or runs
    model = Model(job, free, columns)
    fit = solve(model, free)
    sigma = _sigma(fit, job, larger(free, columns, job.global_batch), columns, model.gpus)
    name = name_of(model.prior, columns, model.gpus)
    found = _calibration(model, fit, sigma, as_of, len(runs), name)
    unfed = tuple(replace(run, data="synthetic") for run in runs)
    free_s = _predicted(replace(job, calibration=found), unfed, columns, gpu_of)
    done = replace(found, feeds=feeds_of(runs, free_s, columns))
    return Calibrated(done, _predicted(replace(job, calibration=done), runs, columns, gpu_of))


def with_calibration(job: Job, columns: MachineColumns, gpu_of: tuple[str, ...]) -> MachineColumns:
    """Columns with the job's calibration in them; the same columns where it has none.

    Tensors and overlap are in `prior_of(job)`.
    """
    own = job.calibration
    if own is None:
        return columns
    timed_gpus = [gpu for gpu, _ in own.gpus]
    shipped = name_of(load_priors()[job.family, job.stack], columns, timed_gpus)
    if own.constants != shipped:
        raise UsageError(
            f"calibration: was fitted on the constants '{own.constants}', the job's are "
            f"'{shipped}'; run recommend calibrate again"
        )
    each = dict(own.gpus)
    factor = np.array([each.get(gpu, own.compute).factor for gpu in gpu_of])
    timed = np.array([gpu in each for gpu in gpu_of], dtype=bool)
    scaled = replace(
        columns,
        compute_per_s=columns.compute_per_s * factor,
        network_bytes_per_s=columns.network_bytes_per_s * own.network.factor,
        network_latency_s=columns.network_latency_s * own.latency.factor,
        intra_bytes_per_s=columns.intra_bytes_per_s * own.links.factor,
        speed_sigma=np.where(timed, own.sigma, own.sigma_other),
    )
    return with_feeds(own.feeds, scaled)


class Model:
    """ln step time of some runs as a function of the ln constants."""

    def __init__(
        self,
        job: Job,
        runs: tuple[Run, ...],
        columns: MachineColumns,
        gpus: tuple[str, ...] = (),
        spread: Spread = USERS,
    ) -> None:
        self.prior, self.spread = load_priors()[job.family, job.stack], spread
        self.gpus = gpus or tuple(dict.fromkeys(run.gpu for run in runs))
        self.of = np.array([self.gpus.index(run.gpu) for run in runs])
        batches = np.array([run.batch for run in runs])
        fleet = clusters(runs, columns)
        self.groups = tuple(
            (rows, replace(job, global_batch=int(batch)), fleet.take(rows))
            for batch in np.unique(batches)
            for rows in [np.flatnonzero(batches == batch)]
        )

    def belief(self) -> lsq.Belief:
        """The prior of every parameter; a deviation of each timed GPU comes last."""
        compute = np.sqrt(max(self.prior.sigma_one**2 - SIGMA_GPU**2, SIGMA_GPU**2))
        s = self.spread
        sd = np.array([compute, s.tensor, s.latency, s.network, s.links, s.overlap])
        sd = np.concatenate([sd, np.full(len(self.gpus), SIGMA_GPU)])
        least, most = np.full(len(sd), -FARTHEST), np.full(len(sd), FARTHEST)
        least[OVERLAP], most[OVERLAP] = 0.0, 0.95
        return lsq.Belief(np.zeros(len(sd)), sd, least, most)

    def __call__(self, theta: Floats) -> Floats:
        """ln of the step of every run; (runs,)."""
        prior = replace(
            self.prior,
            tensor_s=self.prior.tensor_s * float(np.exp(theta[TENSOR])),
            overlap=float(theta[OVERLAP]),
        )
        each = np.exp(theta[COMPUTE] + theta[GPUS:][self.of])
        step = np.empty(len(self.of))
        for rows, job, fleet in self.groups:
            step[rows] = _scaled_step(job, prior, fleet, theta, each[rows])
        return np.log(step)


def _scaled_step(job: Job, prior: Prior, fleet: Fleet, theta: Floats, each: Floats) -> Floats:
    scaled = replace(
        fleet,
        compute_per_s=fleet.compute_per_s * each,
        network_bytes_per_s=fleet.network_bytes_per_s * np.exp(theta[NETWORK]),
        network_latency_s=fleet.network_latency_s * np.exp(theta[LATENCY]),
        intra_bytes_per_s=fleet.intra_bytes_per_s * np.exp(theta[LINKS]),
    )
    step: Floats = terms_of(job, prior, scaled).step_s.min(axis=0)
    return step


def clusters(runs: tuple[Run, ...], columns: MachineColumns) -> Fleet:
    """The clusters of some runs, on the machines they name; (runs,).

    Only `cached` runs wait for preparation, and only `cold` ones for fetching too.
    """
    kind = np.array([columns.names.index(run.machine) for run in runs])
    gpus = np.array([float(run.gpus) for run in runs])
    machines = np.array([float(run.machines) for run in runs])
    prepared = np.array([run.data in ("cached", "cold") for run in runs])
    fetched = np.array([run.data == "cold" for run in runs])
    return Fleet(
        kind=kind,
        machines=machines,
        gpus=gpus,
        gpus_per_machine=np.ceil(gpus / machines),
        compute_per_s=columns.compute_per_s[kind] / columns.gpus[kind] * gpus,
        memory_bytes=columns.memory_bytes[kind],
        network_bytes_per_s=columns.network_bytes_per_s[kind],
        network_half_bytes=columns.network_half_bytes[kind],
        network_latency_s=columns.network_latency_s[kind],
        intra_bytes_per_s=columns.intra_bytes_per_s[kind],
        prepare_per_s=np.where(prepared, columns.prepare_per_s[kind] * machines, np.inf),
        fetch_per_s=np.where(fetched, columns.fetch_per_s[kind] * machines, np.inf),
        host_bytes_per_s=columns.host_bytes_per_s[kind] * machines,
        disk_bytes_per_s=columns.disk_bytes_per_s[kind],
    )


def solve(model: Model, runs: tuple[Run, ...]) -> lsq.Fit:
    """Fit a model to what its runs took; the better of two starts where the first misses.

    Where all communication is hidden its slopes are zero: the second start has a slow network.
    """
    target = np.log(np.array([run.step_s for run in runs]))
    belief = model.belief()
    # A run that stands alone has none beside it to say that it was disturbed.
    huber = lsq.HUBER if len(runs) > 1 else np.inf
    first = lsq.solve(model, target, NOISE, belief, belief.mean, huber)
    if np.abs(first.residual).max() < NOISE:
        return first
    slow = belief.mean.copy()
    slow[NETWORK] = slow[LINKS] = -SLOW
    slow[LATENCY] = SLOW
    return min(
        first, lsq.solve(model, target, NOISE, belief, slow, huber), key=lambda f: f.objective
    )


def residual_sd(fit: lsq.Fit) -> float:
    """Sd of ln(run / model) where the model is used: of the residuals and what is usual.

    The runs' degrees of freedom are those that the priors, not the runs, determine of the fit.
    """
    free = USUAL_ROWS + max(len(fit.residual) - fit.taught(NOISE), 0.0)
    return float(np.sqrt((np.sum(fit.residual**2) + USUAL_ROWS * USUAL**2) / free))


def spans(model: Model, fit: lsq.Fit) -> Floats:
    """Sd of ln(true / predicted step) of a model's runs after a fit to other ones; (runs,)."""
    noise = residual_sd(fit)
    return np.hypot(noise, lsq.spread(model, fit, noise))


def _calibration(
    model: Model, fit: lsq.Fit, sigma: float, as_of: str, rows: int, constants: str
) -> Calibration:
    prior, noise = model.prior, residual_sd(fit)
    spread = fit.covariance(noise)
    sd = np.sqrt(np.diag(spread))
    each = [Fitted(float(np.exp(a)), float(b)) for a, b in zip(fit.value, sd, strict=True)]
    other = float(np.hypot(sigma, np.hypot(SIGMA_GPU, sd[COMPUTE])))
    return Calibration(
        as_of=as_of,
        rows=rows,
        constants=constants,
        compute=each[COMPUTE],
        tensor=each[TENSOR],
        latency=each[LATENCY],
        network=each[NETWORK],
        links=each[LINKS],
        overlap=float(fit.value[OVERLAP]),
        overlap_sd=float(sd[OVERLAP]),
        noise=noise,
        sigma=min(sigma, prior.sigma_one),
        sigma_other=min(other, prior.sigma_one),
        gpus=tuple(
            (gpu, _sum_of(fit.value, spread, COMPUTE, GPUS + i)) for i, gpu in enumerate(model.gpus)
        ),
    )


def _sum_of(value: Floats, spread: Floats, one: int, two: int) -> Fitted:
    """Two factors in one."""
    variance = spread[one, one] + spread[two, two] + 2.0 * spread[one, two]
    return Fitted(float(np.exp(value[one] + value[two])), float(np.sqrt(variance)))


def name_of(prior: Prior, columns: MachineColumns, gpus: Sequence[str]) -> str:
    """Name the constants that a calibration multiplies.

    The shipped ones, and the speeds of its GPUs that the user measured: with other ones the
    factors fitted to timings would be applied to what they were not fitted on.
    """
    own = dict(columns.own_speeds)
    mine = "".join(f", own {gpu} {own[gpu]}" for gpu in gpus if gpu in own)
    return f"{prior.family} {prior.stack} {prior.as_of}{mine}"


def larger(runs: tuple[Run, ...], columns: MachineColumns, batch: int) -> tuple[Run, ...]:
    """Clusters of the timed machines, whole ones, up to `LARGER` times the most of them."""
    found = []
    for run in {run.machine: run for run in runs}.values():
        most = LARGER * max(r.machines for r in runs if r.machine == run.machine)
        gpus = round(float(columns.gpus[columns.names.index(run.machine)]))
        for n in 2 ** np.arange(int(np.log2(most)) + 1):
            if gpus * n <= batch:
                found.append(replace(run, gpus=int(gpus * n), machines=int(n), batch=batch))
    return tuple(found)


def _sigma(
    fit: lsq.Fit, job: Job, runs: tuple[Run, ...], columns: MachineColumns, gpus: tuple[str, ...]
) -> float:
    """Root mean square of the spans of some clusters."""
    with np.errstate(divide="ignore"):
        steps = [Model(job, (run,), columns, gpus)(fit.value)[0] for run in runs]
    fine = tuple(run for run, step in zip(runs, steps, strict=True) if np.isfinite(step))
    if not fine:
        sd = np.sqrt(fit.covariance(residual_sd(fit))[COMPUTE, COMPUTE])
        return float(np.hypot(residual_sd(fit), sd))
    return float(np.sqrt(np.mean(spans(Model(job, fine, columns, gpus), fit) ** 2)))


def _predicted(
    job: Job, runs: tuple[Run, ...], columns: MachineColumns, gpu_of: tuple[str, ...]
) -> Floats:
    """The step of every run under the job's calibration, its input included; (runs,)."""
    fleet = clusters(runs, with_calibration(job, columns, gpu_of))
    step = np.empty(len(runs))
    for i, run in enumerate(runs):
        one = replace(job, global_batch=run.batch)
        step[i] = terms_of(one, prior_of(one), fleet.take(np.array([i]))).step_s.min()
    return step
