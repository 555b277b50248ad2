"""No bound is above what it bounds: a pruned plan really is worse.

Every bound of the search is compared with the full model of every plan it stands for, on
random small plan spaces (end-to-end tests alone let wrong bounds pass).
"""

import itertools
from collections import defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from recommender.optimize.bounds.cluster import (
    ClusterSums,
    _min_in_part,
    cluster_lower_bounds,
    lower_bounds_of,
    min_speed_factor,
    offer_lower_bounds,
    paid_share,
    plan_lower_bounds,
)
from recommender.optimize.bounds.fallback import bounds_with_own_fallbacks
from recommender.optimize.bounds.site import SiteBounds, site_bounds_of
from recommender.optimize.bounds.spot_time import HANDOVER_RATIO
from recommender.optimize.entry_sets import _support_bounds, counts_lower_bounds, leaves
from recommender.optimize.evaluate import Plans, Values, drafts_of, path_inputs_of
from recommender.optimize.search import single_lower_bounds
from recommender.optimize.space import Space, single_steps
from recommender.performance.step import steps
from recommender.plan.limits import Limits
from recommender.risk.random_numbers import random_numbers
from tests.recommender.optimize.palette import PATHS, oracle, space
from tests.recommender.optimize.samples import one_in, sampled

ROUNDING = 1e-3
SPACES = 320
CHUNKS = 16
# What a machine adds to a mix can exceed its best alone: micro-batches come in whole samples,
# and a mix of more GPUs may divide the batch better. Spaces where it does, and by how much.
SUPPORT_EXCESS = ROUNDING


def question(seed: int, paths: int = PATHS) -> Space:
    return space(seed, entries=2 + seed % 4, most=4, paths=paths)


@cache
def looked_at(seed: int, paths: int = PATHS) -> tuple[Space, Plans, Values, np.ndarray]:
    """A question, every plan, what it is worth, and that with its goal's measure.

    A plan without a fallback that misses the deadline is worth nothing: with one it may cost more.
    """
    q = question(seed, paths)
    plans, values = oracle(q)
    worth = values.time_s if q.limits.goal == "time" else values.cost_usd
    if q.limits.deadline_s is not None and q.limits.goal != "time":
        worth = np.where((plans.fallback >= 0) | np.isfinite(values.goal_value), worth, np.inf)
    return q, plans, values, worth


def excess(bound: np.ndarray, worth: np.ndarray, goal: np.ndarray) -> float:
    """How far a bound lies above what it bounds, as a share; at most 0 if it is one.

    A finite bound holds for every plan that is worth something, whether it meets the limits or
    not; an infinite one says that no plan meets them.
    """
    assert not np.isnan(bound).any()
    worth = np.where(np.isfinite(bound), worth, goal)
    rows = np.isfinite(worth)
    if not rows.any():
        return 0.0
    return float((bound[rows] / worth[rows]).max() - 1.0)


