"""Loosens several limits one after the other, where none of them does alone."""

from dataclasses import replace

from recommender.inputs.limits import as_typed, rounded_up
from recommender.plan.limits import DEADLINE, Limit, Limits
from recommender.planner.plans_under_limits import plan_meeting
from recommender.planner.relaxed_limits import Relaxed, relaxed
from recommender.planner.search import PlanSearch

WAIT = 1.24  # a deadline so much longer is named where it costs much less,
WAIT_TOGETHER = 2.0  # and where other limits change as well, as they fall with it


def in_turn(given: list[tuple[Limit, float]], search: PlanSearch) -> tuple[list[Relaxed], bool]:
    """Each limit as near to the requested one as those before it allow, and whether all can be."""
    now = search.problem.limits
    for limit, _ in given:
        now = now.with_value(limit, None)
    return _next_in_turn(given, now, given[0][0], [], search)


def _next_in_turn(
    given: list[tuple[Limit, float]],
    now: Limits,
    lead: Limit,
    found: list[Relaxed],
    search: PlanSearch,
) -> tuple[list[Relaxed], bool]:
    """Limits loosened after those `found`, under which `now` holds; a lead may go far."""
    for limit, value in given:
        now = now.with_value(limit, value)
        if plan_meeting(now, search) is not None:
            continue
        looser = relaxed(limit, now, search, found[-1] if found else None)
        if looser is None:
            return found, False
        now, found = looser.limits, [*found, looser]
        if looser.is_far(search.problem.limits) and limit != lead:
            return found, False
    return found, True


def in_turn_after(
    first: Relaxed, given: list[tuple[Limit, float]], search: PlanSearch
) -> tuple[list[Relaxed], bool]:
    """Every limit loosened from a longer deadline on, which may ask for less of the others."""
    limits = with_longer_deadline(first.limits, search, WAIT_TOGETHER)
    typed = as_typed(DEADLINE, limits.deadline_s or 0.0, search.problem.progress)
    longer = Relaxed(DEADLINE, typed, limits, first.plan)
    others = [each for each in given if each[0] != DEADLINE]
    return _next_in_turn(others, limits, DEADLINE, [longer], search)


def joined(found: list[Relaxed]) -> Relaxed:
    """Several limits loosened one after the other, as one change."""
    return replace(found[-1], typed=" ".join(each.typed for each in found))


def with_longer_deadline(limits: Limits, search: PlanSearch, wait: float = WAIT) -> Limits:
    """Limits with a longer deadline."""
    longer_s = (limits.deadline_s or 0.0) * wait
    return replace(limits, deadline_s=rounded_up(DEADLINE, longer_s, search.problem.progress))
