"""NVLink domains: GPUs of several machines whose links are those of one machine.

A GB200 NVL72 or GB300 NVL72 rack links 72 GPUs through NVLink switches; clouds rent it as 18
machines of four. Machines of one rack communicate at the rate of a machine's links, so the formulas
treat a link domain as one machine: with all its GPUs, the network cards of its machines together,
and correspondingly larger half-rate messages (a message is divided among the cards).

Clusters larger than a rack are spread evenly over as few racks as possible; if the machines cannot
be divided evenly, the largest group is used. What needs groups alike has another choice, parts
of racks of a power of two of machines: a rack is bandwidth and no cluster is refused for its shape.
Machines of different types are not linked, and parameter servers have a worker for each machine in
any case.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.job.job import Job
from recommender.performance.clusters import Clusters

# GPUs of one NVLink domain ("GB200 NVL72", "GB300 NVL72": NVIDIA's product pages, 2026-08; Azure's
# ND GB200 v6: "18 compute servers (72 GPUs)" in one domain, Microsoft Learn, 2026-08).
DOMAIN_GPUS = {"GB200": 72, "GB300": 72}


def link_gpus(gpu: str, gpus: int) -> float:
    """Number of GPUs that the links of a machine with so many GPUs connect, at least its own."""
    return float(max(DOMAIN_GPUS.get(gpu, 0), gpus))


def linked(job: Job, fleet: Clusters) -> Clusters:
    """Treat each link domain as one machine; other clusters are unchanged."""
    each = _together(job, fleet)
    if each is None:
        return fleet
    domains = np.ceil(fleet.machines / each)
    return _grouped(fleet, domains, np.ceil(fleet.machines / domains))


def alike(job: Job, fleet: Clusters) -> tuple[Ints, tuple[Clusters, ...]]:
    """The clusters whose machines share links, and these in parts of 1, 2, 4, ... machines."""
    each = _together(job, fleet)
    rows = np.flatnonzero(each > 1.0) if each is not None else np.zeros(0, dtype=np.int64)
    if each is None or not len(rows):
        return rows, ()
    found = fleet.take(rows)
    most = 2.0 ** np.floor(np.log2(np.minimum(each[rows], found.machines)))
    sizes = (np.minimum(2.0**power, most) for power in range(int(np.log2(most.max())) + 1))
    return rows, tuple(_grouped(found, np.ceil(found.machines / size), size) for size in sizes)


def _together(job: Job, fleet: Clusters) -> Floats | None:
    """The machines that share links, 1 where they have their own; None if all have."""
    each = np.floor(fleet.link_gpus / np.maximum(fleet.gpus_per_machine, 1.0))
    shared = (each > 1) & (fleet.machines > 1) & (fleet.network_bytes_per_s > 0)
    if job.sync != "allreduce" or not shared.any():
        return None
    return np.where(shared, each, 1.0)


def _grouped(fleet: Clusters, domains: Floats, most: Floats) -> Clusters:
    return replace(
        fleet,
        machines=domains,
        gpus_per_machine=fleet.gpus_per_machine * most,
        network_bytes_per_s=fleet.network_bytes_per_s * most,
        network_half_bytes=fleet.network_half_bytes * most,
    )
