"""Fits a job's speed constants to a few of its own runs: robust least squares with priors.

There are two ways to use a user's timings. `measured.py` makes the model reproduce a few timings
exactly for the machines they were taken on (`measured:` in a job file, `--measured`). This module
fits the constants behind every term (`recommend calibrate`), so that runs on one and two machines
inform predictions for thirty-two. The formulas are those of `step.terms_of`.

The cost of the input pipeline follows from differential runs on one machine (DS-Analyzer, VLDB
2021; Stash, ICDCS 2023): T0 synthetic on one GPU, T1 synthetic on all, T3 on cached data, T2 on
cold data, in seconds per step. T1 - T0 is the interconnect's share, T3 - T1 that of preparation and
T2 - T3 that of fetching. The stages of the input are pipelined and the slowest sets the pace, so a
step that is longer than without input *is* the time of that input: prepare = batch / T3, fetch =
batch / T2.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.job.job import Calibration, Fitted, InputRates, Job, TimedRun
from recommender.performance import least_squares as lsq
from recommender.performance.calibration_model import (
    COMPUTE,
    GPUS,
    LATENCY,
    LINKS,
    MANY_SIZES,
    NETWORK,
    OVERLAP,
    PENALTY,
    SERVICE,
    SIGMA_GPU,
    TENSOR,
    USUAL,
    WORKER,
    StepModel,
    as_timed,
    clusters,
    solve,
    spread_for,
)
from recommender.performance.calibration_spread import (
    beyond_each,
    machine_bands,
    residual_sd,
    rms,
    sigmas_of,
    whole,
)
from recommender.performance.clusters import MachineColumns
from recommender.performance.parameter_server import cluster_spread
from recommender.performance.priors import Prior, load_priors, prior_of
from recommender.performance.speed_spread import SAME, added_sd
from recommender.performance.step import steps, terms_of

FAR = 2.0  # sd from what GPUs differ by on which a deviation is the job's
SERVED = 4  # with parameter servers one figure sums up so many bands: to four times the most
LONGER = 1.05  # times the step without that input: less is noise, and bounds the rate from below


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, and its predicted step time for each run."""

    calibration: Calibration
    predicted_s: Floats  # (runs,)


def calibrate(
    job: Job,
    runs: tuple[TimedRun, ...],
    columns: MachineColumns,
    gpu_of: tuple[str, ...],
    as_of: str,
) -> Calibrated:
    """Fit the job's constants to its runs; `columns` are those of the uncalibrated job.

    Maximum a posteriori of the ln of all constants under ln(step) = ln(model) + noise, with Huber
    weights; the sds are those of the posterior. Runs on synthetic data determine compute and
    communication, `cached` and `cold` ones the input (`feeds_of`). The model must be able
    to run every timed cluster (`step.why_infeasible`).
    """
    job = replace(job, calibration=None, timings=())
    free = tuple(run for run in runs if run.data in ("", "synthetic")) or runs
    model = StepModel(job, free, columns, spread=spread_for(free))
    fit = solve(model)
    name = name_of(model.prior, columns, model.gpus)
    sigmas = sigmas_of(model, fit, job, columns)
    found = _calibration(model, fit, sigmas, as_of, len(runs), name)
    found = replace(found, precision=job.precision)
    if job.sync == "parameter_server":
        found = _served(found, model, fit, job, columns, gpu_of)
    unfed = tuple(replace(run, data="synthetic") for run in runs)
    free_s = _predicted(replace(job, calibration=found), unfed, columns, gpu_of)
    done = replace(found, feeds=feeds_of(runs, free_s, columns))
    return Calibrated(done, _predicted(replace(job, calibration=done), runs, columns, gpu_of))


