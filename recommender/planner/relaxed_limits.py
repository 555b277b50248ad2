"""Relaxes limits one at a time, by as little as makes a plan possible.

What a plan needs of a limit is read off its simulated runs, so the least need is the smallest value
that works (`least_value.py`). Only where fallbacks start at other moments under another value,
several values are tried (`narrowing.py`): under a deadline, and with an overhead limit.
"""

from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.search_state import Candidate
from recommender.plan.limits import DEADLINE, LIMITS, Limit, Limits, MeanLimit, PathLimit
from recommender.plan.plan import Plan
from recommender.planner.least_value import HUGE, LeastValue
from recommender.planner.narrowing import narrowed
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plans_under_limits import plan_by_bounds, plan_meeting
from recommender.planner.search import PlanSearch
from recommender.planner.single_type_search import BASELINE, ESTIMATED

CLOSE_RATES = 1.08  # rates this close to each other count as equal
LAST_RATES = 3  # last questions of a price per hour,
ASKED_BELOW = 1.12  # each of which asks for so much less
MIN_SURE, SURE_STEP = 50, 5  # per cent: the chances tried where a surer one leaves no plan
# A deadline that is so many times as long, and beyond a week, is no advice next to another limit:
# then the other limit is what to change.
FAR_DEADLINE, WEEK_S = 4.0, 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Relaxed:
    """One limit, relaxed by as little as makes a plan possible."""

    limit: Limit | None  # None: the chance that all are met
    typed: str  # "--deadline 9h40m"
    limits: Limits
    plan: Plan
    candidate: Candidate | None = None  # what the plan was built of

    def is_far(self, asked: Limits) -> bool:
        """Whether it is a deadline too far from the requested one to be advice; never if alone."""
        alone = len(list(asked.given(LIMITS))) == 1
        due_s = self.limits.deadline_s or 0.0
        return self.limit == DEADLINE and not alone and due_s > horizon_s(asked)


def horizon_s(asked: Limits) -> float:
    """The longest deadline that is suggested next to other limits."""
    return max(FAR_DEADLINE * (asked.deadline_s or 0.0), WEEK_S)


def each_relaxed(limits: Limits, search: PlanSearch) -> list[Relaxed]:
    """Each limit relaxed alone, if that makes a plan possible; the confidence comes last."""
    found = [relaxed(limit, limits, search) for limit, _ in limits.given(LIMITS)]
    found.append(_lower_confidence(limits, search))
    return [each for each in found if each is not None]


def relaxed(
    limit: Limit, limits: Limits, search: PlanSearch, known: Relaxed | None = None
) -> Relaxed | None:
    """The smallest value of one limit that makes a plan possible, checked in printed figures.

    A plan that is known to meet the other limits is among those tried.
    """
    if isinstance(limit, PathLimit | MeanLimit):
        found = _least_value(limit, limits, search, known)
    else:
        found = _least_rate(limit, limits, search, known)
    if found is None:
        return None
    progress = search.problem.progress
    value = rounded_up(limit, found.value, progress)
    typed, looser = as_typed(limit, value, progress), limits.with_value(limit, value)
    return Relaxed(limit, typed, looser, found.plan, found.candidate)


def best_within(looser: Relaxed, search: PlanSearch) -> Plan | None:
    """About the best plan under limits of which one was loosened."""
    limits, here = looser.limits, search.under(looser.limits, BASELINE)
    known, cap = None if looser.candidate is None else looser.plan, BASELINE
    if isinstance(looser.limit, PathLimit) and limits.max_overhead is None:
        least = LeastValue(looser.limit, limits, here)
        known, cap = least.best_plan(_usable(looser, here)) or known, ESTIMATED
    found = here.replan(limits, known, cap)
    return known if found is None else found.plan


@dataclass(frozen=True, slots=True)
class _Found:
    """A value of a limit, and a plan that meets it."""

    value: float
    plan: Plan
    candidate: Candidate | None = None  # what the plan was built of


