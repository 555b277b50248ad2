"""The lines below a step time hold for every cluster of a box."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.performance.clusters import MachineColumns, clusters_of
from recommender.performance.priors import prior_of
from recommender.performance.step import steps
from recommender.performance.step_bounds import shortest
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
        speed_sigma_several=np.full(KINDS, 0.1),
        reasons=("",) * KINDS,
        link_gpus=gpus * rng.choice([1.0, 1.0, 3.0], KINDS),
    )


TRANSFORMER = {
    "hidden": 2048,
    "layers": 24,
    "tokens_per_sample": 64,
    "activation_bytes_per_sample": 9e8,
    "recomputed_activation_bytes_per_sample": 1e8,
}


@pytest.mark.parametrize("sharding", ["auto", "ddp", "fsdp", "hsdp"])
@pytest.mark.parametrize("sync", ["allreduce", "parameter_server"])
@pytest.mark.parametrize("seed", range(8))
def test_no_cluster_of_a_box_is_faster_than_its_lines(seed, sharding, sync):
    check_lines(seed, sharding=sharding, sync=sync)


@pytest.mark.parametrize("sharding", ["auto", "ddp", "fsdp"])
@pytest.mark.parametrize("sync", ["allreduce", "parameter_server"])
@pytest.mark.parametrize("seed", range(6))
def test_no_cluster_whose_gpus_keep_their_batch_is_faster_than_its_lines(seed, sync, sharding):
    kept = {"batch_per_gpu": True, "batches": (1, 32, 700)}
    check_lines(seed, sharding=sharding, sync=sync, **kept)
    check_lines(
        seed, sharding=sharding, sync=sync, family="decoder", stack="typical", **kept, **TRANSFORMER
    )
    check_lines(seed, sync=sync, max_global_batch=4096.0, **kept)


@pytest.mark.parametrize("sharding", ["auto", "tensor", "pipeline"])
@pytest.mark.parametrize("seed", range(6))
def test_no_layout_with_a_batch_per_gpu_is_faster_than_its_lines(seed, sharding):
    kept = {"batch_per_gpu": True, "batches": (1, 32)}
    check_lines(seed, sharding=sharding, family="decoder", stack="tuned", **kept, **TRANSFORMER)


@pytest.mark.parametrize("sharding", ["auto", "tensor", "pipeline", "fsdp"])
@pytest.mark.parametrize("family", ["decoder", "encoder"])
@pytest.mark.parametrize("seed", range(12))
def test_no_cluster_with_model_parallelism_is_faster_than_its_lines(seed, sharding, family):
    check_lines(seed, sharding=sharding, family=family, stack="tuned", **TRANSFORMER)


@pytest.mark.parametrize("sharding", ["auto", "pipeline"])
@pytest.mark.parametrize("seed", range(12))
def test_no_cluster_that_divides_experts_is_faster_than_its_lines(seed, sharding):
    check_lines(seed, sharding=sharding, family="moe", stack="tuned", **TRANSFORMER)


@pytest.mark.parametrize("sharding", ["auto", "context"])
@pytest.mark.parametrize("seed", range(12))
def test_no_cluster_that_shares_sequences_is_faster_than_its_lines(seed, sharding):
    """Batches of fewer samples than GPUs, which nothing but shared sequences and layers allow."""
    long = {**TRANSFORMER, "tokens_per_sample": 65_536}
    check_lines(seed, sharding=sharding, family="decoder", stack="tuned", batches=(2, 8), **long)


@pytest.mark.parametrize("sharding", ["auto", "ddp", "fsdp", "hsdp"])
@pytest.mark.parametrize("sync", ["allreduce", "parameter_server"])
@pytest.mark.parametrize("layers", [2, 40, 400])
@pytest.mark.parametrize("seed", range(6))
def test_no_cluster_that_starts_its_kernels_one_by_one_is_faster(seed, layers, sync, sharding):
    """Few layers hardly matter, 400 decide every step of these machines."""
    eager = {**TRANSFORMER, "layers": layers}
    check_lines(seed, sharding=sharding, sync=sync, family="decoder", stack="typical", **eager)


def test_the_time_of_starting_kernels_is_a_line_of_its_own():
    """A cluster too fast for its micro-batches meets it to a few per cent."""
    network = job(
        family="decoder", stack="typical", global_batch=64, **{**TRANSFORMER, "layers": 400}
    )
    machines = replace(columns(np.random.default_rng(0)), memory_bytes=np.full(KINDS, 1e13))
    machines = replace(machines, compute_per_s=1e9 * machines.gpus)
    one = np.eye(KINDS, dtype=np.int64)
    step = steps(network, machines, clusters_of(machines, one)).step_s
    lines = shortest(network, machines, np.arange(KINDS), 1).lines(
        one, one, np.ones(KINDS, dtype=np.int64)
    )
    bound = np.max([seconds + samples / machines.compute_per_s for seconds, samples in lines], 0)
    least = prior_of(network).launch_s
    assert least == pytest.approx(2 * 0.56e-3 * 400)
    assert (bound >= least).all()
    assert (step <= bound * 1.05).any()
    assert (step >= bound * (1 - 1e-9)).all()


@pytest.mark.usefixtures("punctual")
def test_gpus_that_share_layers_lose_a_micro_batch_once():
    """8 samples on 8 GPUs: each GPU alone takes the time of 1 + b0, together of (8 + b0)/8."""
    network = job(family="encoder", stack="tuned", global_batch=8, sharding="tensor", **TRANSFORMER)
    network = replace(network, gradient_tensors=0, hidden=8192)
    machines = replace(
        columns(np.random.default_rng(0)),
        gpus=np.full(KINDS, 8.0),
        compute_per_s=np.full(KINDS, 800.0),
        memory_bytes=np.full(KINDS, 1e12),
        intra_bytes_per_s=np.full(KINDS, np.inf),
    )
    one = np.eye(KINDS, dtype=np.int64)[:1]
    step = steps(network, machines, clusters_of(machines, one)).step_s
    assert step * 800.0 == pytest.approx(8.0 + prior_of(network).batch_penalty)
    for seconds, samples in shortest(network, machines, np.arange(KINDS), 1).lines(
        one, one, np.ones(1, dtype=np.int64)
    ):
        assert (seconds + samples / 800.0 <= step * (1 + 1e-9)).all()


def check_lines(seed, batches=(64, 1000, 8192), **changes):
    """The lines of random boxes against the step of a random cluster in each."""
    rng = np.random.default_rng(seed)
    network = job(
        global_batch=int(rng.choice(batches)),
        parameter_servers=1 + seed % 3,
        parameters=(size := float(rng.choice([25e6, 1e9]))),
        active_parameters=size,
        trainable_parameters=size,
        **changes,
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
    step = steps(network, machines, clusters_of(machines, inside)).step_s
    compute = inside @ machines.compute_per_s
    for seconds, samples in lines:
        assert (seconds + samples / compute <= step * (1 + 1e-9)).all()
