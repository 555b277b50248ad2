"""Speeds and memory of the programs hold for clusters that cut the network."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.program_data import ProgramData, relaxed
from recommender.optimize.space import single_steps
from tests.recommender.optimize.palette import space

SEEDS = range(2, 122, 4)  # those of the palette with a transformer


def ready(seed: int, sharding: str, **changes: object) -> tuple[ProgramData, np.ndarray]:
    """A site with fast links and a small batch, and the steps of n machines of each entry."""
    asked = space(seed, entries=4, most=6)
    job = replace(asked.job, family="encoder", stack="tuned", global_batch=16, sharding=sharding)
    job = replace(job, **changes)  # type: ignore[arg-type]
    links = np.where(asked.columns.gpus > 1, 1e13, np.inf)
    asked = replace(asked, job=job, columns=replace(asked.columns, intra_bytes_per_s=links))
    site = asked.sites[0]
    return relaxed(asked, site), single_steps(job, asked.columns, 6)[site.entries.kind]


@pytest.mark.parametrize("sharding", ["auto", "tensor", "pipeline"])
def test_no_machine_is_faster_than_its_row(sharding: str) -> None:
    for seed in SEEDS:
        r, steps = ready(seed, sharding)
        for n in range(1, 7):
            speed = r.space.job.global_batch / steps[:, n - 1] / r.unit
            assert (speed <= n * r.speed * (1 + 1e-9)).all(), seed


@pytest.mark.parametrize("sharding", ["auto", "tensor", "pipeline"])
def test_no_cluster_that_runs_has_fewer_gpus_than_are_needed(sharding: str) -> None:
    heavy = {"activation_bytes_per_sample": 5e10, "recomputed_activation_bytes_per_sample": 4e10}
    for seed in SEEDS:
        r, steps = ready(seed, sharding, **heavy)
        gpus = r.space.columns.gpus[r.site.entries.kind]
        for n in range(1, 7):
            runs = np.isfinite(steps[:, n - 1])
            assert (n * gpus[runs] >= r.gpus_needed[runs]).all(), seed


@pytest.mark.parametrize("sharding", ["auto", "tensor", "pipeline"])
def test_every_level_is_at_least_as_fast_as_its_clusters_of_one_type(sharding: str) -> None:
    for seed in SEEDS:
        r, steps = ready(seed, sharding)
        gpus = r.space.columns.gpus[r.site.entries.kind]
        network = r.space.columns.network_bytes_per_s[r.site.entries.kind]
        for i, n in np.ndindex(steps.shape):
            speed = r.space.job.global_batch / steps[i, n] / r.unit
            mine = [
                max(min(a + b * (n + 1) * r.compute[i] for a, b in level.tangents), 0.0)
                for level in r.levels
                if level.min_machines <= n + 1 <= level.max_machines
                and level.network <= network[i]
                and gpus[i] <= level.gpus
            ]
            assert speed == 0.0 or speed <= max(mine) * (1 + 1e-9), (seed, i, n)
