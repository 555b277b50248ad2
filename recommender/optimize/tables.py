"""Step times of every cluster of one kind of machine, once per question."""

import numpy as np
from numpy.typing import NDArray

from recommender.job import Job
from recommender.performance.fleet import Fleet, MachineColumns
from recommender.performance.step import steps

Floats = NDArray[np.float64]


def single_steps(job: Job, c: MachineColumns, most: int) -> Floats:
    """Step seconds of n = 1 ... most machines of each kind; (kinds, most)."""
    kind = np.repeat(np.arange(len(c.names)), most)
    n = np.tile(np.arange(1.0, most + 1.0), len(c.names))
    fleet = Fleet(
        kind=kind,
        machines=n,
        gpus=n * c.gpus[kind],
        gpus_per_machine=c.gpus[kind],
        compute_per_s=n * c.compute_per_s[kind],
        memory_bytes=c.memory_bytes[kind],
        network_bytes_per_s=c.network_bytes_per_s[kind],
        network_half_bytes=c.network_half_bytes[kind],
        network_latency_s=c.network_latency_s[kind],
        intra_bytes_per_s=c.intra_bytes_per_s[kind],
        prepare_per_s=n * c.prepare_per_s[kind],
        fetch_per_s=n * c.fetch_per_s[kind],
        host_bytes_per_s=n * c.host_bytes_per_s[kind],
        disk_bytes_per_s=c.disk_bytes_per_s[kind],
    )
    return steps(job, c, fleet).step_s.reshape(len(c.names), most)
