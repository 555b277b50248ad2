"""Relaxes limits one at a time, by as little as makes a plan possible.

Plans without a fallback have the same outcome under every limit. So the plans found without a limit
show how little of it is enough, and no search is wasted on limits that nothing meets.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.bounds.fallback import without_savings
from recommender.optimize.evaluate import limits_met, path_inputs_of
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.optimize.space import Space
from recommender.plan.limits import DEADLINE, LIMITS, Aim, Limit, Limits, MeanLimit, PathLimit
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Evaluated, plans_of
from recommender.planner.search import PlanSearch
from recommender.planner.sensitivity import TRIES
from recommender.planner.single_type_search import BASELINE, QUICK, SHORT, Only, SearchCap
from recommender.risk.run_statistics import quantiles

SUGGESTED_MARGIN = 1.03  # a suggested limit is this much wider than what its plan needs on the day
WIDENING = 1.15  # and is widened by this factor while no plan meets it
MAX_WIDENINGS = 6  # times at most
NARROWER, CLOSE, CHECKED = 3.0, 1.08, 3  # then tightened to a third at most, so much at a time
ASKED_BELOW, ASKED = 1.12, SearchCap(1000)  # a last question asks for so much less
EITHER: tuple[Only, ...] = ("any", "on_demand")
MIN_SURE, SURE_STEP = 50, 5  # per cent: the chances tried where a surer one leaves no plan

_Found = tuple[float, Plan, Candidate | None]  # a limit's value, a plan that meets it


@dataclass(frozen=True, slots=True)
class Relaxed:
    """One limit, relaxed by as little as makes a plan possible."""

    limit: Limit | None  # None: the chance that all are met
    typed: str  # "--deadline 9h40m"
    limits: Limits
    plan: Plan
    candidate: Candidate | None = None  # what the plan was built of


def each_relaxed(limits: Limits, search: PlanSearch) -> list[Relaxed]:
    """Each limit relaxed alone, if that makes a plan possible; the confidence comes last."""
    found = [relaxed(limit, limits, search) for limit, _ in limits.given(LIMITS)]
    found.append(_lower_confidence(limits, search))
    return [each for each in found if each is not None]


def relaxed(
    limit: Limit, limits: Limits, search: PlanSearch, known: "Relaxed | None" = None
) -> Relaxed | None:
    """The smallest value of one limit that makes a plan possible, checked by planning again.

    If a short search finds none, a plan that is known to meet the other limits gives the start.
    """
    if isinstance(limit, PathLimit | MeanLimit):
        found = _least(limit, limits, search, known)
    else:
        found = _least_rate(limit, limits, search, known)
    if found is None:
        return None
    value, plan, candidate = found
    progress = search.problem.progress
    value = rounded_up(limit, value, progress)
    typed, looser = as_typed(limit, value, progress), limits.with_value(limit, value)
    return Relaxed(limit, typed, looser, plan, candidate)


def _least(
    limit: PathLimit | MeanLimit, limits: Limits, search: PlanSearch, known: Relaxed | None
) -> _Found | None:
    """About the least value of a limit that needs simulation, and its plan."""
    alone = [each for each, _ in search.problem.limits.given(LIMITS)] == [limit]
    here = search.under(limits, BASELINE)
    value, found_plans = _needed(limit, limits, here)
    if value is None and known is not None and known.candidate is not None:
        value = limit.of_plan(known.plan) * SUGGESTED_MARGIN
        found_plans = [known.candidate] if search.under(known.limits, BASELINE) is here else []
    if value is None:
        return None
    tries = _Tries(limit, alone, here)
    if tries.first_of_several(limits):
        found_plans = []
    found = _widened(tries, value, limits, found_plans)
    if found is None:
        return None
    value, plan = _narrowed(tries, *found, limits)
    if isinstance(limit, PathLimit) and not alone:
        value, plan = _asked_again(limit, value, plan, limits, here)
    return value, plan.plan, plan.candidate


def _least_rate(
    limit: Limit, limits: Limits, search: PlanSearch, known: Relaxed | None
) -> _Found | None:
    """About the least price per hour that leaves a plan, by bisection, and the plan.

    Each rate allows other fallbacks, so each is searched anew.
    """
    first = _searched(replace(limits.with_value(limit, None), objective=limit.aim), search)
    plan = None if first is None else first.plan
    if plan is None and known is not None:
        plan = known.plan
    if plan is None:
        return None
    low, value = limits.value(limit) or 0.0, limit.of_plan(plan)
    while value > CLOSE * low:
        middle = (low * value) ** 0.5
        tighter = _searched(limits.with_value(limit, middle), search)
        if tighter is None:
            low = middle
        else:
            plan, value = tighter.plan, limit.of_plan(tighter.plan)
    return value, plan, None  # candidates of other rates have other fallbacks


@dataclass(frozen=True, slots=True)
class _Tries:
    """Looks for plans under several values of one limit."""

    limit: Limit
    alone: bool  # no other limit was stated: plans that use least of one may be far over another
    search: PlanSearch

    def plan_within(self, limits: Limits) -> Evaluated | None:
        """A plan that meets the limits; where one was stated, of those that use least of it too."""
        surest = not self.first_of_several(limits)
        plan = plan_meeting(limits, self.search, surest)
        if plan is None and self.alone:
            return _extreme_plan(self.limit, limits, self.search)
        return plan

    def first_of_several(self, limits: Limits) -> bool:
        """Whether others are loosened after a deadline: the minimum deadline needs most of them."""
        only = [each for each, _ in limits.given(LIMITS)] == [self.limit] == [DEADLINE]
        return only and not self.alone


def _widened(
    tries: _Tries, value: float, limits: Limits, found_plans: Sequence[Candidate]
) -> tuple[float, float, Evaluated] | None:
    """A value of one limit that leaves none, one that leaves a plan, from one that may, and it.

    `found_plans` are plans that need least of it.
    """
    limit, search = tries.limit, tries.search
    low = limits.value(limit) or 0.0
    for number in range(MAX_WIDENINGS):
        tried = limits.with_value(limit, value)
        plan = tries.plan_within(tried) or _first(found_plans, tried, search)
        if plan is None and not number:
            plan = _searched(tried, search)
        if plan is not None:
            return low, value, plan
        low, value = value, value * WIDENING
    return None


def _narrowed(
    tries: _Tries, low: float, value: float, plan: Evaluated, limits: Limits
) -> tuple[float, Evaluated]:
    """A value of a limit below which no plan was found, from one that leaves a plan, and a plan.

    What a plan itself needs may be far less than the value at which it was found.
    """
    limit, search = tries.limit, tries.search
    if not isinstance(limit, PathLimit):
        return _as_needed(limit, value, plan, limits, search)
    tried = np.inf
    while value < tried:
        tried = max(low, value / NARROWER)
        value, plan = _narrowed_again(tries, tried, value, plan, limits)
        value, plan = _as_needed(limit, value, plan, limits, search)
    return value, plan


def _narrowed_again(
    tries: _Tries, low: float, value: float, plan: Evaluated, limits: Limits
) -> tuple[float, Evaluated]:
    """What one plan needs is enough; others may need less, if not as little as `low`."""
    while value > CLOSE * low:
        middle = (low * value) ** 0.5
        tighter = tries.plan_within(limits.with_value(tries.limit, middle))
        low, value = (middle, value) if tighter is None else (low, middle)
        plan = tighter or plan
    return value, plan


def _asked_again(
    limit: PathLimit, value: float, plan: Evaluated, limits: Limits, search: PlanSearch
) -> tuple[float, Evaluated]:
    """A smaller value that leaves a plan if it is asked for as a question of its own.

    Its master program may rank first what estimates leave out next to another limit.
    """
    for _ in range(CHECKED):
        tried = limits.with_value(limit, value / ASKED_BELOW)
        if value / ASKED_BELOW <= (limits.value(limit) or 0.0):
            break
        own = PlanSearch(search.problem.under(tried), cap=ASKED).single_type.own
        found = _first(sorted(own.incumbents.values(), key=ranking_key), tried, search, TRIES)
        if found is None:
            break
        value, plan = _as_needed(limit, value / ASKED_BELOW, found, limits, search)
    return value, plan


def _lower_confidence(limits: Limits, search: PlanSearch) -> Relaxed | None:
    """A plan that meets all limits with a lower chance, as high as one can be."""
    sure, wider, best = limits.confidence, limits, None
    chances = [c / 100 for c in range(MIN_SURE, 100, SURE_STEP) if c / 100 < sure]
    low, high = 0, len(chances)  # nothing is known of the chances from low on, nor below high
    while low < high:
        middle = (low + high) // 2 if best else low
        tried = replace(limits, confidence=chances[middle])
        plan = plan_meeting(tried, search)
        if plan is None:
            high = middle
            continue
        low, wider, best = middle + 1, tried, plan
    if best is None:
        return None
    return Relaxed(None, f"--confidence {wider.confidence:g}", wider, best.plan)


def plan_meeting(limits: Limits, search: PlanSearch, surest: bool = True) -> Evaluated | None:
    """Find a plan that meets the limits; the fastest come first, and may all exceed the budget.

    It is one of the most likely by their estimates, or of the best; if none of the first ones meets
    them, more are simulated.
    """
    search = search.under(limits, BASELINE)
    too_fast = limits.budget_usd is not None and limits.goal == "time"
    aims = (replace(limits, objective="cost"), limits) if too_fast else (limits,)
    for aim in aims:
        found = _first(search.single_type.by_estimate(aim, surest), aim, search)
        if found is not None:
            return found
    return None


def _as_needed(
    limit: Limit, value: float, plan: Evaluated, limits: Limits, search: PlanSearch
) -> tuple[float, Evaluated]:
    """What the plan that was found needs of a limit itself, if that is less."""
    margin = SUGGESTED_MARGIN if isinstance(limit, PathLimit) else 1.0
    need = max(limit.of_plan(plan.plan) * margin, limits.value(limit) or 0.0)
    tighter = None
    if need < value:
        tighter = _first([plan.candidate], limits.with_value(limit, need), search)
    return (value, plan) if tighter is None else (need, tighter)


def _searched(limits: Limits, search: PlanSearch) -> Evaluated | None:
    """A plan that meets the limits, by their bounds: where the estimates find none."""
    search = search.under(limits, BASELINE)
    found = search.single_type.search(limits, cap=QUICK).incumbents.values()
    return _first(sorted(found, key=ranking_key), limits, search, TRIES)


def _extreme_plan(limit: Limit, limits: Limits, search: PlanSearch) -> Evaluated | None:
    """A plan that meets a limit, of those that use least of it: right where no other binds.

    The cheapest plans are mostly late where the deadline is the question.
    """
    aim = replace(limits, objective=limit.aim)
    found = search.single_type.search(aim, cap=SHORT).incumbents.values()
    return _first(sorted(found, key=ranking_key), aim, search)


def _first(
    candidates: Sequence[Candidate], limits: Limits, search: PlanSearch, tries: int = CHECKED
) -> Evaluated | None:
    """The first of a few plans that meets the limits in the printed figures."""
    return next(search.builder.under(limits).meeting(islice(candidates, tries)), None)


def _needed(
    limit: PathLimit | MeanLimit, limits: Limits, search: PlanSearch
) -> tuple[float | None, list[Candidate]]:
    """What the plan that needs least of a limit, of those met without it, needs; and this plan."""
    free = limits.with_value(limit, None)
    # The fastest may all be over the budget, as in `plan_meeting`.
    aims: tuple[Aim, ...] = (limit.aim,) if free.budget_usd is None else (limit.aim, "cost")
    tried = [replace(free, objective=aim) for aim in dict.fromkeys(aims)]
    if next(free.given(LIMITS), None) is None:  # made for the fastest and the cheapest as well
        # The fastest and cheapest as a rule may be spot plans of a wide span; others are surer.
        best = (
            best_of(search.single_type.search(aim, only, QUICK)) for aim in tried for only in EITHER
        )
        found_plans = [each for each in best if each is not None]
    else:
        found_plans = [each for aim in tried for each in search.single_type.by_estimate(aim)]
    if not found_plans:
        return None, []
    need = _needs(limit, free, found_plans, search)
    ordered = [
        found_plans[i] for i in np.argsort(need, kind="stable").tolist() if np.isfinite(need[i])
    ]
    # What meets the other limits on the paths of a search may miss them on those printed.
    sure = _first(ordered, free, search, TRIES)
    return (
        (None, [])
        if sure is None
        else (limit.of_plan(sure.plan) * SUGGESTED_MARGIN, [sure.candidate])
    )


def _needs(
    limit: PathLimit | MeanLimit, free: Limits, found_plans: Sequence[Candidate], search: PlanSearch
) -> Floats:
    """What plans need of a limit to meet all with the requested chance; inf: never."""
    problem = search.problem
    space = replace(problem.space(problem.single_type_sites), limits=free)
    need = np.full(len(found_plans), np.inf)
    for index in sorted({each.site for each in found_plans}):
        mine = [number for number, each in enumerate(found_plans) if each.site == index]
        need[mine] = _needs_at(space, index, [found_plans[number] for number in mine], limit)
    return need


def _needs_at(
    space: Space, index: int, found_plans: Sequence[Candidate], limit: PathLimit | MeanLimit
) -> Floats:
    """Needs of plans at one site, shape (plans,), from the simulations that the search made."""
    rows, plans = plans_of(found_plans)
    inputs, _ = path_inputs_of(space, space.sites[index].only(rows), plans)
    inputs = inputs.earlier(np.array([each.early_s for each in found_plans]))
    simulated = without_savings(space, inputs).without_fallback_bound(plans.fallback >= 0)
    found = space.cache.outcomes(simulated, space.limits.deadline_s)
    met, sure = limits_met(space.limits, found), space.limits.confidence
    if isinstance(limit, PathLimit):
        figures = np.where(met, limit.of_paths(found), np.inf)
        return np.array([quantiles(each, sure)[0] for each in figures])
    return np.where(met.mean(axis=1) >= sure - 1e-12, limit.of_means(found), np.inf)


def best_of(state: SearchState) -> Candidate | None:
    """The best plan of a search, if it found one."""
    return min(state.incumbents.values(), key=ranking_key, default=None)
