"""How many updates per second asynchronous parameter servers and their workers get through.

Workers compute, then wait for the servers: a closed queueing network. A worker alone with an
idle server takes T seconds per update, of which the server is busy S,

    S = a·tensors + G·(b + 1/B_net) + c            of the fullest server: its tensors, and
                                                   their bytes G, gradients in and weights out

and n like workers get through X(n) updates per second by mean value analysis (Reiser and
Lavenberg, J. ACM 27, 1980), from X(0) = 0:

    X(n) = min(n / (T + θ·S·Q(n-1)), 1/S)          Q(n) = n - (T - S)·X(n)

Q(n-1) are the workers an arriving one finds at the server (arrival theorem), θ = (1 + cv²)/2
the share of an exponential server's wait that one of less spread causes (Allen and Cunneen's
factor). θ = 1 is exact for exponential service; an update takes the same work every time, so
cv = 0 and θ = 1/2 here. Worker machines of several types count as n of their mean speed.

`parameter_server.csv` holds a, b, c and the worker's own cost; `fit_parameter_server.py` fits.

An update takes the worker's time T and the servers' S; both are known to so much, and which of
them counts depends on the load (`parameter_server.service_share`).
"""

import csv
from functools import cache
from pathlib import Path

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.job.job import Job
from recommender.performance.clusters import SPREAD_STEP, Clusters, MachineColumns, Steps, spread_of
from recommender.performance.memory import bytes_of
from recommender.performance.priors import Prior, prior_of

# Of a worker, where the catalog's vCPUs are shared with the input pipeline: CM-DARE's P100 and
# V100 workers had as many, and so have most machines with one GPU.
WORKER_VCPUS = 8.0
# The most that a server's own network carries, whatever its workers have: NCCL's share over TCP of
# 8 Gbit/s, that of the four vCPUs of CM-DARE's servers (2 Gbit/s each: Google Cloud, 2019).
SERVER_BYTES_PER_S = 0.85 * 8e9 / 8


@dataclass(frozen=True, slots=True)
class ServerConstants:
    """The cost of an update for its server and for the worker's CPU."""

    tensor_s: float  # a, seconds of the server per gradient tensor
    byte_s: float  # b, seconds of the server per gradient byte, besides the network
    update_s: float  # c, seconds of the server per update
    service_sd: float  # of ln(true / predicted) of S, for a network they were not fitted on
    worker_tensor_s: float  # vCPU seconds of the worker per gradient tensor
    worker_update_s: float  # vCPU seconds of the worker per update


@cache
def load_constants() -> ServerConstants:
    """The shipped constants."""
    found = Path(__file__).with_name("parameter_server.csv")
    rows = csv.DictReader(found.read_text(encoding="utf-8").splitlines())
    return ServerConstants(**{row["constant"]: float(row["value"]) for row in rows})


def service_s(
    tensors: Floats | float,
    gradient_bytes: Floats | float,
    network_bytes_per_s: Floats | float,
    constants: ServerConstants,
) -> Floats:
    """Seconds S that one update keeps a server busy; arguments broadcast.

    `tensors` and `gradient_bytes` are those on the server; of k servers, the most loaded one
    counts. Weights are sent while gradients are received, so bytes cross the network once.
    """
    with np.errstate(divide="ignore"):
        sent = np.asarray(gradient_bytes) / np.asarray(network_bytes_per_s)
    own = constants.tensor_s * np.asarray(tensors) + constants.byte_s * np.asarray(gradient_bytes)
    return np.asarray(own + sent + constants.update_s)


def worker_s(tensors: float, vcpus: float, constants: ServerConstants) -> float:
    """Seconds of a worker's CPU per update: sending and receiving tensors, running the step."""
    return (constants.worker_tensor_s * tensors + constants.worker_update_s) / vcpus


def service_share(workers: Floats, alone_s: Floats, served_s: Floats, sd: Floats) -> Floats:
    """Share of the servers in the time of an update, -d ln X / d ln S; arguments broadcast.

    A secant over one sd of ln S to either side, so that it sees servers that may be full and may
    not. X(n) falls with T and S and is of degree -1 in both together, so it lies in [0, 1] and the
    worker's share is the rest: 0 where servers idle or there is one worker, 1 where they are full.
    """
    low, high = np.exp(-sd), np.exp(sd)
    quick, slow = (updates_per_s(workers, alone_s, served_s * by) for by in (low, high))
    return np.asarray(np.clip(np.log(quick / slow) / (2.0 * np.asarray(sd)), 0.0, 1.0))


def spread(worker_sd: Floats | float, service_sd: Floats, share: Floats) -> Floats:
    """Sd of ln time of an update if the errors of worker and server are independent."""
    return np.asarray(np.hypot((1.0 - share) * worker_sd, share * service_sd))


def posterior_sds(
    worker_sd: float, service_sd: float, shares: Floats, noise: float
) -> tuple[float, float]:
    """Sds of ln T and ln S after timings in which servers had some shares of the step; (timings,).

    A timing measures (1 - share)·ln T + share·ln S with `noise`. The resulting correlation of both
    is dropped, which makes spans at other loads slightly too wide.
    """
    seen = np.stack([1.0 - shares, shares])
    curve = np.diag([worker_sd**-2, service_sd**-2]) + seen @ seen.T / noise**2
    worker, service = np.sqrt(np.diag(np.linalg.inv(curve))).tolist()
    return worker, service


