"""Under an overhead limit fallbacks take over as late as it allows."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.evaluate import values_of
from recommender.optimize.overhead_limit import TOLERANCE, last_moments, switched_in_time
from recommender.optimize.space import Space
from recommender.risk.path_inputs import PathInputs
from tests.recommender.optimize.palette import space
from tests.recommender.optimize.pooled import every, on_product_paths, problem, selected
from tests.recommender.optimize.samples import sampled, thinned

LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
GRID = 40  # moments of the room between the last and none
SAME = 1e-3  # share by which costs differ without meaning anything
FINER = 0.05  # what a moment between two of the oracle's may be worth
# Steps of the grid by which a switch may be earlier than the last that meets the limit. Of one
# plan of 81 the search finds a moment 1.3 steps earlier.
SOONER = {81: 1.4}
# Questions whose best plan switches earlier than its deadline asks.
EARLIER = (15, 55, 81, 104)


def question(seed: int, most: int = 3) -> Space:
    """A random question with a deadline and an overhead limit."""
    q = space(seed, 3, most)
    limit = float(np.random.default_rng([seed, 9]).choice(LIMITS))
    return replace(on_product_paths(q), limits=replace(q.limits, max_overhead=limit))


def has_fallbacks(q: Space) -> bool:
    return q.limits.deadline_s is not None and len(q.sites[0].fallbacks) > 0


@pytest.mark.parametrize("seed", sampled(EARLIER, (15, 55, 104)))
def test_no_fallback_at_any_moment_makes_a_cheaper_plan(seed: int) -> None:
    assert not problem(question(seed), worse=FINER)


@pytest.mark.slow
def test_of_many_random_questions_no_fallback_at_any_moment_makes_a_cheaper_plan() -> None:
    asked = {seed: q for seed in range(200) if has_fallbacks(q := question(seed))}
    found = {seed: problem(q, worse=FINER) for seed, q in asked.items()}
    assert not {seed: words for seed, words in found.items() if words}
    best = [found.plans[0] for q in asked.values() if (found := selected(q)).plans]
    assert sum(plan.early_s > 0.0 for plan in best) >= 10


def over_the_limit(q: Space) -> PathInputs:
    """The plans with a fallback that meet the limits but for their overhead, at the last moment."""
    limits, free = q.limits, replace(q, limits=replace(q.limits, max_overhead=None))
    found = every(free)
    rows = found.plans.fallback >= 0
    rows &= found.values.chance >= limits.confidence
    rows &= found.values.overhead > (limits.max_overhead or 0.0)
    return found.inputs.take(np.flatnonzero(rows)[:30])


@pytest.mark.parametrize("seed", thinned(EARLIER, 2))
def test_a_last_moment_is_the_last_of_a_fine_grid_that_meets_the_limit(seed: int) -> None:
    """Where the overhead falls with an earlier switch, as it does at first."""
    q = question(seed).on_printed_paths()
    plans, most = over_the_limit(q), q.limits.max_overhead or 0.0
    assert len(plans)
    found_s = last_moments(q, plans, np.zeros(len(plans)))
    room_s = np.maximum((q.limits.deadline_s or 0.0) - plans.handover_s, 0.0)
    overheads = np.stack(
        [values_of(q, plans.earlier(n / GRID * room_s)).overhead for n in range(GRID)]
    )
    met = overheads <= most
    for plan in range(len(plans)):
        if not met[:, plan].any():
            continue  # of the moments after the last of the grid the search may find one
        first = int(met[:, plan].argmax())
        step_s = room_s[plan] / GRID
        assert found_s[plan] <= (first + SOONER.get(seed, 1.0)) * step_s, plan
        if (np.diff(overheads[: first + 1, plan]) <= 0.0).all():
            assert found_s[plan] >= (first - 1) * step_s - 1.0, plan


@pytest.mark.parametrize("seed", EARLIER[:2])
def test_the_switch_meets_the_limit_and_a_later_one_does_not(seed: int) -> None:
    q = question(seed).on_printed_paths()
    last, most = over_the_limit(q), q.limits.max_overhead or 0.0
    values, early_s = switched_in_time(q, last, values_of(q, last))
    rows = np.flatnonzero(early_s > 0.0)
    assert len(rows)
    assert (values.overhead[rows] <= most).all()
    switched = values_of(q, last.take(rows).earlier(early_s[rows]))
    assert (switched.cost_usd == values.cost_usd[rows]).all()
    later = values_of(q, last.take(rows).earlier(0.9 * early_s[rows]))
    dearer = later.cost_usd >= values.cost_usd[rows] * (1.0 + SAME)
    assert (dearer | (later.overhead > most * (1.0 - 2 * TOLERANCE))).all()


def test_a_moment_that_was_found_is_not_sought_again() -> None:
    q = question(EARLIER[0]).on_printed_paths()
    last = over_the_limit(q)
    values = values_of(q, last)
    _, first = switched_in_time(q, last, values)
    known = len(q.cache.switches)
    assert known
    assert (switched_in_time(q, last, values)[1] == first).all()
    assert len(q.cache.switches) == known


@pytest.mark.parametrize("seed", EARLIER[:2])
def test_without_the_limit_no_fallback_takes_over_early(seed: int) -> None:
    q = question(seed)
    free = replace(q, limits=replace(q.limits, max_overhead=None))
    found = selected(free)
    assert {plan.early_s for plan in found.plans} == {0.0}
    assert found.goal <= selected(q).goal * (1.0 + SAME)
