"""The mixes that are listed, against all there are."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from recommender.optimize.candidate import Cluster
from recommender.optimize.mixes import NUMBERS, TYPES, best_mixes, mixes_of
from recommender.optimize.space import Space, single_clusters
from recommender.plan.limits import Limits
from tests.recommender.optimize.palette import every_cluster, space
from tests.recommender.optimize.pooled import every, mixes_in, on_product_paths
from tests.recommender.optimize.samples import thinned

TOLERANCE = 1e-3


def listed(q: Space, types: int = TYPES) -> list[Cluster]:
    step_s = single_clusters(q.job, q.columns, q.limits.max_machines).step_s
    return best_mixes(mixes_of(q, range(1), step_s, types, ()), q.limits)


def counts_of(q: Space, clusters: list[Cluster]) -> np.ndarray:
    counts = np.zeros((len(clusters), len(q.sites[0].entries)), dtype=np.int64)
    for row, cluster in enumerate(clusters):
        counts[row, list(cluster.entries)] = cluster.counts
    return counts


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("types", [2, 3])
def test_every_mix_keeps_quotas_the_hourly_limit_and_the_most_machines(
    seed: int, types: int
) -> None:
    q = space(seed, entries=3 + seed % 3, most=4 + seed % 4)
    price = float(np.median(q.sites[0].entries.max_usd_per_hour))
    q = replace(q, limits=replace(q.limits, hourly_usd=3.0 * price if seed % 2 else None))
    found, site = listed(q, types), q.sites[0]
    counts = counts_of(q, found)
    assert len(set(found)) == len(found)
    kinds = (counts > 0).sum(axis=1)
    assert ((kinds >= 2) & (kinds <= types)).all()
    assert (counts.sum(axis=1) <= q.limits.max_machines).all()
    assert (counts <= site.entries.cap).all()
    assert (counts @ site.quota_use.T <= site.quota + 1e-9).all()
    if q.limits.hourly_usd is not None:
        assert (counts @ site.entries.max_usd_per_hour <= q.limits.hourly_usd + 1e-6).all()


@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_of_few_machines_the_numbers_that_are_listed_are_all_there_are(seed: int) -> None:
    """Up to six machines every number is on the grid: nothing that quotas allow is left out."""
    q = space(seed, entries=2, most=4)
    q = replace(q, limits=Limits(max_machines=4, confidence=q.limits.confidence))
    e = q.sites[0].entries
    step_s = single_clusters(q.job, q.columns, 4).step_s
    usable = np.isfinite(step_s[e.kind, 0])
    every_one = [c for c in every_cluster(q.sites[0], 4).tolist() if sum(n > 0 for n in c) == 2]
    if usable.all() and len(every_one) <= 12:  # of one margin so many are kept
        assert sorted(map(tuple, every_one)) == sorted(
            tuple(c) for c in counts_of(q, listed(q)).tolist()
        )


def test_the_numbers_of_the_grid_rise_and_hold_every_small_one() -> None:
    assert list(NUMBERS) == sorted(set(NUMBERS))
    assert set(range(1, 7)) <= set(NUMBERS)


@pytest.mark.parametrize("seed", thinned(range(40), 5))
def test_the_best_of_every_mix_is_listed_or_one_as_good(seed: int) -> None:
    """An elastic job: a steady core with spot machines around it often pays."""
    q = space(seed, entries=3 + seed % 2, most=5)
    q = on_product_paths(replace(q, job=replace(q.job, elastic=True)))
    goal, row = every(q, keep=lambda counts: (counts > 0).sum(axis=1) > 1).best()
    found = mixes_in(q).select(q.limits)
    assert row < 0 or found.goal <= goal * (1 + TOLERANCE)


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5, 7])
def test_where_quotas_leave_one_machine_of_each_type_these_are_put_together(seed: int) -> None:
    """Each of which can hold the job, which by these numbers is the small one."""
    q = space(seed, entries=3, most=3)
    e = q.sites[0].entries
    one_each = replace(
        e, cap=np.ones(3, dtype=np.int64), spot=np.zeros(3, dtype=bool), kind=np.arange(3) % 2
    )
    site = replace(q.sites[0], entries=one_each, quota_use=np.zeros((0, 3)), quota=np.zeros(0))
    q = replace(q, sites=(site,), limits=Limits(max_machines=3))
    wanted = {counts for counts in product((0, 1), repeat=3) if sum(counts) >= 2}
    assert {tuple(c) for c in counts_of(q, listed(q)).tolist()} == wanted
