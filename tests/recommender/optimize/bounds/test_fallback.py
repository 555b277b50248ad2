"""Bounds of plans with a fallback, against the same plans simulated to their end."""

from dataclasses import replace

import numpy as np

from recommender.optimize.bounds.fallback import drafts_and_bounds, helped, min_times
from recommender.optimize.evaluate import plans_without_fallback, with_best_interval
from recommender.optimize.space import Space
from recommender.risk.run_statistics import trimmed_mean
from tests.recommender.optimize.palette import every_cluster, space

SEEDS = [seed for seed in range(120) if space(seed).limits.deadline_s is not None]


def by_time(seed: int) -> Space:
    q = space(seed, entries=2 + seed % 3)
    return replace(q, limits=replace(q.limits, objective="time"))


def test_no_fallback_makes_a_plan_faster_than_its_runs_without_one_allow() -> None:
    shares = []
    for seed in SEEDS:
        q = by_time(seed)
        site, due_s = q.sites[0], q.limits.deadline_s
        alone = plans_without_fallback(q, site, every_cluster(site, q.limits.max_machines))
        drafts, _ = drafts_and_bounds(q, site, alone)
        rows = np.flatnonzero(drafts.allowed)
        if not len(rows) or not len(site.fallbacks):
            continue
        found = helped(q, site, alone, drafts, rows)
        if not len(found.of):
            continue
        followed = with_best_interval(found.drafts)
        time_s = trimmed_mean(q.cache.outcomes(followed, due_s).time_s)
        own = found.drafts.fallback_speed > 0.0
        min_s = min_times(q, drafts.inputs, rows, found.drafts, found.of)
        shares.append((min_s / time_s)[own])
    every = np.concatenate(shares)
    assert every.max() <= 1.0 + 1e-5
    # It is what many of them take, where their fallback is hardly ever needed.
    assert (every > 0.99).mean() > 0.1
