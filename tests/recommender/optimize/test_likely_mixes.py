"""The mixes tried without being asked for: few, of one region, and allowed."""

from dataclasses import replace

import numpy as np

from recommender.optimize.likely_mixes import likely_mixes
from recommender.optimize.space import Site, Space, within_quota
from tests.recommender.optimize.palette import space

MACHINES = 6


def one_region(seed: int, max_overhead: float | None = None) -> Space:
    """A region with every type in both markets."""
    asked = space(seed, entries=3, most=8)
    site, e = asked.sites[0], asked.sites[0].entries
    kind, spot = np.array([0, 0, 1, 1]), np.array([False, True, False, True])
    rows = np.zeros(4, dtype=np.int64)
    entries = replace(e.take(rows), kind=kind, spot=spot, cap=np.full(4, 8))
    both = replace(site, region="here", entries=entries, quota_use=site.quota_use[:, rows])
    free = replace(both, quota_use=np.zeros((0, 4)), quota=np.zeros(0))
    job = replace(asked.job, elastic=True)
    limits = replace(asked.limits, max_machines=8, max_overhead=max_overhead)
    return replace(asked, sites=(free,), job=job, limits=limits)


def mixes_of(asked: Space) -> list[tuple[Site, tuple[int, ...]]]:
    found = likely_mixes(asked, 0, [(0, MACHINES)])
    assert found
    for mix in found:
        counts = np.array([mix.counts])
        assert within_quota(asked.sites[mix.site].only(np.array(mix.entries)), counts).all()
        assert list(mix.entries) == sorted(mix.entries)
        assert sum(mix.counts) <= asked.limits.max_machines
    return [(asked.sites[mix.site], mix.entries) for mix in found]


def markets(site: Site, entries: tuple[int, ...]) -> set[bool]:
    return set(site.entries.spot[list(entries)].tolist())


def test_cores_and_other_types_are_tried_around_a_spot_cluster() -> None:
    found = mixes_of(one_region(1))
    assert {True, False} in [markets(*mix) for mix in found]
    assert {True} in [markets(*mix) for mix in found]


def test_under_an_overhead_limit_only_cores_of_the_same_type_are_tried() -> None:
    asked = one_region(1, 0.02)
    for site, entries in mixes_of(asked):
        assert markets(site, entries) == {True, False}
        assert len(set(site.entries.kind[list(entries)].tolist())) == 1


def test_a_gang_has_no_core() -> None:
    asked = one_region(1)
    gang = replace(asked, job=replace(asked.job, elastic=False))
    assert all(markets(*mix) == {True} for mix in mixes_of(gang))


def test_where_a_type_is_not_for_rent_nothing_is_tried() -> None:
    assert likely_mixes(one_region(1), 0, [(7, MACHINES)]) == []