def _least_value(
    limit: PathLimit | MeanLimit, limits: Limits, search: PlanSearch, known: Relaxed | None
) -> _Found | None:
    """About the least value that leaves a plan; a known one is tried with the others."""
    here = search.under(limits, BASELINE)
    least, usable = LeastValue(limit, limits, here), _usable(known, here)
    most = _longest(limit, search.problem.limits)
    met = least.within(most, usable)
    if met is None and most is not None:
        if known is not None:
            return _Found(HUGE, known.plan)  # which takes longer
        met = least.within(None)
    elif met is not None and _moves_fallbacks(limit, limits):
        met = narrowed(least, met)
    plan = None if met is None else least.built(met)
    return None if met is None or plan is None else _Found(met.value, plan.plan, plan.candidate)


def _moves_fallbacks(limit: Limit, limits: Limits) -> bool:
    """Whether fallbacks start at other moments under another value of a limit.

    They start in time for the deadline, and early enough for an overhead limit.
    """
    path = isinstance(limit, PathLimit)
    return path and (limit == DEADLINE or limits.max_overhead is not None)


def _longest(limit: Limit, asked: Limits) -> float | None:
    """The longest deadline that is advice; None: any."""
    alone = [each for each, _ in asked.given(LIMITS)] == [limit]
    return None if alone or limit != DEADLINE else horizon_s(asked)


def _usable(known: Relaxed | None, here: PlanSearch) -> list[Candidate]:
    """The plan of another relaxed limit, if it is one of the same sites."""
    if known is None or known.candidate is None:
        return []
    same_sites = here.under(known.limits, BASELINE) is here
    return [known.candidate] if same_sites else []


def _least_rate(
    limit: Limit, limits: Limits, search: PlanSearch, known: Relaxed | None
) -> _Found | None:
    """About the least price per hour that leaves a plan, by bisection, and the plan.

    Each rate allows other fallbacks, so candidates of one are none of another.
    """
    free = replace(limits.with_value(limit, None), objective=limit.aim)
    first = plan_meeting(free, search) or plan_by_bounds(free, search) or known
    if first is None:
        return None
    plan = first.plan
    low, value = limits.value(limit) or 0.0, limit.of_plan(plan)
    while value > CLOSE_RATES * low:
        middle = (low * value) ** 0.5
        tighter = plan_meeting(limits.with_value(limit, middle), search)
        if tighter is None:
            low = middle
        else:
            plan, value = tighter.plan, limit.of_plan(tighter.plan)
    for _ in range(LAST_RATES):
        asked = value / ASKED_BELOW
        if asked <= (limits.value(limit) or 0.0):
            break
        tighter = plan_by_bounds(limits.with_value(limit, asked), search)
        if tighter is None:
            break
        plan, value = tighter.plan, limit.of_plan(tighter.plan)
    return _Found(value, plan)


def _lower_confidence(limits: Limits, search: PlanSearch) -> Relaxed | None:
    """A plan that meets all limits with a lower chance, as high as one can be."""
    found = surest_plan(limits, search)
    if found is None:
        return None
    wider, best = found
    return Relaxed(None, f"--confidence {wider.confidence:g}", wider, best.plan)


def surest_plan(limits: Limits, search: PlanSearch) -> tuple[Limits, Evaluated] | None:
    """A plan that meets all limits with a lower chance, as high as one can be, and that chance."""
    sure, found = limits.confidence, None
    chances = [c / 100 for c in range(MIN_SURE, 100, SURE_STEP) if c / 100 < sure]
    low, high = 0, len(chances)  # nothing is known of the chances from low on, nor below high
    while low < high:
        middle = (low + high) // 2 if found else low
        tried = replace(limits, confidence=chances[middle])
        plan = plan_meeting(tried, search)
        if plan is None:
            high = middle
        else:
            low, found = middle + 1, (tried, plan)
    return found
