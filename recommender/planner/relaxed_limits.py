"""Limits loosened one at a time, by as little as leaves a plan."""

from dataclasses import replace
from itertools import chain, islice

from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.columns import clusters_by_estimate
from recommender.optimize.search import judge_first
from recommender.optimize.search_state import Candidate, SearchState, ranking_key
from recommender.plan.limits import LIMITS, Aim, Limit, Limits, RateLimit, RunLimit
from recommender.plan.plan import Plan
from recommender.planner.search import GLANCE, JUDGED, QUICK, Only, PlanSearch
from recommender.planner.sensitivity import TRIES

MARGIN = 1.03  # a suggested limit is this much wider than what its plan needs on the day
WIDER = 1.15  # and is widened by this factor while no plan keeps it
WIDENED = 6  # times at most
NARROWER, CLOSE, FEW = 3.0, 1.08, 3  # then halved from a third, until so close, on few plans
EITHER: tuple[Only, ...] = ("any", "on_demand")
LEAST_SURE, SURE_STEP = 50, 5  # per cent: the chances tried where a surer one leaves no plan


@dataclass(frozen=True, slots=True)
class Relaxed:
    """One limit loosened by as little as leaves a plan."""

    limit: Limit | None  # None: the chance that all are kept
    typed: str  # "--deadline 9h40m"
    limits: Limits
    plan: Plan


def each_relaxed(limits: Limits, search: PlanSearch) -> list[Relaxed]:
    """Each limit loosened alone, those that leave a plan; the chance is lowered last."""
    found = [relaxed(limit, limits, search) for limit, _ in limits.given(LIMITS)]
    found.append(_less_sure(limits, search))
    return [each for each in found if each is not None]


def relaxed(
    limit: Limit, limits: Limits, search: PlanSearch, known: Plan | None = None
) -> Relaxed | None:
    """The least value of one limit that leaves a plan, checked by planning again.

    A plan that is known to keep the other limits tells where to begin if a short search meets none.
    """
    value = (_least_rate if isinstance(limit, RateLimit) else _needed)(limit, limits, search)
    if value is None and known is not None:
        value = limit.of_plan(known) * MARGIN
    if value is None:
        return None
    found = _widened(limit, value, limits, search)
    if found is None:
        return None
    low, value, plan = found
    if isinstance(limit, RunLimit):
        low = max(low, value / NARROWER)
        value, plan = _narrowed_again(limit, low, value, plan, limits, search)
    progress = search.problem.progress
    value = rounded_up(limit, value, progress)
    return Relaxed(limit, as_typed(limit, value, progress), limits.with_value(limit, value), plan)


def _widened(
    limit: Limit, value: float, limits: Limits, search: PlanSearch
) -> tuple[float, float, Plan] | None:
    """A value of one limit that leaves none, one that leaves a plan, from one that may, and it."""
    low = limits.value(limit) or 0.0
    for _ in range(WIDENED):
        tried = limits.with_value(limit, value)
        plan = _likely_plan(tried, search) or _plan_within(limit, tried, search)
        plan = plan or plan_keeping(tried, search)
        if plan is not None:
            return low, value, plan
        low, value = value, value * WIDER
    return None


def _plan_within(limit: Limit, limits: Limits, search: PlanSearch) -> Plan | None:
    """A plan that keeps the limits; where it is the only one, of those that use least of it."""
    if _alone(limit, search):
        return _extreme_plan(limit, limits, search)
    return plan_keeping(limits, search)


def _narrowed_again(
    limit: Limit, low: float, value: float, plan: Plan, limits: Limits, search: PlanSearch
) -> tuple[float, Plan]:
    """What one plan needs is enough; others may need less, if not as little as `low`."""
    while value > CLOSE * low:
        middle = (low * value) ** 0.5
        tried = limits.with_value(limit, middle)
        tighter = _likely_plan(tried, search) or _plan_within(limit, tried, search)
        low, value = (middle, value) if tighter is None else (low, middle)
        plan = tighter or plan
    return value, plan


