"""The pool finds the best plan where parameter servers make clusters saturate."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.space import Space
from recommender.performance.clusters import SPREAD_STEP
from recommender.performance.parameter_server import cluster_spread, placement_sd
from recommender.performance.step import steps
from tests.recommender.optimize.palette import (
    every_cluster,
    no_fallbacks,
    space,
)
from tests.recommender.optimize.pooled import on_product_paths, problem
from tests.recommender.optimize.samples import thinned

SEEDS = range(300, 324)


def served(seed: int) -> Space:
    """A random space of one region whose workers wait for one or two servers."""
    found = space(seed, entries=3 + seed % 2, most=5)
    site = replace(found.sites[0], fallbacks=no_fallbacks())
    limits = found.limits
    if limits.goal == "frontier":
        limits = replace(limits, objective="cost" if seed % 2 else "time")
    job = replace(
        found.job,
        elastic=False,
        sync="parameter_server",
        parameter_servers=1 + seed % 2,
        global_batch=(256, 2048, 16384)[seed % 3],
    )
    kinds = len(found.columns.names)
    columns = replace(
        found.columns,
        service_sigma=np.random.default_rng(seed).uniform(0.02, 0.4, kinds),
        placement_sigma=np.full(kinds, placement_sd(job.parameter_servers)),
    )
    return replace(
        found,
        job=job,
        limits=limits,
        columns=columns,
        sites=(site,),
        steps_left=found.steps_left / 2,
    )


def test_the_random_spaces_hold_free_and_saturated_servers() -> None:
    shares = []
    for seed in SEEDS:
        asked = served(seed)
        site = asked.sites[0]
        counts = every_cluster(site, asked.limits.max_machines)
        found = steps(asked.job, asked.columns, asked.fleet(site, counts[counts.sum(axis=1) > 1]))
        runs = np.isfinite(found.step_s)
        shares += (found.exposed_network_s[runs] / found.step_s[runs]).tolist()
    assert np.quantile(shares, 0.1) < 0.2
    assert np.quantile(shares, 0.9) > 0.6


def test_one_machine_has_its_own_spread_and_several_have_one_of_few() -> None:
    every = set()
    for seed in SEEDS:
        asked = served(seed)
        site = asked.sites[0]
        counts = every_cluster(site, asked.limits.max_machines)
        fleet, kind = asked.fleet(site, counts), site.entries.kind
        found = steps(asked.job, asked.columns, fleet)
        spreads = cluster_spread(asked.job, asked.columns, fleet, found, kind, counts)
        alone = counts.sum(axis=1) == 1
        own = asked.columns.speed_sigma[kind][counts[alone].argmax(axis=1)]
        np.testing.assert_allclose(spreads[alone], own)
        steps_of = spreads[~alone] / SPREAD_STEP
        np.testing.assert_allclose(steps_of, np.round(steps_of), atol=1e-6)
        every |= set(np.round(spreads, 9).tolist())
    assert len(every) > 10


@pytest.mark.parametrize("seed", thinned(SEEDS, 6))
def test_the_pool_equals_looking_at_every_plan(seed: int) -> None:
    assert not problem(on_product_paths(served(seed)))
