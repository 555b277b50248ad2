"""Jobs of weeks on runs of minutes: paths with more runs than are drawn.

They go on at their own pace, the fallback takes over from it, and the search's bound holds.
"""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.bounds.cluster import plan_lower_bounds
from recommender.optimize.evaluate import Plans, drafts_of, with_best_interval
from recommender.optimize.space import Space, single_steps
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import cycles_needed, simulate_paths
from tests.recommender.optimize.palette import every_cluster, every_plan, fallbacks_of, space
from tests.recommender.optimize.test_search import problem

DAY = 86_400.0
DRAWN = 512  # runs of a path at most
SINGLE = 1e-4  # paths are simulated in single precision, the cutoff leaves as much


def weeks_of_short_runs(deadline_days: float, availability_logit: float) -> Space:
    """Runs of an hour at a twentieth of the price, or four on-demand machines for seven days."""
    q = space(970, entries=2, most=4)
    columns = replace(
        q.columns,
        gpus=np.array([1.0, 4.0]),
        compute_per_s=np.array([172.0, 2386.0]),
        memory_bytes=np.array([7.3e10, 1.4e10]),
        network_bytes_per_s=np.array([3e8, 5e10]),
        network_half_bytes=np.array([1e6, 3e7]),
        intra_bytes_per_s=np.array([np.inf, 1e10]),
        host_bytes_per_s=np.array([1.2e10, 4.8e10]),
        speed_sigma=np.array([0.1, 0.25]),
        speed_sigma_several=np.array([0.1, 0.18]),
    )
    site, job = q.sites[0], replace(q.job, checkpoint_bytes=1e11)
    entries = replace(
        site.entries,
        kind=np.array([0, 1]),
        spot=np.array([True, False]),
        usd_per_hour=np.array([0.08, 2.04]),
        cap=np.full(2, 4),
        fixed_usd=np.full(2, 2.0),
        boot_s=np.full(2, 60.0),
        run_mean_s=np.full(2, 3312.0),
        run_sigma=np.full(2, 1.04),
        availability_logit=np.full(2, availability_logit),
        zone_sd=np.full(2, 0.8),
        co_interruption=np.full(2, 0.9),
        zone_count=np.full(2, 3.0),
        free_s=np.zeros(2),
        notice_s=np.full(2, 30.0),
        at_once=np.array([1.0, 0.9]),
        wait_s=np.array([0.0, 3600.0]),
    )
    site = replace(site, entries=entries, quota_use=np.ones((1, 2)), quota=np.array([1e9]))
    site = replace(site, fallbacks=fallbacks_of(site, single_steps(job, columns, 4)))
    limits = Limits(deadline_s=deadline_days * DAY, confidence=0.5, max_machines=4)
    return replace(q, job=job, columns=columns, sites=(site,), steps_left=job.steps, limits=limits)


def outlasting(seed: int) -> Space:
    """A random question of 600 half-hour spot runs, if its fastest cluster had no changeovers."""
    q = space(seed, entries=2 + seed % 3, most=3)
    site, run_s = q.sites[0], 1800.0
    step = single_steps(q.job, q.columns, q.limits.max_machines)
    work_s = 600 * run_s
    steps = work_s / float(step[np.isfinite(step)].min())
    e, factor = site.entries, np.random.default_rng(seed).uniform(1.0, 10.0)
    entries = replace(
        e,
        run_mean_s=np.where(e.spot, run_s, e.run_mean_s),
        usd_per_hour=np.where(e.spot, 0.25, 1.0) * e.usd_per_hour,
    )
    limits = Limits(deadline_s=work_s * float(factor), max_machines=q.limits.max_machines)
    sites = (replace(site, entries=entries),)
    return replace(q, limits=limits, steps_left=steps, sites=sites)


def followed(q: Space) -> tuple[Plans, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Allowed plans, bills and least bills by path, bounds, and whether paths outlast it."""
    site = q.sites[0]
    plans = every_plan(q, site, every_cluster(site, q.limits.max_machines))
    found = drafts_of(q, site, plans)
    drafts, allowed = found.inputs, found.allowed
    rows = np.flatnonzero(allowed)
    drafts = drafts.take(rows)
    h = simulate_paths(with_best_interval(drafts), q.limits.deadline_s, q.path_count, q.seed)
    most = int(cycles_needed(with_best_interval(drafts), q.limits.deadline_s).max(initial=0))
    return (
        plans.take(rows),
        h.expected_usd,
        h.usd_with_any_fallback,
        plan_lower_bounds(q, drafts),
        most >= DRAWN,
    )


@pytest.mark.parametrize("deadline_days", [50.0, 54.0, 60.0])
@pytest.mark.parametrize("availability_logit", [0.1, 0.5])
def test_a_plan_is_not_lost_for_a_fallback_that_its_bound_left_out(
    deadline_days: float, availability_logit: float
) -> None:
    assert not problem(weeks_of_short_runs(deadline_days, availability_logit))


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_best_of_all_plans_where_paths_outlast_the_draws(
    seed: int,
) -> None:
    assert not problem(outlasting(seed))


def test_no_path_with_a_fallback_is_cheaper_than_the_bound_from_its_plan_without_one() -> None:
    questions = [weeks_of_short_runs(days, 0.1) for days in (40.0, 54.0, 90.0)]
    questions += [outlasting(seed) for seed in range(12)]
    compared = long = 0
    for number, q in enumerate(questions):
        plans, usd, least, lower_bounds, outlasts = followed(q)
        long += outlasts
        keys = [
            (tuple(c), p) for c, p in zip(plans.counts.tolist(), plans.checkpoint_path, strict=True)
        ]
        waiting = {key: i for i, key in enumerate(keys) if plans.fallback[i] < 0}
        for i in np.flatnonzero(plans.fallback >= 0):
            bound = least[waiting[keys[i]]]
            assert (bound <= usd[i] * (1.0 + SINGLE)).all(), (number, keys[i])
            if np.isfinite(lower_bounds[i]):  # else too few paths can meet the deadline
                assert lower_bounds[i] <= usd[i].mean() * (1.0 + SINGLE), (number, keys[i])
            compared += 1
    assert compared > 200
    assert long > 10