def _less_sure(limits: Limits, search: PlanSearch) -> Relaxed | None:
    """A plan that keeps all limits with a lower chance, as high as one can be."""
    sure, wider, best = limits.confidence, limits, None
    chances = [c / 100 for c in range(LEAST_SURE, 100, SURE_STEP) if c / 100 < sure]
    low, high = 0, len(chances)  # nothing is known of the chances from low on, nor below high
    while low < high:
        middle = (low + high) // 2 if best else low
        tried = replace(limits, confidence=chances[middle])
        plan = plan_keeping(tried, search)
        if plan is None:
            high = middle
            continue
        low, wider, best = middle + 1, tried, plan
    if best is None:
        return None
    return Relaxed(None, f"--confidence {wider.confidence:g}", wider, best)


def plan_keeping(limits: Limits, search: PlanSearch) -> Plan | None:
    """A plan that keeps the limits; the fastest are met first, and may all be over the budget."""
    too_fast = limits.budget_usd is not None and limits.goal == "time"
    aims = (replace(limits, objective="cost"), limits) if too_fast else (limits,)
    for aim in aims:
        found = _first_keeping(search.search(aim, budget=QUICK), aim, search, TRIES)
        if found is not None:
            return found
    return None


def _likely_plan(limits: Limits, search: PlanSearch) -> Plan | None:
    """A plan that keeps the limits, of those of the best estimates: quick, and may miss one."""
    return _first_keeping(_judged(limits, search), limits, search, FEW)


def _alone(limit: Limit, search: PlanSearch) -> bool:
    """Whether no other limit was asked for: plans that use least of one may be far over another."""
    return [each for each, _ in search.problem.limits.given(LIMITS)] == [limit]


def _extreme_plan(limit: Limit, limits: Limits, search: PlanSearch) -> Plan | None:
    """A plan that keeps a limit, of those that use least of it: right where no other binds.

    The cheapest plans are mostly late where the deadline is the question.
    """
    aim = replace(limits, objective=limit.aim)
    return _first_keeping(search.search(aim, budget=GLANCE), aim, search, FEW)


def _judged(limits: Limits, search: PlanSearch) -> SearchState:
    """The clusters that the closed-form estimates put first, simulated."""
    problem = search.problem
    space = replace(problem.space(problem.single_type_sites), limits=limits)
    state = SearchState(slack=0.0, max_plans=QUICK.plans)
    judge_first(space, [*chain(*clusters_by_estimate(space, problem.step_s)[:JUDGED])], state)
    return state


def _first_keeping(
    state: SearchState, limits: Limits, search: PlanSearch, tries: int
) -> Plan | None:
    ordered = islice(sorted(state.incumbents.values(), key=ranking_key), tries)
    evaluated = next(search.builder.under(limits).keeping(ordered), None)
    return None if evaluated is None else evaluated.plan


def _needed(limit: Limit, limits: Limits, search: PlanSearch) -> float | None:
    """What a limit would have to be for the plan found without it."""
    free = limits.with_value(limit, None)
    # The fastest may all be over the budget, as in `plan_keeping`.
    aims: tuple[Aim, ...] = (limit.aim,) if free.budget_usd is None else (limit.aim, "cost")
    # The fastest and cheapest as a rule may be spot plans of a wide span; others are surer.
    found = [
        best_of(search.search(replace(free, objective=aim), only, QUICK))
        for aim in dict.fromkeys(aims)
        for only in EITHER
    ]
    builder = search.builder.under(free)
    plans = [builder.build(best).plan for best in found if best is not None]
    return min((limit.of_plan(plan) * MARGIN for plan in plans), default=None)


def _least_rate(limit: Limit, limits: Limits, search: PlanSearch) -> float | None:
    """The least price per hour that leaves a plan, by bisection."""
    free = replace(limits.with_value(limit, None), objective=limit.aim)
    best = best_of(search.search(free, budget=QUICK))
    if best is None:
        return None
    low, high = limits.value(limit) or 0.0, search.builder.build(best).plan.max_usd_per_hour
    for _ in range(WIDENED):
        middle = (low * high) ** 0.5
        if best_of(search.search(free.with_value(limit, middle), budget=QUICK)) is None:
            low = middle
        else:
            high = middle
    return high


def best_of(state: SearchState) -> Candidate | None:
    """The best plan of a search, if it found one."""
    return min(state.incumbents.values(), key=ranking_key, default=None)
