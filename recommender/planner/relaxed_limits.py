"""Relaxes limits one at a time, or one after the other, by as little as makes a plan possible.

The least value of a limit is found by bisection between what was asked and what a plan needs that
meets all other limits: each value tried is one more selection of the pool, whose clusters are rated
already.
"""

from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.pool import CHOSEN
from recommender.plan.limits import DEADLINE, LIMITS, Limit, Limits, PathLimit
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_pool import PlanPool

CLOSE = 1.005  # values this close to each other count as equal
MARGIN = 1.01  # a suggested limit is this much wider than what its plan needs on the day
TRIES = 16  # values of one limit
TRIED = 24  # clusters under each
BUILT = 6  # plans built under one value: of those the one that needs least
MIN_SURE, SURE_STEP = 50, 5  # per cent: the chances tried where a surer one leaves no plan
# A deadline that is so many times as long, and beyond a week, is no advice next to another limit:
# then the other limit is what to change.
FAR_DEADLINE, WEEK_S = 4.0, 7 * 86400.0
WAIT = 1.24  # a deadline so much longer is named where it costs much less,
WAIT_TOGETHER = 2.0  # and where other limits change as well, as they fall with it


@dataclass(frozen=True, slots=True)
class Relaxed:
    """One limit, relaxed by as little as makes a plan possible."""

    limit: Limit | None  # None: the chance that all are met
    typed: str  # "--deadline 9h40m"
    limits: Limits
    plan: Plan

    def is_far(self, asked: Limits) -> bool:
        """Whether it is a deadline too far from the requested one to be advice; never if alone."""
        alone = len(list(asked.given(LIMITS))) == 1
        due_s = self.limits.deadline_s or 0.0
        return self.limit == DEADLINE and not alone and due_s > horizon_s(asked)


def horizon_s(asked: Limits) -> float:
    """The longest deadline that is suggested next to other limits."""
    return max(FAR_DEADLINE * (asked.deadline_s or 0.0), WEEK_S)


def each_relaxed(limits: Limits, pool: PlanPool, asked: Limits) -> list[Relaxed]:
    """Each limit asked relaxed alone, if a plan is possible then; the confidence comes last."""
    found = [relaxed(limit, limits, pool) for limit, _ in asked.given(LIMITS)]
    surest = surest_plan(limits, pool)
    if surest is not None:
        wider, best = surest
        found.append(Relaxed(None, f"--confidence {wider.confidence:g}", wider, best.plan))
    return [each for each in found if each is not None]


def relaxed(limit: Limit, limits: Limits, pool: PlanPool) -> Relaxed | None:
    """The smallest value of one limit that makes a plan possible, checked in printed figures."""

    def within(value: float) -> Evaluated | None:
        aimed = replace(limits.with_value(limit, value), objective=limit.aim)
        return _needing_least(limit, aimed, pool, TRIED)

    free = replace(limits.with_value(limit, None), objective=limit.aim)
    first = _needing_least(limit, free, pool, CHOSEN)
    asked = limits.value(limit)
    if first is None or asked is None:
        return None
    low, plan = asked, first
    value = max(_need(limit, plan), asked * CLOSE)  # what was asked leaves no plan
    met = within(value)
    for _ in range(TRIES):  # its fallback starts earlier under the limit
        if met is not None:
            break
        low, value = value, value * 1.1
        met = within(value)
    if met is None:
        return None
    plan, step = met, CLOSE
    for _ in range(TRIES):
        if value <= low * CLOSE * (1.0 + 1e-9):
            break
        # What the plan needs of this limit alone; with the others it may need more. Else a little
        # less than the least so far, and more and more: most often it is the least of all.
        needed, middle = _need(limit, plan), max(value / step, (low * value) ** 0.5)
        if low * CLOSE < needed < value / CLOSE:
            middle = needed
        else:
            step *= step
        tighter = within(middle)
        if tighter is None:
            low = middle
        else:
            plan, value = tighter, middle
    progress = pool.problem.progress
    rounded = rounded_up(limit, value, progress)
    looser = limits.with_value(limit, rounded)
    again = pool.first_meeting([plan.candidate], looser) or plan
    return Relaxed(limit, as_typed(limit, rounded, progress), looser, again.plan)


