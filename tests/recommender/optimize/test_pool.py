"""The pool finds what looking at every plan finds."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.candidate import Candidate
from recommender.optimize.evaluate import Plans, path_inputs_of, values_of
from recommender.optimize.space import ANCHOR, NONE, Space
from recommender.plan.limits import Limits
from tests.recommender.optimize.palette import at_the_edge, space
from tests.recommender.optimize.pooled import (
    TOLERANCE,
    best_of,
    every,
    on_product_paths,
    pool_of,
    problem,
    selected,
)
from tests.recommender.optimize.samples import sampled, thinned

DEFAULT, PER_CHUNK, CHUNKS = 24, 20, 50


def question(seed: int) -> Space:
    """Two to five entries and up to four machines, six where entries are few.

    One in five has a limit that a good plan just meets.
    """
    asked = space(seed, entries=2 + seed % 4, most=6 if seed % 4 == 0 else 4)
    return on_product_paths(at_the_edge(asked, seed) if seed % 5 == 4 else asked)


@pytest.mark.parametrize("seed", range(DEFAULT))
def test_the_pool_equals_looking_at_every_plan(seed: int) -> None:
    assert not problem(question(seed))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_pool_equals_looking_at_every_plan_of_many_more_questions(chunk: int) -> None:
    seeds = range(1000 + chunk * PER_CHUNK, 1000 + (chunk + 1) * PER_CHUNK)
    found = {seed: problem(question(seed)) for seed in seeds}
    assert not {seed: words for seed, words in found.items() if words}


@pytest.mark.parametrize("seed", sampled(range(0, 120, 3), range(0, 120, 15)))
@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_objective_can_be_chosen_under_any_limits(seed: int, objective: str) -> None:
    q = question(seed)
    assert not problem(replace(q, limits=replace(q.limits, objective=objective)))


@pytest.mark.parametrize("seed", thinned(range(24), 4))
def test_an_elastic_job_gets_the_best_mix_of_markets(seed: int) -> None:
    q = space(seed, entries=3 + seed % 2, most=4)
    q = on_product_paths(replace(q, job=replace(q.job, elastic=True)))
    assert not problem(q)


def reevaluated(q: Space, found: Candidate) -> Plans:
    """A candidate as a plan of its whole site."""
    counts = np.zeros((1, len(q.sites[found.site].entries)), dtype=np.int64)
    counts[0, list(found.entries)] = found.counts
    return Plans(counts, np.array([found.checkpoint_path]), np.array([found.fallback]))


@pytest.mark.parametrize("seed", range(12))
def test_printed_figures_of_a_selection_are_those_of_the_full_model(seed: int) -> None:
    """But for those whose fallback has a better policy than to wait to the last moment."""
    q = question(seed)
    for plan in [each for each in selected(q).plans if each.printed and each.fallback < 0][:4]:
        inputs, allowed = path_inputs_of(q, q.sites[0], reevaluated(q, plan))
        found = values_of(q.on_printed_paths(), inputs)
        assert allowed.all()
        assert plan.cost_usd == pytest.approx(float(found.cost_usd[0]), rel=1e-9)
        assert plan.time_s == pytest.approx(float(found.time_s[0]), rel=1e-9)


def test_the_last_machine_of_a_quota_is_used() -> None:
    """DeepVM's loop ends one machine early; ours must not."""
    used = 0
    for seed in range(0, 60, 2):
        q = question(seed)
        site = q.sites[0]
        for found in selected(q).plans:
            counts = reevaluated(q, found).counts
            used += bool(np.isclose(counts @ site.quota_use.T, site.quota).any())
        if used >= 5:
            return
    pytest.fail(f"of 30 questions {used} plans use a whole quota")


@pytest.mark.parametrize("seed", range(0, 24, 3))
def test_without_mixes_only_clusters_of_one_entry_are_found(seed: int) -> None:
    q = replace(question(seed), mix=False)
    assert all(len(plan.entries) == 1 for plan in selected(q).plans)
    assert not problem(q)


def test_where_an_anchor_alone_may_be_saved_to_the_best_plan_is_found() -> None:
    anchored = 0
    for seed in range(0, 48, 8):
        q = space(seed, entries=4, most=4)
        q = on_product_paths(replace(q, checkpoint_paths=(ANCHOR, NONE)))
        assert not problem(q)
        anchored += bool((every(q).plans.checkpoint_path == ANCHOR).any())
    assert anchored > 1


def test_a_question_without_any_usable_machine_has_no_plan() -> None:
    q = question(5)
    site = q.sites[0]
    none = replace(site, quota=np.zeros_like(site.quota))
    assert best_of(replace(q, sites=(none,), limits=Limits(max_machines=4))) is None


