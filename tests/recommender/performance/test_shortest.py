"""The lines below a step time hold for every cluster of a box."""

import numpy as np
import pytest

from recommender.performance.fleet import MachineColumns, fleet_of
from recommender.performance.shortest import shortest
from recommender.performance.step import steps
from tests.recommender.optimize.palette import job

KINDS, CAP = 4, 6


def columns(rng: np.random.Generator) -> MachineColumns:
    gpus = rng.choice([1.0, 2.0, 8.0], KINDS)
    return MachineColumns(
        names=tuple(f"own/t{i}" for i in range(KINDS)),
        gpus=gpus,
        compute_per_s=gpus * rng.uniform(50, 2000, KINDS),
        memory_bytes=rng.choice([6e9, 1.4e10, 7.3e10], KINDS),
        network_bytes_per_s=rng.choice([0.3e9, 1.2e9, 6e9, 5e10], KINDS),
        network_half_bytes=rng.choice([0.0, 1e6, 3e7], KINDS),
        network_latency_s=rng.choice([1e-4, 5e-4], KINDS),
        intra_bytes_per_s=np.where(gpus > 1, rng.choice([1e10, 2e11], KINDS), np.inf),
        prepare_per_s=np.full(KINDS, np.inf),
        fetch_per_s=np.full(KINDS, np.inf),
        host_bytes_per_s=gpus * 1.2e10,
        disk_bytes_per_s=np.full(KINDS, 1e9),
        speed_sigma=np.full(KINDS, 0.1),
        reasons=("",) * KINDS,
    )


@pytest.mark.parametrize("sharding", ["auto", "ddp", "fsdp", "hsdp"])
@pytest.mark.parametrize("sync", ["allreduce", "parameter_server"])
@pytest.mark.parametrize("seed", range(8))
def test_no_cluster_of_a_box_is_faster_than_its_lines(seed, sharding, sync):
    rng = np.random.default_rng(seed)
    network = job(
        global_batch=int(rng.choice([64, 1000, 8192])),
        sharding=sharding,
        sync=sync,
        parameter_servers=1 + seed % 3,
        parameters=(size := float(rng.choice([25e6, 1e9]))),
        active_parameters=size,
        trainable_parameters=size,
    )
    machines = columns(rng)
    low = rng.integers(0, CAP, (300, KINDS))
    high = low + rng.integers(0, CAP, (300, KINDS))
    inside = rng.integers(low, high + 1)
    inside[inside.sum(axis=1) == 0, 0] = 1
    high = np.maximum(high, inside)
    lines = shortest(network, machines, np.arange(KINDS), int(high.sum(axis=1).max())).lines(
        low, high, inside.sum(axis=1)
    )
    step = steps(network, machines, fleet_of(machines, inside)).step_s
    compute = inside @ machines.compute_per_s
    for seconds, samples in lines:
        assert (seconds + samples / compute <= step * (1 + 1e-9)).all()
