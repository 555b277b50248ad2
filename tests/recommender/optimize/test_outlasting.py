"""Jobs of weeks on runs of minutes: paths with more runs than are drawn.

They go on at their own pace, and the fallback takes over from it.
"""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.evaluate import drafts_of, with_best_interval
from recommender.optimize.space import Space, single_clusters
from recommender.plan.limits import Limits
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.walk import CYCLES
from tests.recommender.optimize.palette import every_cluster, every_plan, fallbacks_of, space
from tests.recommender.optimize.pooled import on_product_paths, problem
from tests.recommender.optimize.samples import thinned

DAY = 86_400.0


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
    site = replace(site, fallbacks=fallbacks_of(site, single_clusters(job, columns, 4).step_s))
    limits = Limits(deadline_s=deadline_days * DAY, confidence=0.5, max_machines=4)
    return replace(q, job=job, columns=columns, sites=(site,), steps_left=job.steps, limits=limits)


def outlasting(seed: int) -> Space:
    """A random question of 600 half-hour spot runs, if its fastest cluster had no changeovers."""
    q = space(seed, entries=2 + seed % 3, most=3)
    site, run_s = q.sites[0], 1800.0
    step = single_clusters(q.job, q.columns, q.limits.max_machines).step_s
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


@pytest.mark.parametrize("deadline_days", [50.0, 54.0, 60.0])
@pytest.mark.parametrize("availability_logit", [0.1, 0.5])
def test_the_best_plan_is_found_where_runs_are_an_hour_and_the_job_is_weeks(
    deadline_days: float, availability_logit: float
) -> None:
    assert not problem(on_product_paths(weeks_of_short_runs(deadline_days, availability_logit)))


@pytest.mark.parametrize("seed", thinned(range(12), 3))
def test_the_pool_finds_the_best_of_all_plans_where_paths_outlast_the_draws(seed: int) -> None:
    assert not problem(on_product_paths(outlasting(seed)))


def test_these_questions_have_paths_that_outlast_the_draws() -> None:
    long = 0
    for q in [weeks_of_short_runs(54.0, 0.1), *map(outlasting, range(12))]:
        site = q.sites[0]
        plans = every_plan(q, site, every_cluster(site, q.limits.max_machines))
        found = drafts_of(q, site, plans)
        inputs = with_best_interval(found.inputs.take(np.flatnonzero(found.allowed)))
        paths = simulate_paths(inputs, q.limits.deadline_s, 64)
        long += bool((paths.interruptions > CYCLES).any())
    assert long > 8
