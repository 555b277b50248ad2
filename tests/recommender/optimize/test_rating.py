"""What the closed form says of plans, against their simulation."""

import numpy as np
import pytest

from recommender.optimize.program import BLUR
from recommender.optimize.space import Space
from recommender.plan.limits import TOLERANCE as WITHIN
from tests.recommender.optimize.pooled import Every, every, mixes_in, pool_of
from tests.recommender.optimize.samples import thinned
from tests.recommender.optimize.test_pool import question

LEAST = 0.9  # rank correlation of rated and simulated goals
ENOUGH = 8  # questions of a chunk that have plans to compare


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def simulated_goal(q: Space, found: Every) -> dict[tuple[object, ...], int]:
    """The row of each plan by its machines, checkpoint path and fallback."""
    plans = found.plans
    return {
        (tuple(counts), int(path), int(fallback)): row
        for row, (counts, path, fallback) in enumerate(
            zip(plans.counts.tolist(), plans.checkpoint_path, plans.fallback, strict=True)
        )
    }


def compared(q: Space) -> tuple[np.ndarray, np.ndarray]:
    """Rated and simulated cost, or time, of the plans of one entry that seem to meet the limits."""
    pool, found = pool_of(q), every(q)
    rows_of, plans = simulated_goal(q, found), pool.plans(q.limits)
    rated, simulated, entries = list[float](), list[float](), len(q.sites[0].entries)
    for row in np.flatnonzero(plans.chance >= q.limits.confidence - BLUR).tolist():
        candidate = pool.tables[plans.table[row]].candidate(
            int(plans.row[row]), int(plans.fallback[row])
        )
        counts = np.zeros(entries, dtype=np.int64)
        counts[list(candidate.entries)] = candidate.counts
        key = (tuple(counts.tolist()), candidate.checkpoint_path, candidate.fallback)
        rated.append(float(plans.goal_value[row]))
        simulated.append(float(found.goal[rows_of[key]]))
    return np.array(rated), np.array(simulated)


@pytest.mark.parametrize("chunk", thinned(range(6), 6))
def test_plans_are_rated_in_about_the_order_of_their_simulation(chunk: int) -> None:
    found = []
    for seed in range(20 * chunk, 20 * chunk + 20):
        q = question(seed)
        if q.limits.max_overhead is None:  # a rated plan there has another moment of its switch
            rated, simulated = compared(q)
            if len(rated) >= 6:
                found.append(correlation(rated, simulated))
        if len(found) == ENOUGH:
            break
    assert len(found) >= 5
    assert np.median(found) >= LEAST
    assert np.quantile(found, 0.1) >= LEAST - 0.25


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_the_clusters_that_are_rated_hold_the_best_of_every_plan_of_one_entry(seed: int) -> None:
    q = question(seed)
    alone = every(q, keep=lambda counts: (counts > 0).sum(axis=1) == 1)
    goal, row = alone.best()
    if row < 0:
        return
    counts = alone.plans.counts[row]
    pool = pool_of(q)
    kept = pool.clusters(pool.rough.promising(q.limits))
    assert (int(counts.argmax()), int(counts.max())) in {(c.entries[0], c.counts[0]) for c in kept}


@pytest.mark.parametrize("seed", range(20))
def test_the_roughly_least_cost_is_below_that_of_the_simulation(seed: int) -> None:
    """`min_usd` and `min_s` are the bound of a proof: the work alone, nothing lost."""
    q = question(seed)
    pool, found = pool_of(q), every(q, keep=lambda counts: (counts > 0).sum(axis=1) == 1)
    rough = pool.rough
    place = {key: n for n, key in enumerate(zip(rough.entry, rough.machines, strict=True))}
    for row in np.flatnonzero(found.plans.fallback < 0).tolist():
        counts = found.plans.counts[row]
        at = place[int(counts.argmax()), int(counts.max())]
        # Means over speeds and prices whose medians the bound takes, on few paths.
        assert found.values.cost_usd[row] >= 0.97 * rough.min_usd[at], found.words(row)
        assert found.values.time_s[row] >= 0.97 * rough.min_s[at], found.words(row)


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_what_exceeds_a_limit_of_every_moment_is_not_rated(seed: int) -> None:
    q = question(seed)
    for pool in (pool_of(q), mixes_in(q)):
        plans = pool.plans(q.limits)
        for number in set(plans.table.tolist()):
            found, rows = pool.tables[number].found, plans.row[plans.table == number]
            assert (found.fleet.machines[rows] <= q.limits.max_machines).all()
            if q.limits.hourly_usd is not None:
                assert (found.max_usd_per_hour[rows] <= q.limits.hourly_usd + WITHIN).all()