def _needing_least(limit: Limit, limits: Limits, pool: PlanPool, first: int) -> Evaluated | None:
    found = pool.select(limits, first=first).plans
    plans = list(pool.builder.under(limits).meeting(found[:BUILT]))
    return min(plans, key=lambda each: limit.of_plan(each.plan), default=None)


def _need(limit: Limit, plan: Evaluated) -> float:
    margin = MARGIN if isinstance(limit, PathLimit) else 1.0
    return limit.of_plan(plan.plan) * margin


def best_within(looser: Relaxed, pool: PlanPool) -> Plan:
    """About the best plan under limits of which one was loosened."""
    found = pool.replan(looser.limits, looser.plan)
    return looser.plan if found is None else found.plan


def plan_meeting(limits: Limits, pool: PlanPool) -> Evaluated | None:
    """A plan that meets the limits."""
    return pool.first_meeting(pool.select(limits).plans, limits)


def surest_plan(limits: Limits, pool: PlanPool) -> tuple[Limits, Evaluated] | None:
    """A plan that meets all limits with a lower chance, as high as one can be, and that chance."""
    sure, found = limits.confidence, None
    chances = [c / 100 for c in range(MIN_SURE, 100, SURE_STEP) if c / 100 < sure]
    low, high = 0, len(chances)  # nothing is known of the chances from low on, nor below high
    while low < high:
        middle = (low + high) // 2 if found else low
        tried = replace(limits, confidence=chances[middle])
        plan = plan_meeting(tried, pool)
        if plan is None:
            high = middle
        else:
            low, found = middle + 1, (tried, plan)
    return found


def in_turn(given: list[tuple[Limit, float]], pool: PlanPool) -> tuple[list[Relaxed], bool]:
    """Each limit as near to the requested one as those before it allow, and whether all can be."""
    now = pool.problem.limits
    for limit, _ in given:
        now = now.with_value(limit, None)
    return _next_in_turn(given, now, given[0][0], [], pool)


def _next_in_turn(
    given: list[tuple[Limit, float]],
    now: Limits,
    lead: Limit,
    found: list[Relaxed],
    pool: PlanPool,
) -> tuple[list[Relaxed], bool]:
    """Limits loosened after those `found`, under which `now` holds; a lead may go far."""
    for limit, value in given:
        now = now.with_value(limit, value)
        if plan_meeting(now, pool) is not None:
            continue
        looser = relaxed(limit, now, pool)
        if looser is None:
            return found, False
        now, found = looser.limits, [*found, looser]
        if looser.is_far(pool.problem.limits) and limit != lead:
            return found, False
    return found, True


def in_turn_after(
    first: Relaxed, given: list[tuple[Limit, float]], pool: PlanPool
) -> tuple[list[Relaxed], bool]:
    """Every limit loosened from a longer deadline on, which may ask for less of the others."""
    longer = with_longer_deadline(first, pool, WAIT_TOGETHER)
    others = [each for each in given if each[0] != DEADLINE]
    return _next_in_turn(others, longer.limits, DEADLINE, [longer], pool)


def joined(found: list[Relaxed]) -> Relaxed:
    """Several limits loosened one after the other, as one change."""
    return replace(found[-1], typed=" ".join(each.typed for each in found))


def with_longer_deadline(found: Relaxed, pool: PlanPool, wait: float = WAIT) -> Relaxed:
    """A deadline that is longer than the one found, for the same plan."""
    progress = pool.problem.progress
    due_s = rounded_up(DEADLINE, (found.limits.deadline_s or 0.0) * wait, progress)
    limits = replace(found.limits, deadline_s=due_s)
    return Relaxed(DEADLINE, as_typed(DEADLINE, due_s, progress), limits, found.plan)
