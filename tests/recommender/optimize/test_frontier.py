"""The frontier holds what no other cluster beats in cost and time, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.columns import Cluster
from recommender.optimize.evaluate import path_inputs_of
from recommender.optimize.frontier import frontier_candidates
from recommender.optimize.space import Space
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.optimize.palette import oracle, space


def question(seed: int) -> Space:
    """A random question without limits."""
    q = space(seed, 3, 4)
    return replace(q, limits=Limits(max_machines=4, confidence=0.5), printed=None)


@pytest.mark.parametrize("seed", range(12))
def test_no_cluster_is_beaten_by_another_in_cost_mean_and_median_time(seed: int) -> None:
    q = question(seed)
    plans, values = oracle(q)
    alone = np.flatnonzero((plans.counts > 0).sum(axis=1) == 1)
    plans, usd, mean_s = plans.take(alone), values.cost_usd[alone], values.time_s[alone]
    inputs, _ = path_inputs_of(q, q.sites[0], plans)
    paths_s = simulate_paths(inputs, None, q.cache.path_count, q.seed).time_s
    median_s = np.sort(paths_s, axis=1)[:, (q.cache.path_count - 1) // 2]
    clusters = [
        Cluster(0, (int(row.argmax()),), (int(row.max()),))
        for row in np.unique(plans.counts, axis=0)
    ]
    found = frontier_candidates(q, clusters)
    keys = {(c.entries[0], c.counts[0], c.checkpoint_path) for c in found}
    assert keys
    for row, path in enumerate(plans.checkpoint_path):
        if not np.isfinite(values.goal_value[alone][row]):
            continue
        key = (int(plans.counts[row].argmax()), int(plans.counts[row].max()), int(path))
        cheaper = usd < usd[row]
        unbeaten = not (
            (cheaper & (mean_s <= mean_s[row])).any()
            and (cheaper & (median_s <= median_s[row])).any()
        )
        if key in keys and not unbeaten:
            worst_s = np.quantile(paths_s[row], 0.95, method="inverted_cdf")
            others_s = np.quantile(paths_s, 0.95, axis=1, method="inverted_cdf")
            assert not (cheaper & (others_s <= worst_s)).any()
        elif key not in keys:
            assert ((usd <= usd[row]) & (mean_s <= mean_s[row])).sum() > 1
