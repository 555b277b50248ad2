"""No switch of a gang to its fallback that meets the overhead limit costs less than its bound."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.arrays import Floats
from recommender.optimize.bounds.fallback import helped
from recommender.optimize.bounds.overhead import bounds_within_overhead
from recommender.optimize.evaluate import drafts_of, with_best_interval
from recommender.optimize.space import Space
from recommender.risk.fallback import handover_moments
from recommender.risk.monte_carlo import (
    account,
    batches,
    draw_plans,
    path_ends,
    simulate_paths,
    surely_outlast,
)
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import random_numbers
from recommender.risk.run_statistics import checkpoint_overhead
from recommender.risk.spot_capacity import simulate_runs
from tests.recommender.optimize.palette import oracle, space
from tests.recommender.optimize.samples import sampled

ROUNDING = 1e-4  # runs are in single precision
SHARES = np.linspace(0.0, 1.0, 9)  # of the time until which a fallback could take over


def question(seed: int, most: float) -> Space:
    """A random question whose fallbacks may take over at any moment, without errors of paths."""
    q = space(seed, 3, 3)
    due_s = q.limits.deadline_s or 36_000.0
    limits = replace(q.limits, deadline_s=due_s, max_overhead=most, objective="cost")
    return replace(q, limits=limits, printed=None)


def gangs(q: Space) -> tuple[PathInputs, PathInputs, np.ndarray]:
    """The plans of a question without fallbacks and with each one, and which each belongs to."""
    plans, _ = oracle(q)
    lone = plans.take(plans.fallback < 0)
    drafts = drafts_of(q, q.sites[0], lone)
    every = np.tile(np.arange(len(q.sites[0].fallbacks)), (len(lone), 1))
    found = helped(q, q.sites[0], lone, drafts, np.arange(len(lone)), every)
    return drafts.inputs, found.drafts.without_fallback_bound(), found.of


def min_usd(q: Space, helped_ones: PathInputs) -> Floats:
    """The least cost of each plan over a grid of moments at which the limit is met."""
    plans = with_best_interval(helped_ones)
    due_s, most = q.limits.deadline_s or 0.0, q.limits.max_overhead
    room_s, least = np.maximum(due_s - plans.handover_s, 0.0), np.full(len(plans), np.inf)
    for share in SHARES:
        paths = simulate_paths(plans.earlier(share * room_s), due_s, q.cache.path_count, q.seed)
        met = checkpoint_overhead(paths) <= (most or 0.0)
        least = np.where(met, np.minimum(least, paths.expected_usd.mean(axis=1)), least)
    return least


@pytest.mark.parametrize("most", sampled((0.01, 0.03, 0.1), (0.03,)))
def test_no_moment_that_meets_the_limit_is_cheaper_than_the_bound(most: float) -> None:
    raised = met = 0
    for seed in range(0, 40, 3):
        q = question(seed, most)
        alone, plans, of = gangs(q)
        if not len(plans):
            continue
        bounds = bounds_within_overhead(q, alone, plans, of)
        least = min_usd(q, plans)
        assert (bounds * (1.0 - ROUNDING) <= least).all(), seed
        raised += int(np.isfinite(bounds).sum())
        met += int(np.isfinite(least[np.isfinite(bounds)]).sum())
    assert raised > 50
    assert met > 5


@pytest.mark.parametrize("usd_per_lost_hour", sampled((0.0, 1.0, 10.0, 100.0), (10.0,)))
def test_at_any_price_of_lost_work_no_moment_costs_less_than_the_least_of_each_path(
    usd_per_lost_hour: float,
) -> None:
    nearest = np.inf
    for seed in range(0, 40, 3):
        q = question(seed, 0.03)
        plans = with_best_interval(gangs(q)[1])
        plans = plans.take((plans.elastic_share <= 0.0) & (plans.work_s > 0.0))
        due_s, price = q.limits.deadline_s or 0.0, np.full(len(plans), usd_per_lost_hour)
        key = (due_s, q.cache.path_count, q.seed)
        least = min_usd_at_price(plans, price, *key)
        for share in SHARES:
            early = plans.earlier(share * np.maximum(due_s - plans.handover_s, 0.0))
            paths = simulate_paths(early, due_s, q.cache.path_count, q.seed)
            usd = paths.expected_usd + usd_per_lost_hour * paths.lost_work_s / 3600.0
            nearest = min(nearest, float((usd.mean(axis=1) / least).min(initial=np.inf)))
    assert 1.0 - ROUNDING <= nearest < 1.05


def min_usd_at_price(plans: PathInputs, price: Floats, due_s: float, *key: int) -> Floats:
    """The mean over the paths of the least bill with the price of lost work, over all moments."""
    usd = plans.fallback_usd_per_hour + plans.base_usd_per_hour
    rate, start_usd = usd / plans.fallback_speed, usd * plans.fallback_start_s / 3600.0
    again_usd = price * plans.fallback_speed * plans.fallback_start_s / 3600.0
    found = np.empty(len(plans))
    alone = replace(plans, fallback_speed=np.zeros(len(plans)))
    for rows, count in batches(plans, due_s, key[0]):
        p, sample = alone.take(rows), random_numbers(key[0], count, key[1])
        runs = simulate_runs(p, sample)
        ended = path_ends(p, None, sample, runs)
        moments = handover_moments(p, runs, ended.alone.last, due_s)
        own = account(p, ended, runs, np.full(ended.alone.work.shape, np.inf), sample)
        end = own.expected_usd + price[rows, None] * own.lost_work_s / 3600.0
        end[surely_outlast(ended, runs, due_s)] = np.inf
        whole = p.fixed_usd[:, None] + rate[rows, None] * own.work_s / 3600.0
        later = whole + moments.least_usd(rate[rows], price[rows]) + again_usd[rows, None]
        least = np.minimum(end, np.minimum(whole, later) + start_usd[rows, None])
        found[rows] = least.mean(axis=1)
    return found


def test_the_bounds_of_gangs_are_close_to_the_best_prices_of_lost_work() -> None:
    """Of a grid of prices, none gives a bound that is far above the one used."""
    short = []
    for seed in range(0, 40, 3):
        q = question(seed, 0.03)
        alone, plans, of = gangs(q)
        bounds = bounds_within_overhead(q, alone, plans, of)
        rows = np.flatnonzero(np.isfinite(bounds))
        if not len(rows):
            continue
        some, key = with_best_interval(plans.take(rows)), (q.cache.path_count, q.seed)
        due_s = q.limits.deadline_s or 0.0
        whole = some.fallback_usd_per_hour / some.fallback_speed
        mean = simulate_paths(some, due_s, *key).work_s.mean(axis=1) / 3600.0
        best = np.full(len(rows), -np.inf)
        for share in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0):
            price = share * whole
            least = min_usd_at_price(some, price, due_s, *key) - 0.03 * price * mean
            best = np.maximum(best, least)
        short += (bounds[rows] / best).tolist()
    assert len(short) > 50
    assert np.median(short) > 0.93


def test_without_a_limit_the_bound_excludes_nothing() -> None:
    q = question(3, 0.05)
    free = replace(q, limits=replace(q.limits, max_overhead=None))
    assert np.isneginf(bounds_within_overhead(free, *gangs(q))).all()


def test_runs_that_are_drawn_once_give_the_same_paths_as_those_of_each_simulation() -> None:
    q = question(15, 0.05)
    plans = with_best_interval(gangs(q)[1])
    due_s = q.limits.deadline_s
    assert due_s is not None
    drawn = draw_plans(plans, due_s, q.cache.path_count, q.seed)
    rows, early_s = np.tile(np.arange(len(plans)), 2), np.repeat([0.0, 600.0], len(plans))
    once = drawn.earlier(rows, early_s)
    each = simulate_paths(plans.take(rows).earlier(early_s), due_s, q.cache.path_count, q.seed)
    assert len(plans) > 3
    assert (once.expected_usd == each.expected_usd).all()
    assert (once.lost_work_s == each.lost_work_s).all()
    assert (once.time_s == each.time_s).all()
