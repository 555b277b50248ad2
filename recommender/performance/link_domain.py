"""GPUs of several machines whose links are those of one machine: NVLink domains.

A GB200 NVL72 or GB300 NVL72 rack links 72 GPUs through NVLink switches; clouds let it as 18
machines of four. Machines of one rack exchange at the rate of a machine's links, so the formulas
see a link domain as one machine: as many GPUs as are in it, its machines' network cards together,
and what one card needs to reach half of its rate as many times (a message is cut among them).

Clusters of more than a rack are spread evenly over the fewest racks; where these cannot have as
many machines each, the largest stands for all. Of several types of machines nobody links the GPUs,
and parameter servers have a worker for each machine, whatever links it.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import Job
from recommender.performance.clusters import Clusters, MachineColumns

# GPUs of one NVLink domain ("GB200 NVL72", "GB300 NVL72": NVIDIA's product pages, 2026-08; Azure's
# ND GB200 v6: "18 compute servers (72 GPUs)" in one domain, Microsoft Learn, 2026-08).
DOMAIN_GPUS = {"GB200": 72, "GB300": 72}
ENDLESS = 1e30  # bytes/s


def link_gpus(gpu: str, gpus: int) -> float:
    """GPUs that the links of a machine of so many GPUs reach, its own at least."""
    return float(max(DOMAIN_GPUS.get(gpu, 0), gpus))


def linked(job: Job, fleet: Clusters) -> Clusters:
    """Clusters with each link domain as one machine; those of other machines as they are."""
    each = np.floor(fleet.link_gpus / np.maximum(fleet.gpus_per_machine, 1.0))
    shared = (each > 1) & (fleet.machines > 1) & (fleet.network_bytes_per_s > 0)
    if job.sync != "allreduce" or not shared.any():
        return fleet
    domains = np.where(shared, np.ceil(fleet.machines / np.maximum(each, 1.0)), fleet.machines)
    most = np.ceil(fleet.machines / domains)
    return replace(
        fleet,
        machines=domains,
        gpus_per_machine=fleet.gpus_per_machine * most,
        network_bytes_per_s=fleet.network_bytes_per_s * most,
        network_half_bytes=fleet.network_half_bytes * most,
    )


def without_network(columns: MachineColumns) -> MachineColumns:
    """Columns for bounds: what linked machines exchange takes no time.

    Bounds work out traffic on machines of one GPU, of which a domain holds an unknown number.
    """
    reach = columns.link_gpus
    if reach is None:
        return columns
    far = reach > columns.gpus

    def freed(values: Floats, instead: float) -> Floats:
        return np.where(far & (columns.network_bytes_per_s > 0), instead, values)

    return replace(
        columns,
        network_bytes_per_s=freed(columns.network_bytes_per_s, ENDLESS),
        network_half_bytes=freed(columns.network_half_bytes, 0.0),
        network_latency_s=freed(columns.network_latency_s, 0.0),
    )