def with_calibration(job: Job, columns: MachineColumns, gpu_of: tuple[str, ...]) -> MachineColumns:
    """Apply the job's calibration to columns; without one they are unchanged.

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
    # Loops over TCP and bursts of a NIC say nothing of RDMA, nor the other way round.
    like = (columns.network_half_bytes > 0) == (own.network_kind == "rdma")
    applies = like | (own.network_kind == "")
    alone = np.where(timed, own.sigma, _others(own, columns, gpu_of))
    # The other kind is as unsure as it was, and no surer than one machine.
    kept = np.maximum(columns.speed_sigma_several, alone)
    service, placed = columns.service_sigma, columns.placement_sigma
    if service is not None and placed is not None and own.service is not None:
        # The factor of all of the servers' time holds where the bytes lie, and their network.
        service, placed = np.where(applies, own.service.sd, service), np.where(applies, 0.0, placed)
    scaled = replace(
        columns,
        service_sigma=service,
        placement_sigma=placed,
        compute_per_s=columns.compute_per_s * factor,
        network_bytes_per_s=columns.network_bytes_per_s
        * np.where(applies, own.network.factor, 1.0),
        network_latency_s=columns.network_latency_s * np.where(applies, own.latency.factor, 1.0),
        intra_bytes_per_s=columns.intra_bytes_per_s * own.links.factor,
        speed_sigma=alone,
        speed_sigma_several=np.where(applies, _spreads(own, alone, own.sigma_several), kept),
        speed_sigma_larger=tuple(
            (n, np.where(applies, _spreads(own, alone, sd), kept)) for n, sd in own.sigma_larger
        ),
    )
    return with_feeds(own.feeds, scaled)


def _others(own: Calibration, columns: MachineColumns, gpu_of: tuple[str, ...]) -> Floats:
    """The spread of one machine with a GPU that was not timed, as of `--measured`; (types,).

    It grows with the generations between the GPUs, and is no wider than without the runs unless
    these contradict each other.
    """
    timed = [gpu for gpu, _ in own.gpus]
    apart = np.hypot(own.sigma_other, [added_sd(gpu, timed) for gpu in gpu_of])
    return np.minimum(apart, np.maximum(columns.speed_sigma, own.sigma_other))


def _spreads(own: Calibration, alone: Floats, sigma: float) -> Floats:
    """The spread of clusters of several machines from those of one machine of a type; (types,)."""
    return np.asarray(np.sqrt(np.maximum(alone**2 - own.sigma**2, 0.0) + sigma**2))


def _calibration(
    model: StepModel,
    fit: lsq.PosteriorFit,
    sigmas: tuple[tuple[int, float], ...],
    as_of: str,
    rows: int,
    constants: str,
) -> Calibration:
    noise = residual_sd(model, fit)
    most_one, most_several = _widest(model, noise)
    (_, sigma), *several = ((n, min(span, most_several)) for n, span in sigmas)
    spread = fit.covariance(noise)
    sd = np.sqrt(np.diag(spread))
    value = _attributed(fit.value)
    each = [Fitted(float(np.exp(a)), float(b)) for a, b in zip(value, sd, strict=True)]
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
        sigma=min(sigma, most_one),
        sigma_several=several[0][1],
        sigma_other=float(np.hypot(min(sigma, most_one), SAME)),
        gpus=tuple(
            (gpu, _sum_of(value, spread, COMPUTE, GPUS + i)) for i, gpu in enumerate(model.gpus)
        ),
        sigma_larger=beyond_each(several),
        penalty=each[PENALTY],
        network_kind=model.network_kind,
    )


def _served(
    found: Calibration,
    model: StepModel,
    fit: lsq.PosteriorFit,
    job: Job,
    columns: MachineColumns,
    gpu_of: tuple[str, ...],
) -> Calibration:
    """A calibration with what the runs say of parameter servers.

    How well their time is known holds the network's part; no run makes it less sure than shipped.
    Plans take the spread by the load of the servers; `sigma_several` only sums it up, and is that
    of one machine where several cannot run the job.
    """
    noise = residual_sd(model, fit)
    sd = float(lsq.spread(model.ln_service, fit, noise).max())
    factor = float(np.exp(fit.value[SERVICE]))
    update = _sum_of(fit.value, fit.covariance(noise), WORKER)
    found = replace(
        found, service=Fitted(factor, min(sd, float(model.belief().sd[SERVICE]))), worker=update
    )
    calibrated_job = replace(job, calibration=found, machines=0)
    sizes = tuple(n for _, band in machine_bands(model.runs)[1:SERVED] for n in band)
    runs = whole(model.runs, columns, sizes, job)
    own = with_calibration(calibrated_job, columns, gpu_of)
    fleet = clusters(runs, own)
    counts = np.zeros((len(runs), len(own.names)), dtype=np.int64)
    counts[np.arange(len(runs)), fleet.kind] = fleet.machines.astype(np.int64)
    found_steps = steps(calibrated_job, own, fleet)
    each = cluster_spread(
        calibrated_job, own, fleet, found_steps, np.arange(len(own.names)), counts
    )
    fine = np.isfinite(found_steps.step_s)
    several = rms(each[fine]) if fine.any() else found.sigma_several
    return replace(found, sigma_several=several, sigma_larger=())


def _widest(model: StepModel, noise: float) -> tuple[float, float]:
    """The widest spreads of one machine and of several: those of uncalibrated plans.

    What a job's own runs miss comes on top: an uncalibrated job does not know of it. Where nothing
    is believed of the network, the spread of uncalibrated plans, which do, is no bound.
    """
    prior, own = model.prior, np.sqrt(max(noise**2 - USUAL**2, 0.0))
    several = max(prior.sigma_several, prior.sigma_one)
    known = np.inf if model.spread is MANY_SIZES else several
    return float(np.hypot(prior.sigma_one, own)), float(np.hypot(known, own))


def _attributed(value: Floats) -> Floats:
    """Speeds of timed GPUs, with no more put down to the GPUs than GPUs differ by.

    The priors of compute and of a GPU's deviation are normal and alike wide: of a run ten times too
    slow they put half (of the logarithm) down to the GPU, though software can be that slow and a
    GPU cannot. What timed GPUs have in common beyond `FAR` sd is the job's: others have it too.
    """
    found, own = value.copy(), value[GPUS:]
    most = FAR * SIGMA_GPU / np.sqrt(len(own))
    excess = own.mean() - np.clip(own.mean(), -most, most)
    found[COMPUTE] += excess
    found[GPUS:] -= excess
    return found


def _sum_of(value: Floats, spread: Floats, *of: int) -> Fitted:
    """Several factors in one."""
    variance = spread[np.ix_(of, of)].sum()
    return Fitted(float(np.exp(value[list(of)].sum())), float(np.sqrt(variance)))


def name_of(prior: Prior, columns: MachineColumns, gpus: Sequence[str]) -> str:
    """Name the constants that a calibration multiplies.

    These are the shipped ones, and the speeds of its GPUs that the user measured. With others, the
    fitted factors would not be valid.
    """
    own = dict(columns.own_speeds)
    mine = "".join(f", own {gpu} {own[gpu]}" for gpu in gpus if gpu in own)
    return f"{prior.family} {prior.stack} {prior.as_of}{mine}"


def _predicted(
    job: Job, runs: tuple[TimedRun, ...], columns: MachineColumns, gpu_of: tuple[str, ...]
) -> Floats:
    """The step of every run under the job's calibration, its input included; (runs,)."""
    fleet = clusters(runs, with_calibration(job, columns, gpu_of))
    step = np.empty(len(runs))
    for i, run in enumerate(runs):
        one = as_timed(job, run.batch, run.servers)
        prior = replace(prior_of(one), serves_one_worker=run.servers > 0)
        step[i] = terms_of(one, prior, fleet.take(np.array([i]))).step_s.min()
    return step


