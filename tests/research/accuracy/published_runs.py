"""Published training runs as jobs, machines and runs: what the recommender would be given."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recommender.job.job import Job, TimedRun
from recommender.performance.clusters import MachineColumns
from recommender.performance.gpu_speed import sample_rate
from recommender.performance.machines import RDMA_HALF_GBIT, RDMA_HALF_MIB, RDMA_LATENCY_S
from recommender.performance.memory import bytes_of, extra_gathered_bytes
from recommender.performance.priors import prior_of
from tests.research.fits.model import KEY, USUAL_BATCH

MIB = 2.0**20
SAMPLE_BYTES = 1e12  # of activations: with the memory below, the stated micro-batch just fits


def series_of(rows: pd.DataFrame, by_machine: bool = False) -> "pd.Series[str]":
    """Name the series of each run: the same source, network, software, precision and GPU.

    `by_machine`: the same machine too, where the source names it (DGX-1 or DGX-2).
    """
    key = [*KEY, "machine"] if by_machine else KEY
    named: pd.Series[str] = rows[key].astype(str).agg("|".join, axis=1)
    return named + "|" + rows.flop.round(-9).astype(str)


def job_of(row: Any) -> Job:
    """The job of a published run; memory is set so that its micro-batch is what was stated."""
    return Job(
        name=str(row.model),
        title=str(row.model),
        family=row.family,
        parameters=row.parameters,
        active_parameters=row.parameters,
        trainable_parameters=row.parameters,
        sample_unit="sample",
        tokens_per_sample=1,
        # Without its tokens: what attention of long sequences takes longer is counted as FLOP here.
        # Recomputation is a third more arithmetic; requested as such, it would be avoided.
        flop_per_sample=(row.flop + row.long_flop) * (4 / 3 if row.recompute else 1),
        samples=1e6,
        global_batch=batch_of(row),
        gradient_tensors=int(row.tensors),
        hidden=int(row.hidden),
        layers=int(row.layers),
        vocabulary=0,
        activation_bytes_per_sample=SAMPLE_BYTES,
        recomputed_activation_bytes_per_sample=SAMPLE_BYTES,
        checkpoint_bytes=1.0,
        precision="mixed" if row.precision == "bf16" else row.precision,
        sharding="fsdp" if row.sharded else "ddp",
        stack=row.tuning,
    )


def batch_of(row: Any) -> int:
    """Samples of one step of all GPUs."""
    return round(float(micro_of(row) * row.rounds * row.nodes * row.per_node))


def micro_of(row: Any) -> float:
    """Samples of one micro-batch; the family's usual one where none was stated."""
    return float(row.batch if np.isfinite(row.batch) else USUAL_BATCH[row.family])


def runs_of(rows: Sequence[Any]) -> tuple[TimedRun, ...]:
    """The runs of one series; each on a machine type of its own, its memory being its own."""
    return tuple(
        TimedRun(
            place=f"{row.source}: {row.model}, {row.nodes:g} x {row.per_node:g} {row.gpu}",
            machine=f"own/{i}",
            gpu=str(row.gpu),
            gpus=round(row.nodes * row.per_node),
            machines=round(row.nodes),
            batch=batch_of(row),
            step_s=batch_of(row) / (row.rate * row.nodes * row.per_node),
        )
        for i, row in enumerate(rows)
    )


def columns_of(job: Job, rows: Sequence[Any]) -> MachineColumns:
    """The machines of one series' runs."""
    prior, needs = prior_of(job), bytes_of(job, prior_of(job))
    per, nodes, network, links = np.array(
        [(row.per_node, row.nodes, row.network, row.links) for row in rows], dtype=np.float64
    ).T
    shards = np.where([row.sharded for row in rows], per * nodes, 1.0)
    micro = np.array([micro_of(row) for row in rows])
    rate = [sample_rate(job, prior, str(row.precision), row.matmul, row.memory) for row in rows]
    endless = np.full(len(rows), np.inf)
    return MachineColumns(
        names=tuple(f"own/{i}" for i in range(len(rows))),
        gpus=per,
        compute_per_s=np.array(rate) * per,
        memory_bytes=needs.context
        + needs.states / shards
        + extra_gathered_bytes(needs, shards)
        + (micro + 0.5) * SAMPLE_BYTES,
        device_bytes_per_s=np.array([row.memory for row in rows], dtype=np.float64),
        network_bytes_per_s=network,
        network_half_bytes=np.interp(network * 8e-9, RDMA_HALF_GBIT, RDMA_HALF_MIB) * MIB,
        network_latency_s=np.full(len(rows), RDMA_LATENCY_S),
        intra_bytes_per_s=np.where(per > 1, links, np.inf),
        prepare_per_s=endless,
        fetch_per_s=endless,
        host_bytes_per_s=endless,
        disk_bytes_per_s=endless,
        speed_sigma=np.full(len(rows), prior.sigma_one),
        speed_sigma_several=np.full(len(rows), prior.sigma_several),
        reasons=("",) * len(rows),
    )
