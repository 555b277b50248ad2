"""Under an overhead limit fallbacks take over as late as it allows, and slower ones are tried."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.evaluate import Plans, path_inputs_of, values_of
from recommender.optimize.last_moment import CLOSELY, ROUGHLY, TOLERANCE
from recommender.optimize.overhead_limit import switched_in_time
from recommender.optimize.search import search
from recommender.optimize.space import Space
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import OutcomeCache
from tests.recommender.optimize.palette import EVERY, assert_search_is_exact, oracle, space

LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
# Questions whose best plan switches earlier than its deadline asks.
SAME = 1e-3  # share by which costs differ without meaning anything
EARLIER = (15, 55, 81, 104)


def question(seed: int, most: int = 3) -> Space:
    """A random question with a deadline and an overhead limit."""
    q = space(seed, 3, most)
    limit = float(np.random.default_rng([seed, 9]).choice(LIMITS))
    return replace(q, limits=replace(q.limits, max_overhead=limit), printed=q.cache)


def has_fallbacks(q: Space) -> bool:
    return q.limits.deadline_s is not None and len(q.sites[0].fallbacks) > 0


@pytest.mark.parametrize("seed", EARLIER)
def test_no_fallback_at_any_moment_makes_a_cheaper_plan(seed: int) -> None:
    assert_search_is_exact(question(seed))


@pytest.mark.slow
def test_of_many_random_questions_no_fallback_at_any_moment_makes_a_cheaper_plan() -> None:
    asked = [q for q in map(question, range(200)) if has_fallbacks(q)]
    for q in asked:
        assert_search_is_exact(q)
    states = [search(q, most=EVERY) for q in asked]
    assert sum(s.best_candidate().early_s > 0.0 for s in states if s.incumbents) >= 10


def best_plan(q: Space) -> PathInputs:
    """The best plan of a question, as what its paths are simulated with at the last moment."""
    found = search(q, most=EVERY).best_candidate()
    counts = np.zeros((1, len(q.sites[0].entries)), dtype=np.int64)
    counts[0, list(found.entries)] = found.counts
    plans = Plans(counts, np.array([found.checkpoint_path]), np.array([found.fallback]))
    return path_inputs_of(q, q.sites[0], plans)[0]


@pytest.mark.parametrize("seed", EARLIER[:3])
def test_the_switch_comes_at_the_last_moment_that_meets_the_limit(seed: int) -> None:
    q, one = question(seed).on_printed_paths(), np.ones(1, dtype=bool)
    last = best_plan(question(seed))
    found = switched_in_time(q, last, values_of(q, last, one))
    most = q.limits.max_overhead
    assert most is not None
    assert found.over_overhead.all()
    assert found.early_s[0] > 0.0
    assert found.values.overhead[0] <= most
    switched = values_of(q, last.earlier(found.early_s), one)
    assert switched.cost_usd == found.values.cost_usd
    later = values_of(q, last.earlier(0.9 * found.early_s), one)
    assert later.overhead[0] > most * (1.0 - 2 * TOLERANCE)
    assert later.cost_usd[0] < found.values.cost_usd[0] * (1.0 + SAME)


@pytest.mark.parametrize("off", [0.7, 1.0, 1.4])
def test_a_moment_that_is_nearly_known_is_the_one_that_is_found_without(off: float) -> None:
    for seed in EARLIER[:3]:
        q, one = question(seed).on_printed_paths(), np.ones(1, dtype=bool)
        last = best_plan(question(seed))
        values = values_of(q, last, one)
        found = switched_in_time(fresh(q), last, values)
        near = switched_in_time(fresh(q), last, values, near_s=off * float(found.early_s[0]))
        assert near.values.overhead[0] <= q.limits.max_overhead
        assert np.abs(near.early_s - found.early_s) < 0.01 * q.limits.deadline_s


def test_the_moment_of_a_plan_that_a_search_has_confirmed_is_not_sought_again() -> None:
    q = question(EARLIER[0])
    last = best_plan(q)
    decides, known = q.on_printed_paths(), len(q.cache.switches)
    values = values_of(decides, last.without_fallback_bound(), np.ones(1, dtype=bool))
    found = switched_in_time(decides, last.without_fallback_bound(), values)
    assert found.early_s[0] > 0.0
    assert len(q.cache.switches) == known


def fresh(q: Space) -> Space:
    """The same question, of which no plan has been simulated yet."""
    return replace(q, cache=OutcomeCache(q.cache.path_count, q.cache.seed))


def test_a_rough_moment_is_narrowed_where_it_decides_whether_the_plan_costs_too_much() -> None:
    narrowed = 0
    for seed in EARLIER:
        q, one = question(seed).on_printed_paths(), np.ones(1, dtype=bool)
        last = best_plan(question(seed))
        values = values_of(q, last, one)
        exact, rough = (
            switched_in_time(fresh(q), last, values, rounds=rounds).values.cost_usd[0]
            for rounds in (CLOSELY, ROUGHLY)
        )
        below = 0.5 * (exact + rough)
        found = switched_in_time(fresh(q), last, values, below, ROUGHLY).values.cost_usd[0]
        assert found <= max(below, exact * (1.0 + SAME))
        narrowed += int(rough > exact * (1.0 + SAME))
    assert narrowed > 0


def test_a_moment_too_dear_for_one_search_is_found_by_a_later_one() -> None:
    given_up = 0
    for seed in EARLIER:
        q, one = fresh(question(seed).on_printed_paths()), np.ones(1, dtype=bool)
        last = best_plan(question(seed))
        values = values_of(q, last, one)
        exact = switched_in_time(fresh(q), last, values).values.cost_usd[0]
        given_up += int(not switched_in_time(q, last, values, 0.9 * exact).early_s.any())
        later = switched_in_time(q, last, values).values.cost_usd[0]
        assert later == pytest.approx(exact, rel=SAME)
    assert given_up > 0


@pytest.mark.parametrize("seed", EARLIER)
def test_without_the_limit_no_fallback_takes_over_early(seed: int) -> None:
    q = question(seed)
    free = replace(q, limits=replace(q.limits, max_overhead=None))
    assert {c.early_s for c in search(free, most=EVERY).incumbents.values()} == {0.0}
    assert oracle(free)[1].goal_value.min() <= oracle(q)[1].goal_value.min()
