"""No bound under a budget is above any plan that meets it.

A budget bounds what the work costs per sample, so how much of it clusters can afford, and for
clusters that neither a fallback nor their own on-demand machines can finish within the budget also
what they spend on all of it (`Waits.kept`). Every bound is compared with every plan of small
spaces, each evaluated with the full model, under budgets around what its cheapest plans cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from recommender.optimize.bounds.site import SiteBounds, site_bounds_of
from recommender.optimize.entry_sets import leaves, min_of_set
from recommender.optimize.evaluate import Plans
from recommender.optimize.search import single_lower_bounds
from recommender.optimize.space import Space, single_steps
from recommender.plan.limits import Limits
from tests.recommender.optimize.bounds.test_cluster import (
    min_goals,
    part_of,
    question,
    support_bound,
)
from tests.recommender.optimize.palette import oracle
from tests.recommender.optimize.samples import one_in

ROUNDING = 1e-3
SPACES, CHUNKS = 96, 8
BUDGETS = (1.0, 1.5, 3.0, 8.0)  # of what the cheapest plan without limits costs
DUE = 3.0  # deadlines next to a budget, of what the quickest plan takes


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under a budget, what bounds its mixes, and the time of every plan."""

    name: str
    space: Space
    bounds: SiteBounds | None  # none where two offers cannot be used
    plans: Plans
    goals: np.ndarray  # inf where the limits are not met

    @property
    def mixes(self) -> Iterator[tuple[np.ndarray, tuple[int, ...], float]]:
        """Counts, places in the order of the bounds, and time of the mixes that meet the limits."""
        for counts, goal in zip(self.plans.counts, self.goals.tolist(), strict=True):
            used = tuple(np.flatnonzero(counts).tolist())
            if self.bounds is not None and len(used) > 1 and np.isfinite(goal):
                yield counts, part_of(self.bounds, used), goal


@cache
def asked(chunk: int) -> tuple[Asked, ...]:
    """Every third budget of the spaces of a chunk, alone and with a deadline."""
    found = []
    for number, (name, space) in enumerate(_questions(chunk)):
        if number % 3 == chunk % 3:
            plans, values = oracle(space)
            bounds = site_bounds_of(space, space.sites[0])
            found.append(Asked(name, space, bounds, plans, values.goal_value))
    return tuple(found)


def _questions(chunk: int) -> Iterator[tuple[str, Space]]:
    for seed in range(chunk, SPACES, CHUNKS):
        free = replace(question(seed), limits=Limits(max_machines=4))
        _, values = oracle(free)
        if not np.isfinite(values.cost_usd).any():
            continue
        cheapest, quickest = float(values.cost_usd.min()), float(values.time_s.min())
        for share in BUDGETS:
            limits = replace(free.limits, confidence=(0.5, 0.8, 0.95)[seed % 3])
            limits = replace(limits, budget_usd=share * cheapest)
            yield f"{seed}, {share}", replace(free, limits=limits)
            due = replace(limits, deadline_s=DUE * quickest, objective="time")
            yield f"{seed}, {share}, deadline", replace(free, limits=due)


@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_no_bound_of_a_set_of_offers_is_above_a_plan_that_meets_the_budget(chunk: int) -> None:
    over, kept = {}, 0
    for each in asked(chunk):
        if each.bounds is None:
            continue
        least = min_goals(each.bounds, each.plans, each.goals)
        kept += len(least) if each.bounds.waits.kept else 0
        for (support, later), goal in least.items():
            for cutoff in (goal * (1.0 + 1e-9), np.inf):
                bound = support_bound(each.bounds, support, cutoff, later)
                if bound > goal * (1.0 + ROUNDING):
                    over[each.name, support, later] = bound / goal - 1.0
    assert not over
    assert kept > 0


@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_clusters_that_meet_the_budget_are_among_those_listed(chunk: int) -> None:
    compared = 0
    for each in asked(chunk):
        for counts, support, goal in each.mixes:
            assert each.bounds is not None
            cutoff = goal * (1.0 + ROUNDING)
            mine = counts[[each.bounds.order[place] for place in support]]
            blocks, _ = leaves(each.bounds, support, cutoff)
            assert any((block == mine).all(axis=1).any() for block in blocks), (each.name, counts)
            assert min_of_set(each.bounds, support, cutoff) <= cutoff, (each.name, counts)
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_no_bound_of_one_offer_is_above_a_plan_that_meets_the_budget(chunk: int) -> None:
    compared, ruled_out = 0, 0
    for each in asked(chunk):
        q = each.space
        steps = single_steps(q.job, q.columns, q.limits.max_machines)
        lower = single_lower_bounds(q, q.sites[0], steps)
        for counts, goal in zip(each.plans.counts, each.goals.tolist(), strict=True):
            if (counts > 0).sum() == 1:
                bound = lower[counts.argmax(), counts.max() - 1]
                ruled_out += int(np.isinf(bound))
                compared += int(np.isfinite(goal))
                assert np.isinf(goal) or bound <= goal * (1.0 + ROUNDING), (each.name, counts)
    assert min(compared, ruled_out) > 0