def feeds_of(
    runs: tuple[TimedRun, ...], free_s: Floats, columns: MachineColumns
) -> tuple[InputRates, ...]:
    """Preparation and fetching rates of every timed type, samples/s of one machine.

    `free_s` (runs,): the model's step of each run without input; a synthetic run of the same shape
    is preferred. A run that does not wait for input gives a lower bound of the rates.
    """
    free = {run.place: _measured(run, runs, float(s)) for run, s in zip(runs, free_s, strict=True)}
    found = []
    for name in dict.fromkeys(run.machine for run in runs if run.data != "synthetic"):
        kind = columns.names.index(name)
        own = [run for run in runs if run.machine == name and run.data != "synthetic"]
        seen = max(_rate(run) for run in own)
        waiting = [r for r in own if r.data == "cached" and r.step_s > LONGER * free[r.place]]
        shipped = float(columns.prepare_per_s[kind]), float(columns.fetch_per_s[kind])
        prepare = _mean(waiting, max(shipped[0], seen))
        cold = [
            run
            for run in own
            if run.data == "cold"
            and run.step_s > LONGER * max(free[run.place], run.batch / prepare / run.machines)
        ]
        fetch = _mean(cold, max(shipped[1], seen))
        if (prepare, fetch) != shipped:
            found.append(InputRates(name, prepare, fetch))
    return tuple(found)


def with_feeds(feeds: tuple[InputRates, ...], columns: MachineColumns) -> MachineColumns:
    """Apply the input rates of the timed types to columns."""
    prepare, fetch = columns.prepare_per_s.copy(), columns.fetch_per_s.copy()
    for feed in feeds:
        if feed.machine in columns.names:
            kind = columns.names.index(feed.machine)
            prepare[kind], fetch[kind] = feed.prepare_per_s, feed.fetch_per_s
    return replace(columns, prepare_per_s=prepare, fetch_per_s=fetch)


def _measured(run: TimedRun, runs: tuple[TimedRun, ...], otherwise: float) -> float:
    """The step of the same cluster on synthetic data."""
    same = [
        r.step_s
        for r in runs
        if r.data == "synthetic"
        and (r.machine, r.machines, r.gpus, r.batch)
        == (run.machine, run.machines, run.gpus, run.batch)
    ]
    return float(np.mean(same)) if same else otherwise


def _rate(run: TimedRun) -> float:
    """Samples/s of each machine of a run."""
    return run.batch / run.step_s / run.machines


def _mean(runs: list[TimedRun], otherwise: float) -> float:
    return float(np.exp(np.mean([np.log(_rate(r)) for r in runs]))) if runs else otherwise
