"""Mixes that stand in the master program: within quotas, in one region, and only where they can."""

from dataclasses import replace

import numpy as np

from recommender.optimize.columns import Cluster, columns_of, promising_clusters
from recommender.optimize.mixed_columns import mixed_clusters
from recommender.optimize.space import Site, Space, single_steps, within_quota
from tests.recommender.optimize import palette


def mixes_of(space: Space) -> list[Cluster]:
    step_s = single_steps(space.job, space.columns, space.limits.max_machines)
    clusters = promising_clusters(space, step_s)
    return mixed_clusters(space, clusters, columns_of(space, clusters)) if clusters else []


def in_one_region(site: Site, spot: np.ndarray) -> Site:
    """The site with every entry in one region and one zone, spot where it is said."""
    count = len(site.entries)
    one = np.ones(count)
    entries = replace(
        site.entries, region=np.zeros(count, dtype=np.int64), zone_count=one, spot=spot
    )
    return replace(site, entries=entries)


def short_of_machines(seed: int) -> Space:
    """On-demand machines of three types, one of each at most."""
    space = palette.space(seed, entries=3, most=6)
    site = in_one_region(space.sites[0], np.zeros(3, dtype=bool))
    alone = replace(site, quota_use=np.eye(3), quota=np.ones(3))
    return replace(space, sites=(alone,), job=replace(space.job, elastic=False))


def test_where_quotas_are_short_machines_of_several_types_are_put_together() -> None:
    found = 0
    for seed in range(20):
        space = short_of_machines(seed)
        for mix in mixes_of(space):
            counts = np.zeros((1, 3), dtype=np.int64)
            counts[0, list(mix.entries)] = mix.counts
            assert within_quota(space.sites[0], counts).all()
            assert len(mix.entries) >= 2
            found += 1
    assert found >= 20


def test_without_quotas_a_gang_gets_no_mixes() -> None:
    for seed in range(10):
        space = short_of_machines(seed)
        site = space.sites[0]
        free = replace(site, quota_use=np.zeros((0, 3)), quota=np.zeros(0))
        assert mixes_of(replace(space, sites=(free,))) == []


def test_an_elastic_job_gets_cores_with_spot_around_them() -> None:
    found = 0
    for seed in range(20):
        space = palette.space(seed, entries=3, most=6)
        site = in_one_region(space.sites[0], np.array([False, True, True]))
        free = replace(site, quota_use=np.zeros((0, 3)), quota=np.zeros(0))
        elastic = replace(space, sites=(free,), job=replace(space.job, elastic=True))
        for mix in mixes_of(elastic):
            assert sorted(free.entries.spot[list(mix.entries)]) == [False, True]
            assert sum(mix.counts) <= space.limits.max_machines
            found += 1
    assert found >= 20


def test_nothing_is_mixed_where_mixes_are_not_wanted() -> None:
    assert mixes_of(replace(short_of_machines(3), mix=False)) == []
