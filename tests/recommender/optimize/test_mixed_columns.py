"""Mixes that stand in the master program: within quotas, in one region, and only where they can."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from recommender.optimize.columns import Cluster, columns_of, promising_clusters
from recommender.optimize.linear_program import write
from recommender.optimize.master_program import master_program
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


def short_of_machines(seed: int, types: int = 3) -> Space:
    """On-demand machines of some types, one of each at most."""
    space = palette.space(seed, entries=types, most=6)
    site = in_one_region(space.sites[0], np.zeros(types, dtype=bool))
    alone = replace(site, quota_use=np.eye(types), quota=np.ones(types))
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


def test_machines_that_share_a_quota_get_what_those_before_them_leave() -> None:
    """Two of the smaller ones are allowed alone, and one next to the larger one."""
    space = short_of_machines(0, types=2)
    site = replace(space.sites[0], quota_use=np.array([[2.0, 3.0]]), quota=np.array([5.0]))
    assert {mix.counts for mix in mixes_of(replace(space, sites=(site,)))} == {(1, 1)}


def test_names_of_mixes_of_four_types_fit_into_a_file_and_differ(tmp_path: Path) -> None:
    """PuLP refuses names of more than a hundred characters."""
    written = 0
    for seed in range(20):
        space = short_of_machines(seed, types=4)
        kinds = len(space.columns.names)
        names = tuple(f"azure/Standard_ND96isr_MI300X_v{i}" for i in range(kinds))
        space = replace(space, columns=replace(space.columns, names=names))
        step_s = single_steps(space.job, space.columns, space.limits.max_machines)
        program = master_program(space, promising_clusters(space, step_s))
        sizes = (
            ()
            if program is None
            else [len(program.clusters[c].entries) for c in program.columns.cluster]
        )
        if program is not None and max(sizes) == 4:
            write(program.model, tmp_path / "program.lp")
            assert len(set(program.names)) == len(program.names)
            written += 1
    assert written > 0


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