def placement_sd(servers: Floats | float) -> Floats:
    """Sd of ln share of the bytes on the most loaded of k servers: ln k / 2."""
    return np.asarray(0.5 * np.log(servers))


def servers_of(job: Job, machines: Floats) -> Floats:
    """The number of servers of clusters of so many machines: as requested, at most one each.

    One machine needs none, nor does an all-reduce.
    """
    if job.sync != "parameter_server":
        return np.zeros(np.shape(machines))
    found = np.minimum(float(job.parameter_servers), machines)
    return np.asarray(np.where(np.asarray(machines) > 1, found, 0.0))


def max_server_share(servers: Floats | float) -> Floats:
    """Share of the bytes on the most loaded of k servers: 1/√k.

    It is between 1/k, if tensors are divided evenly, and 1, if the large ones are all on one server
    (TensorFlow assigns in turn: with two servers and an even number of variables per layer all
    kernels are). Which one holds is not known; this is the geometric mean.
    """
    return np.asarray(np.asarray(servers, dtype=np.float64) ** -0.5)


def updates_per_s(workers: Floats, alone_s: Floats, served_s: Floats, cv2: float = 0.0) -> Floats:
    """Updates per second of n equal workers; arguments broadcast.

    `alone_s` T is a worker's step with an idle server, of which at least `served_s` S is service (T
    = max(T, S)); `cv2` is the squared coefficient of variation of the service. Never above n/T nor
    1/S; does not fall when T or S fall.
    """
    workers, alone, served = np.broadcast_arrays(workers, np.maximum(alone_s, served_s), served_s)
    theta = (1.0 + cv2) / 2.0
    rate, queued = np.zeros(workers.shape), np.zeros(workers.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for n in range(1, int(workers.max(initial=0.0)) + 1):
            more = np.minimum(n / (alone + theta * served * queued), 1.0 / served)
            rate = np.where(workers >= n, more, rate)
            queued = n - (alone - served) * rate
    return rate


@dataclass(frozen=True, slots=True)
class Service:
    """The cost of one update at the most loaded server of each cluster; shape (clusters,)."""

    served_s: Floats
    of_bytes: Floats  # share of it that bytes take, whose placement is not known
    placed_sd: Floats  # sd of ln share of the bytes that lie on it

    def spread(self, sd: Floats | float, placement_sd: Floats | float) -> Floats:
        """Sd of ln S: `sd` of the constants, and the unknown placement of the bytes."""
        left = np.minimum(self.placed_sd, placement_sd)
        return np.asarray(np.hypot(sd, self.of_bytes * left))


def service_of(job: Job, prior: Prior, fleet: Clusters) -> Service:
    """The servers of some clusters: as many as requested, at most one per machine.

    Each is a CPU machine of its own, as in the runs of the fit, and on the bill
    (`optimize/evaluate.py`). Tensors are divided evenly, bytes according to `max_server_share`.
    """
    constants, factor = load_constants(), prior.service
    servers = np.maximum(servers_of(job, fleet.machines), 1.0)
    tensors = job.gradient_tensors / servers
    sent = bytes_of(job, prior).reduced * max_server_share(servers)
    network = np.minimum(fleet.network_bytes_per_s, SERVER_BYTES_PER_S)
    served = service_s(tensors, sent, network, constants)
    of_bytes = 1.0 - service_s(tensors, 0.0, np.inf, constants) / served
    return Service(factor * served, of_bytes, placement_sd(servers))


def alone_s(job: Job, prior: Prior, local_s: Floats) -> Floats:
    """Seconds of a worker with an idle server: its own step, then its CPU's."""
    update_s = worker_s(job.gradient_tensors, WORKER_VCPUS, load_constants())
    return local_s + prior.worker * update_s


def shares_of(job: Job, service: Service, fleet: Clusters, local_s: Floats, sd: Floats) -> Floats:
    """The servers' share of each cluster's step; `sd` of ln S."""
    # Clusters that cannot run have no share, nor has one machine, which needs no server.
    runs = (fleet.machines > 1) & np.isfinite(local_s) & np.isfinite(service.served_s)
    alone = alone_s(job, prior_of(job), np.where(runs, local_s, 1.0))
    served = np.where(runs, service.served_s, 1.0)
    return np.where(runs, service_share(fleet.machines, alone, served, sd), 0.0)


def cluster_spread(
    job: Job, columns: MachineColumns, fleet: Clusters, found: Steps, kind: Ints, counts: Ints
) -> Floats:
    """Sd of ln(true speed / predicted speed) of clusters; `counts` (clusters, types of `kind`).

    With parameter servers, the worker's spread is that of one machine and the servers' is weighted
    by their share of the step. Rounded up, so that there are few different spreads.
    """
    if columns.service_sigma is None or columns.placement_sigma is None:
        return spread_of(columns, kind, counts)
    worker, server, placed = (
        np.where(counts > 0, each[kind], 0.0).max(axis=1)
        for each in (columns.speed_sigma, columns.service_sigma, columns.placement_sigma)
    )
    service = service_of(job, prior_of(job), fleet)
    sd = service.spread(server, placed)
    local = (found.step_s - found.exposed_network_s) * job.batch_growth(fleet.gpus)
    both = spread(worker, sd, shares_of(job, service, fleet, local, sd))
    rounded = np.ceil(both / SPREAD_STEP - 1e-9) * SPREAD_STEP
    return np.where(counts.sum(axis=1) == 1, worker, rounded)
