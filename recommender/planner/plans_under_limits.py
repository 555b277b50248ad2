"""Finds a plan that meets limits other than the requested ones, where any will do."""

from collections.abc import Sequence
from dataclasses import replace

from recommender.optimize.search_state import Candidate, ranking_key
from recommender.plan.limits import Limits
from recommender.planner.plan_builder import Evaluated
from recommender.planner.search import PlanSearch
from recommender.planner.sensitivity import TRIES
from recommender.planner.single_type_search import BASELINE, QUICK

CHECKED = 3  # plans simulated again until one meets the limits


def plan_meeting(limits: Limits, search: PlanSearch) -> Evaluated | None:
    """Find a plan that meets the limits; the fastest come first, and may all exceed the budget.

    It is one of the most likely by their estimates, or of the best; if none of the first ones meets
    them, more are simulated.
    """
    search = search.under(limits, BASELINE)
    too_fast = limits.budget_usd is not None and limits.goal == "time"
    aims = (replace(limits, objective="cost"), limits) if too_fast else (limits,)
    for aim in aims:
        found = first_meeting(search.single_type.by_estimate(aim), aim, search)
        if found is not None:
            return found
    return None if search.quota_mixes is None else search.quota_mixes.meeting(limits)


def plan_by_bounds(limits: Limits, search: PlanSearch) -> Evaluated | None:
    """A plan that meets the limits, by their bounds: where the estimates find none."""
    search = search.under(limits, BASELINE)
    found = search.single_type.search(limits, cap=QUICK).incumbents.values()
    return first_meeting(sorted(found, key=ranking_key), limits, search, TRIES)


def first_meeting(
    candidates: Sequence[Candidate], limits: Limits, search: PlanSearch, tries: int = CHECKED
) -> Evaluated | None:
    """The first of a few plans that meets the limits in the printed figures."""
    builder = search.builder if search.quota_mixes is None else search.quota_mixes.builder
    return next(builder.under(limits).meeting(candidates[:tries]), None)