def seeds_of(chunk: int) -> range:
    return range(chunk * SPACES // CHUNKS, (chunk + 1) * SPACES // CHUNKS)


@pytest.mark.parametrize("chunk", one_in(16, CHUNKS))
def test_no_lower_bound_of_a_cluster_is_above_any_of_its_plans(chunk: int) -> None:
    over = {}
    for seed in seeds_of(chunk):
        q, plans, values, worth = looked_at(seed)
        site = q.sites[0]
        j, allowed = path_inputs_of(q, site, plans)
        sums = ClusterSums(*(getattr(j, name) for name in ClusterSums.__slots__))
        clusters, row = np.unique(plans.counts, axis=0, return_inverse=True)
        row = row.ravel()
        bounds = {
            "plan": np.where(allowed, plan_lower_bounds(q, j), 0.0),
            "plan, quick": np.where(allowed, lower_bounds_of(q, sums, tight=False), 0.0),
            "plan, tight": np.where(allowed, lower_bounds_of(q, sums, tight=True), 0.0),
            "cluster, tight": np.where(allowed, cluster_lower_bounds(q, sums, tight=True), 0.0),
            "counts, quick": counts_lower_bounds(q, site, clusters)[row],
            "counts, tight": counts_lower_bounds(q, site, clusters, tight=True)[row],
        }
        for name, bound in bounds.items():
            over[seed, name] = excess(bound, worth, values.goal_value)
    assert not {key: share for key, share in over.items() if share > ROUNDING}


@pytest.mark.parametrize("goal", sampled(("auto", "time"), ("auto",)))
@pytest.mark.parametrize("share", sampled((1e-5, 1e-3, 0.02), (1e-3,)))
def test_lower_bounds_hold_for_jobs_that_are_shorter_than_their_start(
    share: float, goal: str
) -> None:
    over = {}
    for seed in range(48):
        q = question(seed)
        limits = replace(q.limits, objective=goal)  # type: ignore[arg-type]
        if seed % 2:
            limits = replace(limits, deadline_s=600.0 + 900.0 * (seed % 9))
        if limits.budget_usd is not None:
            limits = replace(limits, budget_usd=limits.budget_usd * max(share, 0.01))
        q = replace(q, steps_left=q.steps_left * share, limits=limits)
        plans, values = oracle(q)
        sites = path_inputs_of(q, q.sites[0], plans)
        by_time = limits.goal == "time"
        finite = np.isfinite(values.goal_value)
        worth = np.where(finite, values.time_s if by_time else values.cost_usd, np.inf)
        for tight in (False, True):
            sums = ClusterSums(*(getattr(sites[0], name) for name in ClusterSums.__slots__))
            bound = np.where(sites[1], cluster_lower_bounds(q, sums, tight=tight), 0.0)
            over[seed, tight] = excess(bound, worth, values.goal_value)
    assert not {key: share for key, share in over.items() if share > ROUNDING}


Part = tuple[int, ...]  # places of entries in the order of their networks


def part_of(bounds: SiteBounds, used: Part) -> Part:
    """The places of some entries in order."""
    places = {int(entry): place for place, entry in enumerate(bounds.order)}
    return tuple(sorted(places[i] for i in used))


def min_goals(
    bounds: SiteBounds, plans: Plans, goals: np.ndarray
) -> dict[tuple[Part, bool], float]:
    """Least goal of the mixes that use a set of entries, and only later ones."""
    least: dict[tuple[Part, bool], float] = defaultdict(lambda: np.inf)
    for counts, goal in zip(plans.counts, goals, strict=True):
        used = tuple(int(i) for i in np.flatnonzero(counts))
        if len(used) < 2 or not np.isfinite(goal):
            continue
        support = part_of(bounds, used)
        for size in range(1, len(used) + 1):
            for some in itertools.combinations(support, size):
                key = some, some == support[:size]
                least[key] = min(least[key], float(goal))
    return least


def support_bound(
    b: SiteBounds, support: tuple[int, ...], cutoff: float = np.inf, later: bool = True
) -> float:
    """Least goal of every cluster of several entries that uses these, and further ones.

    With `later` the further ones come after them. Above the cutoff it says only that none is below.
    """
    return float(_support_bounds(b, support[:-1], np.array(support[-1:]), cutoff, later).min())


def support_excess(q: Space, plans: Plans, goals: np.ndarray, cutoffs: float) -> dict:
    """How far bounds lie above the best mix of their entries, under a cutoff that it is below."""
    bounds = site_bounds_of(q, q.sites[0])
    if bounds is None:
        return {}
    return {
        key: support_bound(bounds, key[0], cutoffs * goal, key[1]) / goal - 1.0
        for key, goal in min_goals(bounds, plans, goals).items()
    }


@pytest.mark.parametrize("cutoffs", [1.0 + 1e-9, 1.5, np.inf])
@pytest.mark.parametrize("chunk", one_in(16, CHUNKS))
def test_no_bound_of_a_support_is_above_any_plan_that_uses_it(chunk: int, cutoffs: float) -> None:
    over = {}
    for seed in seeds_of(chunk):
        q, plans, values, _ = looked_at(seed)
        found = support_excess(q, plans, values.goal_value, cutoffs)
        over |= {(seed, *key): share for key, share in found.items()}
    assert not {key: share for key, share in over.items() if share > SUPPORT_EXCESS}


@pytest.mark.parametrize("chunk", one_in(4, 4))
def test_the_leaves_of_a_support_hold_every_cluster_that_is_good_enough(chunk: int) -> None:
    for seed in range(chunk * 20, (chunk + 1) * 20):
        q, plans, values, _ = looked_at(seed)
        bounds = site_bounds_of(q, q.sites[0])
        best: dict[tuple[int, ...], float] = defaultdict(lambda: np.inf)
        for counts, goal in zip(plans.counts, values.goal_value, strict=True):
            best[tuple(counts.tolist())] = min(best[tuple(counts.tolist())], float(goal))
        for counts, goal in best.items():
            used = tuple(i for i, n in enumerate(counts) if n)
            if len(used) > 1 and np.isfinite(goal):
                assert bounds is not None
                support = part_of(bounds, used)
                mine = [counts[bounds.order[i]] for i in support]
                blocks, _ = leaves(bounds, support, goal * (1 + ROUNDING))
                assert any((block == mine).all(axis=1).any() for block in blocks), (seed, counts)


@pytest.mark.parametrize("chunk", one_in(16, CHUNKS))
def test_no_lower_bound_of_a_single_entry_is_above_any_of_its_plans(chunk: int) -> None:
    for seed in seeds_of(chunk):
        q, plans, values, worth = looked_at(seed)
        site = q.sites[0]
        lower_bounds = single_lower_bounds(
            q, site, single_steps(q.job, q.columns, q.limits.max_machines)
        )
        alone = (plans.counts > 0).sum(axis=1) == 1
        bound = lower_bounds[plans.counts.argmax(axis=1), plans.counts.max(axis=1) - 1][alone]
        # inf: over a limit that holds at every moment; such plans have no goal either.
        assert excess(bound, worth[alone], values.goal_value[alone]) <= ROUNDING, seed


@pytest.mark.parametrize("share", sampled((0.2, 0.4, 0.7), (0.4,)))
def test_lower_bounds_of_single_entries_hold_under_short_deadlines(share: float) -> None:
    lost = 0
    for seed in range(0, 160, 4):
        q = question(seed)
        limits = replace(q.limits, deadline_s=share * (q.limits.deadline_s or 36_000.0))
        q = replace(q, limits=limits)
        plans, values = oracle(q)
        lower_bounds = single_lower_bounds(
            q, q.sites[0], single_steps(q.job, q.columns, limits.max_machines)
        )
        alone = (plans.counts > 0).sum(axis=1) == 1
        bound = lower_bounds[plans.counts.argmax(axis=1), plans.counts.max(axis=1) - 1][alone]
        assert (
            excess(np.minimum(bound, 1e300), values.goal_value[alone], values.goal_value[alone])
            <= ROUNDING
        )
        lost += int(np.isinf(bound).sum())
    assert lost > 0


@pytest.mark.parametrize("overhead", [None, 0.05])
@pytest.mark.parametrize("chunk", sampled(range(8), (5,)))  # 21: both bounds mattered
def test_lower_bounds_of_single_entries_hold_where_fallbacks_save_time(
    chunk: int, overhead: float | None
) -> None:
    compared = 0
    for seed in range(chunk, 80, 8):
        q = question(seed)
        limits = replace(q.limits, objective="time", max_overhead=overhead, hourly_usd=None)
        if limits.deadline_s is None:
            continue
        q = replace(q, limits=limits, printed=None if overhead is None else q.cache)
        plans, values = oracle(q)
        lower = single_lower_bounds(q, q.sites[0], single_steps(q.job, q.columns, 4))
        alone = (plans.counts > 0).sum(axis=1) == 1
        bound = lower[plans.counts.argmax(axis=1), plans.counts.max(axis=1) - 1][alone]
        goal = values.goal_value[alone]
        assert excess(bound, goal, goal) <= ROUNDING, seed
        compared += int(np.isfinite(goal).sum())
    assert compared > 0


@pytest.mark.parametrize("chunk", one_in(16, CHUNKS))
def test_no_fallback_of_a_plan_is_cheaper_than_the_bound_on_any(chunk: int) -> None:
    for seed in seeds_of(chunk):
        q, plans, values, _ = looked_at(seed)
        if q.limits.deadline_s is None:
            continue
        lone = {
            (tuple(counts), path): values.usd_with_any_fallback[i]
            for i, (counts, path) in enumerate(
                zip(plans.counts.tolist(), plans.checkpoint_path, strict=True)
            )
            if plans.fallback[i] < 0
        }
        keys = zip(plans.counts.tolist(), plans.checkpoint_path, strict=True)
        bound = np.array([lone[tuple(counts), path] for counts, path in keys])
        helped = np.isfinite(bound) & (plans.fallback >= 0)
        bound = np.where(helped, bound, 0.0)
        assert excess(bound, values.cost_usd, values.goal_value) <= ROUNDING, seed


@pytest.mark.parametrize("share", sampled((0.3, 0.6, 1.0), (0.6,)))
def test_a_plan_is_left_out_only_where_neither_it_nor_its_fallbacks_are_good(share: float) -> None:
    raised = 0
    for seed in range(1, 120, 4):
        q = question(seed)
        limits = replace(q.limits, deadline_s=share * (q.limits.deadline_s or 36_000.0))
        q, site = replace(q, limits=limits), q.sites[0]
        plans, values = oracle(q)
        lone = plans.take(plans.fallback < 0)
        key = {(*counts, path): row for row, (counts, path) in enumerate(_rows(lone))}
        least = np.full(len(lone), np.inf)
        for goal, (counts, path) in zip(values.goal_value, _rows(plans), strict=True):
            at = key[*counts, path]
            least[at] = min(least[at], goal)
        drafts = drafts_of(q, site, lone)
        lower_bounds = np.where(drafts.allowed, plan_lower_bounds(q, drafts.inputs), np.inf)
        cutoff = float(np.median(least[np.isfinite(least)])) if np.isfinite(least).any() else np.inf
        own = bounds_with_own_fallbacks(q, site, lone, drafts, lower_bounds, cutoff)
        assert (own * (1.0 - ROUNDING) <= least).all(), seed
        raised += int((own > lower_bounds).sum())
    assert raised > 0


def _rows(plans: Plans) -> list[tuple[list[int], int]]:
    return list(zip(plans.counts.tolist(), plans.checkpoint_path.tolist(), strict=True))


@pytest.mark.parametrize("chunk", one_in(16, CHUNKS))
def test_no_lower_bound_of_an_offer_is_above_every_plan_that_uses_it(chunk: int) -> None:
    for seed in seeds_of(chunk):
        q, plans, values, worth = looked_at(seed)
        e = q.sites[0].entries
        run = e.run_mean_s / (1 + len(e) + q.limits.max_machines * (1 - e.co_interruption))
        share = np.where(e.spot, paid_share(run, e.run_sigma.max(), e.free_s), 1.0)
        for sigma in np.unique(e.run_sigma):
            share = np.minimum(share, np.where(e.spot, paid_share(run, sigma, e.free_s), 1.0))
        lower_bounds = offer_lower_bounds(q, e.kind, e.usd_per_hour * share)
        bound = np.where(plans.counts > 0, lower_bounds[None], np.inf).min(axis=1)
        assert excess(bound, worth, values.goal_value) <= ROUNDING, seed


def speed_excess(q: Space, plans: Plans) -> float:
    site = q.sites[0]
    clusters = np.unique(plans.counts, axis=0)
    step = steps(q.job, q.columns, q.fleet(site, clusters)).step_s
    rows = np.isfinite(step)
    most = clusters[rows] @ q.columns.compute_per_s[site.entries.kind]
    return float((q.job.global_batch / step[rows] / most).max(initial=0.0)) - 1.0


def test_a_cluster_is_never_faster_than_the_compute_of_its_machines() -> None:
    over = [speed_excess(*looked_at(seed)[:2]) for seed in range(0, SPACES, 4)]
    assert max(over) <= ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_bounds_of_singles_and_sets_hold_on_the_paths_of_searches(chunk: int) -> None:
    for seed in range(5_000 + chunk * 12, 5_000 + (chunk + 1) * 12):
        q, plans, values, worth = looked_at(seed, 256)
        clusters, row = np.unique(plans.counts, axis=0, return_inverse=True)
        tight = counts_lower_bounds(q, q.sites[0], clusters, tight=True)[row.ravel()]
        assert excess(tight, worth, values.goal_value) <= ROUNDING, seed
        over = support_excess(q, plans, values.goal_value, 1.0 + 1e-9)
        assert max(over.values(), default=0.0) <= SUPPORT_EXCESS, seed


@pytest.mark.parametrize("fallback", [False, True])
def test_the_least_of_an_elastic_cluster_is_that_of_every_way_to_divide_its_work(
    fallback: bool,
) -> None:
    """At corners and bends of its two lines: looked for on a grid of both parts."""
    rng, q = np.random.default_rng(5), question(3)
    j, _ = path_inputs_of(q, q.sites[0], oracle(q)[0])
    sums = ClusterSums(*(getattr(j, name)[:1] for name in ClusterSums.__slots__))
    parts = np.linspace(0.0, 1.0, 401)
    at_bend = 0
    for _ in range(200):
        base, spot, share, paid = rng.uniform([0.1, 0.1, 0.05, 0.05], [3.0, 3.0, 1.0, 1.0])
        ratio = rng.uniform(paid, HANDOVER_RATIO)
        least, bill = (rng.uniform(0.0, 0.9), rng.uniform(0.2, 4.0)) if fallback else (0.0, 0.0)
        one = replace(
            sums,
            base_usd_per_hour=np.array([base]),
            spot_usd_per_hour=np.array([spot]),
            elastic_share=np.array([share]),
        )
        given = (np.array([least]), np.array([bill])) if fallback else ()
        found = float(_min_in_part(one, np.array([paid]), np.array([ratio]), *given)[0])
        rests = least + (1.0 - least) * parts if fallback else np.zeros(1)
        rest, part = np.meshgrid(rests, parts)
        part = part * (1.0 - rest)
        other = part + rest
        billed = np.maximum(paid * (1.0 - other), ratio - HANDOVER_RATIO * other)
        usd = base * (part / share + 1.0 - other) + spot * billed + bill * rest
        assert found <= usd.min() * (1.0 + 1e-9)
        assert found >= usd.min() * 0.98
        ends = min(usd[:, -1].min(), usd[0, 0], usd[-1, 0])
        at_bend += found < ends * (1.0 - 1e-6)
    assert at_bend > 0


@pytest.mark.parametrize("sigma", [0.0, 0.1, 0.25])
def test_the_speed_factor_is_the_goals_statistic_over_the_paths(sigma: float) -> None:
    q = question(0)
    factors = np.sort(np.exp(sigma * random_numbers(PATHS, 8, q.seed).speed))
    for objective, expected in (("cost", factors.mean()), ("time", factors[3:-3].mean())):
        asked = replace(q, limits=Limits(objective=objective))  # type: ignore[arg-type]
        assert min_speed_factor(asked, np.array([sigma]))[0] == pytest.approx(expected)


@pytest.mark.parametrize("run_h", [0.3, 1.0, 3.35, 20.0])
@pytest.mark.parametrize("sigma", [0.5, 1.04, 1.48])
def test_the_paid_share_is_below_the_charged_share_of_time(run_h: float, sigma: float) -> None:
    runs = run_h * 3600 * np.exp(sigma * random_numbers(4096, 8).run - sigma**2 / 2)
    charged = np.where(runs < 3600, 0.0, runs).sum() / runs.sum()
    run, shape, free = (np.array([v]) for v in (run_h * 3600, sigma, 3600.0))
    share = float(paid_share(run, shape, free)[0])
    assert share <= charged
    assert share >= 0.8 * charged - 0.01
    assert paid_share(run, shape, np.array([0.0]))[0] == 1.0
