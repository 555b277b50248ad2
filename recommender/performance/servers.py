"""Parameter servers of a job's clusters: their time per update, and what it adds to the spread.

An update takes the worker's time T and the servers' S; both are known to so much, and which of
them counts depends on the load (`parameter_server.service_share`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.job import Job
from recommender.performance.fleet import SPREAD_STEP, Fleet, MachineColumns, Steps, spread_of
from recommender.performance.memory import bytes_of
from recommender.performance.parameter_server import (
    WORKER_VCPUS,
    fullest_share,
    load_constants,
    placement_sd,
    service_s,
    service_share,
    spread,
    worker_s,
)
from recommender.performance.priors import Prior, prior_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Service:
    """What one update costs the fullest server of each cluster; shape (clusters,)."""

    served_s: Floats
    of_bytes: Floats  # share of it that bytes take, whose placement is not known
    placed_sd: Floats  # sd of ln share of the bytes that lie on it

    def spread(self, sd: Floats | float, placement_sd: Floats | float) -> Floats:
        """Sd of ln S: `sd` of the constants, and what is left to know of the bytes' placement."""
        left = np.minimum(self.placed_sd, placement_sd)
        return np.asarray(np.hypot(sd, self.of_bytes * left))


def service_of(job: Job, prior: Prior, fleet: Fleet) -> Service:
    """The servers of some clusters: as many as asked for, one for each machine at most.

    They run on the CPUs of the first machines and cost nothing more. Tensors are dealt out
    evenly, bytes as `fullest_share` says.
    """
    constants, factor = load_constants(), prior.service
    servers = np.minimum(float(job.parameter_servers), np.maximum(fleet.machines, 1.0))
    tensors = job.gradient_tensors / servers
    sent = bytes_of(job, prior).reduced * fullest_share(servers)
    network = fleet.network_bytes_per_s
    served = service_s(tensors, sent, network, constants)
    of_bytes = 1.0 - service_s(tensors, 0.0, np.inf, constants) / served
    return Service(factor * served, of_bytes, placement_sd(servers))


def alone_s(job: Job, local_s: Floats) -> Floats:
    """Seconds of a worker with an idle server: its own step, then its CPU's."""
    return local_s + worker_s(job.gradient_tensors, WORKER_VCPUS, load_constants())


def shares_of(job: Job, service: Service, fleet: Fleet, local_s: Floats, sd: Floats) -> Floats:
    """Share of the servers in each cluster's step; `sd` of ln S."""
    # Clusters that cannot run have no share, nor has one machine, which needs no server.
    runs = (fleet.machines > 1) & np.isfinite(local_s) & np.isfinite(service.served_s)
    alone = alone_s(job, np.where(runs, local_s, 1.0))
    served = np.where(runs, service.served_s, 1.0)
    return np.where(runs, service_share(fleet.machines, alone, served, sd), 0.0)


def cluster_spread(
    job: Job, columns: MachineColumns, fleet: Fleet, found: Steps, kind: Ints, counts: Ints
) -> Floats:
    """Sd of ln(true speed / predicted speed) of clusters; `counts` (clusters, types of `kind`).

    With parameter servers: the worker's as of one machine, the servers' by their share of the
    step. Rounded up, so that clusters have few different spreads and bounds know them all.
    """
    if columns.service_sigma is None or columns.placement_sigma is None:
        return spread_of(columns, kind, counts)
    worker, server, placed = (
        np.where(counts > 0, each[kind], 0.0).max(axis=1)
        for each in (columns.speed_sigma, columns.service_sigma, columns.placement_sigma)
    )
    service = service_of(job, prior_of(job), fleet)
    sd = service.spread(server, placed)
    local = found.step_s - found.exposed_network_s
    both = spread(worker, sd, shares_of(job, service, fleet, local, sd))
    rounded = np.ceil(both / SPREAD_STEP - 1e-9) * SPREAD_STEP
    return np.where(counts.sum(axis=1) == 1, worker, rounded)
