"""The model of a calibration: step times as a function of a job's constants.

The formulas are those of `step.terms_of`; the fit is maximum a posteriori with robust
weights.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job, TimedRun
from recommender.performance import least_squares as lsq
from recommender.performance.clusters import Clusters, MachineColumns
from recommender.performance.parameter_server import load_constants, service_of
from recommender.performance.priors import Prior, shipped_prior
from recommender.performance.step import terms_of

COMPUTE, TENSOR, LATENCY, NETWORK, LINKS, OVERLAP, SERVICE, WORKER, PENALTY, GPUS = range(
    10
)  # of the parameters
SIGMA_GPU = 0.18  # between GPUs, one of them timed: docs/models.md, "A user's timings" (2026-11)
NOISE = 0.02  # sd of ln step time between repeated runs: what a residual is weighed with
USUAL = 0.05  # sd of the model from one size to another
SIGMA_WORKER = 0.5  # of a worker's update: 4 to 16 vCPUs where the constants have 8; assumed
# Sd of ln b0 between networks and GPUs: nine pairs of a network and a GPU that were run with two or
# more batches each lose 1.0 to 11.7 samples in each, where the constants say 6.2 (Apache MXNet
# perf.md and TensorFlow's benchmarks, 2017; `measured/training.csv.gz`): rms of ln 0.91 (2026-11).
SIGMA_PENALTY = 0.9
OTHER_BATCH = 1.5  # times a run's batch per GPU: a batch that tells b0 from the speed of large ones
FARTHEST = 7.0  # no constant moves by more than e^7
SLOW = 2.0  # ln: a second start of the fit, with a network that hides behind nothing
RDMA_NETWORK = 0.35  # sd of ln: reserved networks give half to all of what the model says
ENOUGH_SIZES = (
    3  # numbers of machines above one that determine latency and bandwidth, and check them
)


@dataclass(frozen=True, slots=True)
class Spread:
    """How much constants differ between jobs: sd of their ln, and of the overlap itself."""

    tensor: float
    latency: float
    network: float
    links: float
    overlap: float
    noise: float  # of runs on several machines, sd of ln step time; on one, `NOISE`


# Latency: 0.1 ms over RDMA to 30-50 ms of loops over TCP (DeepVM, figure 5, 2024). Network:
# a burst is up to ten times the baseline. Tensors, links: two launches or four; 0.5 to 1 of what
# is listed. Overlap: nothing is hidden until runs show it. docs/models.md, "A user's timings".
FEW_SIZES = Spread(tensor=0.7, latency=2.0, network=1.0, links=0.7, overlap=0.1, noise=NOISE)
# Runs on `ENOUGH_SIZES` numbers of machines determine latency and bandwidth: nothing is assumed of
# them before, and nothing is hidden (an overlap cannot be told from bandwidth). What such runs
# miss is the form, not the repetition.
MANY_SIZES = Spread(tensor=0.7, latency=100.0, network=100.0, links=0.7, overlap=1e-3, noise=USUAL)


def spread_for(runs: tuple[TimedRun, ...]) -> Spread:
    """The prior spread of the constants before some runs are considered."""
    sizes = {run.machines for run in runs if run.machines > 1}
    return MANY_SIZES if len(sizes) >= ENOUGH_SIZES else FEW_SIZES


class StepModel:
    """ln step time of some runs as a function of the ln constants."""

    def __init__(
        self,
        job: Job,
        runs: tuple[TimedRun, ...],
        columns: MachineColumns,
        gpus: tuple[str, ...] = (),
        spread: Spread = FEW_SIZES,
    ) -> None:
        self.prior, self.spread = shipped_prior(job), spread
        self.runs = runs
        self.gpus = gpus or tuple(dict.fromkeys(run.gpu for run in runs))
        self.of = np.array([self.gpus.index(run.gpu) for run in runs])
        batches = np.array([run.batch for run in runs])
        fleet = clusters(runs, columns)
        self.network_kind = _network_kind(fleet)
        servers = np.array([run.servers for run in runs])
        self.groups = tuple(
            (rows, as_timed(job, int(batch), int(count)), fleet.take(rows), bool(count))
            for batch in np.unique(batches)
            for count in np.unique(servers[batches == batch])
            for rows in [np.flatnonzero((batches == batch) & (servers == count))]
        )

    def belief(self) -> lsq.ParameterPrior:
        """The prior of every parameter; deviations of timed GPUs come last."""
        compute = np.sqrt(max(self.prior.sigma_one**2 - SIGMA_GPU**2, SIGMA_GPU**2))
        s = self.spread
        network = s.network
        if self.network_kind == "rdma" and s is FEW_SIZES:
            network = min(network, RDMA_NETWORK)
        sd = np.array(
            [compute, s.tensor, s.latency, network, s.links, s.overlap]
            + [self._servers(), SIGMA_WORKER, SIGMA_PENALTY]
        )
        sd = np.concatenate([sd, np.full(len(self.gpus), SIGMA_GPU)])
        least, most = np.full(len(sd), -FARTHEST), np.full(len(sd), FARTHEST)
        least[OVERLAP], most[OVERLAP] = 0.0, 0.95
        most[PENALTY] = 2.0 * SIGMA_PENALTY if self._shows_small_batches() else 0.0
        least[PENALTY] = -most[PENALTY]
        return lsq.ParameterPrior(np.zeros(len(sd)), sd, least, most)

    def _shows_small_batches(self) -> bool:
        """Whether batches per GPU differ; otherwise b0 stays as it is, but spans include it."""
        each = [run.batch / run.gpus for run in self.runs]
        return max(each) >= OTHER_BATCH * min(each)

    def _servers(self) -> float:
        """Sd of ln time of parameter servers, the placement of the bytes included."""
        known = load_constants().service_sd
        found = [known]
        for _, job, fleet, _ in self.groups:
            if job.sync == "parameter_server":
                machines = np.maximum(fleet.machines, job.parameter_servers)
                service = service_of(job, self.prior, replace(fleet, machines=machines))
                found += service.spread(known, np.inf).tolist()
        return max(found)

    def __call__(self, theta: Floats) -> Floats:
        """ln of the step of every run; (runs,)."""
        found: Floats = np.log(self.steps(theta).min(axis=0))
        return found

    def steps(self, theta: Floats) -> Floats:
        """The step of every run by every row of `step.terms_of`; (rows, runs)."""
        prior = replace(
            self.prior,
            tensor_s=self.prior.tensor_s * float(np.exp(theta[TENSOR])),
            batch_penalty=self.prior.batch_penalty * float(np.exp(theta[PENALTY])),
            overlap=float(theta[OVERLAP]),
            service=float(np.exp(theta[SERVICE])),
            worker=float(np.exp(theta[WORKER])),
        )
        each = np.exp(theta[COMPUTE] + theta[GPUS:][self.of])
        parts = [
            _scaled_steps(job, replace(prior, serves_one_worker=alone), fleet, theta, each[rows])
            for rows, job, fleet, alone in self.groups
        ]
        step = np.empty((len(parts[0]), len(self.of)))
        for (rows, *_), part in zip(self.groups, parts, strict=True):
            step[:, rows] = part
        return step

    def ln_service(self, theta: Floats) -> Floats:
        """ln time per update of the most loaded parameter server of every run; (runs,)."""
        found = np.empty(len(self.of))
        for rows, job, fleet, _ in self.groups:
            scaled = _scaled(fleet, theta, np.ones(len(rows)))
            found[rows] = theta[SERVICE] + np.log(service_of(job, self.prior, scaled).served_s)
        return found


def as_timed(job: Job, batch: int, servers: int) -> Job:
    """A job with the batch and servers of a run, on any number of machines.

    0 servers means as many as the job has.
    """
    servers = servers or job.parameter_servers
    run = replace(job, global_batch=batch, batch_per_gpu=False)
    return replace(run, parameter_servers=servers, machines=0)


def _network_kind(fleet: Clusters) -> Literal["", "tcp", "rdma"]:
    """The kind of network that some runs used, "" for both; on one machine each could have."""
    used = fleet.machines > 1
    rdma = fleet.network_half_bytes[used if used.any() else ~used] > 0
    return "rdma" if rdma.all() else "" if rdma.any() else "tcp"


def _scaled_steps(job: Job, prior: Prior, fleet: Clusters, theta: Floats, each: Floats) -> Floats:
    step: Floats = terms_of(job, prior, _scaled(fleet, theta, each)).step_s
    return step


def _scaled(fleet: Clusters, theta: Floats, each: Floats) -> Clusters:
    return replace(
        fleet,
        compute_per_s=fleet.compute_per_s * each,
        network_bytes_per_s=fleet.network_bytes_per_s * np.exp(theta[NETWORK]),
        network_latency_s=fleet.network_latency_s * np.exp(theta[LATENCY]),
        intra_bytes_per_s=fleet.intra_bytes_per_s * np.exp(theta[LINKS]),
    )


def clusters(runs: tuple[TimedRun, ...], columns: MachineColumns) -> Clusters:
    """The clusters of some runs, on the machines they name; (runs,).

    Only `cached` and `cold` runs wait for preparation, and only `cold` ones for fetching.
    """
    kind = np.array([columns.names.index(run.machine) for run in runs])
    gpus = np.array([float(run.gpus) for run in runs])
    machines = np.array([float(run.machines) for run in runs])
    prepared = np.array([run.data in ("cached", "cold") for run in runs])
    fetched = np.array([run.data == "cold" for run in runs])
    rates = {(name, gpus): times for name, gpus, times in columns.part_links}
    part = np.array([rates.get((run.machine, -(-run.gpus // run.machines)), 1.0) for run in runs])
    return Clusters(
        kind=kind,
        machines=machines,
        gpus=gpus,
        gpus_per_machine=np.ceil(gpus / machines),
        compute_per_s=columns.compute_per_s[kind] / columns.gpus[kind] * gpus,
        memory_bytes=columns.memory_bytes[kind],
        device_bytes_per_s=columns.device_bytes_per_s[kind],
        network_bytes_per_s=columns.network_bytes_per_s[kind],
        network_half_bytes=columns.network_half_bytes[kind],
        network_latency_s=columns.network_latency_s[kind],
        intra_bytes_per_s=columns.intra_bytes_per_s[kind] * part,
        prepare_per_s=np.where(prepared, columns.prepare_per_s[kind] * machines, np.inf),
        fetch_per_s=np.where(fetched, columns.fetch_per_s[kind] * machines, np.inf),
        host_bytes_per_s=columns.host_bytes_per_s[kind] * machines,
        disk_bytes_per_s=columns.disk_bytes_per_s[kind],
        link_gpus=columns.links(kind),
    )


def solve(model: StepModel) -> lsq.PosteriorFit:
    """Fit a model to the measured times of its runs.

    If all communication is hidden its slopes are zero, so a second start has a slow network.
    """
    runs, noise, belief = model.runs, model.spread.noise, model.belief()
    took = np.array([run.step_s for run in runs])
    # Runs on one machine have no network whose form could be wrong: they weigh more.
    weight = np.where(np.array([run.machines for run in runs]) > 1, 1.0, noise / NOISE)
    # A run of its own size only cannot be recognised as disturbed.
    huber = lsq.HUBER if len(runs) > 1 else np.inf
    slow = belief.mean.copy()
    slow[NETWORK] = slow[LINKS] = -SLOW
    slow[LATENCY] = SLOW
    starts = belief.mean, slow
    return lsq.solve_relative(model, took, noise, belief, *starts, huber=huber, weight=weight)