def test_a_plan_of_one_entry_is_simulated_once_for_all_selections() -> None:
    q = question(0)
    pool = pool_of(q)
    first = pool.select(q.limits)
    known = len(q.cache.known)
    assert pool.select(q.limits) is first
    wider = replace(q.limits, confidence=q.limits.confidence * 0.9)
    assert pool.select(wider).goal <= first.goal * (1.0 + TOLERANCE)
    assert len(q.cache.known) <= 2 * known


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_limits_that_hold_at_every_moment_are_kept_by_every_plan_of_every_selection(
    seed: int,
) -> None:
    """Asked of a pool whose own limits are wider: machines and the price of an hour."""
    q = replace(question(seed), mix=False)
    pool, site = pool_of(q), q.sites[0]
    pool.select(q.limits)
    price = site.entries.usd_per_hour
    for most in (1, 2, 3):
        hourly = float(np.median(price)) * most
        tight = replace(q.limits, max_machines=most, hourly_usd=hourly)
        found = pool.select(tight)
        for plan in [*found.plans, *pool.frontier(tight)]:
            counts = reevaluated(q, plan).counts[0]
            assert counts.sum() <= most
            assert counts @ site.entries.max_usd_per_hour <= hourly + 1e-9
            if plan.fallback >= 0:
                assert site.fallbacks.usd_per_hour[plan.fallback] <= hourly + 1e-9


@pytest.mark.parametrize("seed", thinned(range(40), 5))
def test_a_selection_under_other_limits_is_that_of_a_pool_with_these_limits(seed: int) -> None:
    q = replace(question(seed), mix=False)
    tight = replace(q.limits, max_machines=2)
    pool = pool_of(q)
    pool.select(q.limits)
    after = pool.select(tight).goal
    goal, _ = every(replace(q, limits=tight)).best()
    assert after <= goal * (1.0 + TOLERANCE)


@pytest.mark.parametrize("seed", range(12))
def test_no_cluster_of_a_frontier_is_beaten_in_cost_mean_and_median_time(seed: int) -> None:
    q = space(seed, 3, 4)
    q = replace(on_product_paths(q), limits=Limits(max_machines=4, confidence=0.5), mix=False)
    every_one = every(replace(q, printed=None))
    mean_s, usd = every_one.values.time_s, every_one.values.cost_usd
    paths_s = q.cache.outcomes(every_one.inputs, None).time_s
    median_s, late_s = np.median(paths_s, axis=1), np.quantile(paths_s, 0.95, axis=1)
    found = pool_of(q).frontier(q.limits)
    assert found
    rows = {
        (int(counts.argmax()), int(counts.max()), int(path)): row
        for row, (counts, path) in enumerate(
            zip(every_one.plans.counts, every_one.plans.checkpoint_path, strict=True)
        )
    }
    kept = [rows[plan.entries[0], plan.counts[0], plan.checkpoint_path] for plan in found]
    for row in kept:
        cheaper = usd < usd[row] * (1 - TOLERANCE)
        assert not (
            cheaper
            & (mean_s < mean_s[row] * (1 - TOLERANCE))
            & (median_s < median_s[row] * (1 - TOLERANCE))
            & (late_s < late_s[row] * (1 - TOLERANCE))
        ).any()
    fastest = int(mean_s.argmin())
    assert min(mean_s[kept]) <= mean_s[fastest] * (1 + TOLERANCE)
    assert min(usd[kept]) <= float(usd.min()) * (1 + TOLERANCE)


@pytest.mark.slow
def test_the_random_questions_cover_every_kind_of_limit_and_answer() -> None:
    seen: Counter[str] = Counter()
    for seed in range(240):
        q = question(seed)
        limits = q.limits
        seen["deadline"] += limits.deadline_s is not None and limits.budget_usd is None
        seen["budget"] += limits.budget_usd is not None and limits.deadline_s is None
        seen["both"] += limits.deadline_s is not None and limits.budget_usd is not None
        seen["hourly"] += limits.hourly_usd is not None
        seen["no limit"] += limits.goal == "frontier"
        seen["elastic"] += q.job.elastic
        seen["quota"] += bool((q.sites[0].quota < 1e9).any())
        seen["overhead"] += limits.max_overhead is not None
        seen["at the edge"] += seed % 5 == 4 and limits.goal != "frontier"
        best = best_of(q)
        seen["infeasible"] += best is None
        if best is not None:
            spot = q.sites[0].entries.spot[list(best.entries)]
            seen["mix of entries"] += len(best.entries) > 1
            seen["spot and on-demand"] += bool(spot.any() and not spot.all())
            seen["all on-demand"] += not spot.any()
            seen["fallback"] += best.fallback >= 0
            seen["overhead met"] += limits.max_overhead is not None and bool(spot.any())
            seen[f"path {best.checkpoint_path}"] += 1
    assert min(seen.values()) >= 1, seen
    assert {f"path {p}" for p in range(4)} <= set(seen)
