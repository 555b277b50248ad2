"""The value of each limit: the best plan under a tighter and a looser limit."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from recommender.inputs.limits import as_typed, rounded_up
from recommender.optimize.candidate import Candidate
from recommender.optimize.pool import CHOSEN
from recommender.plan.answer import SAME_PLAN, SensitivityStep
from recommender.plan.limits import DEADLINE, HOURLY, LIMITS, PATH_LIMITS, Limits
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import (
    Evaluated,
    PlanBuilder,
    goal_value_of,
    has_derived_price,
    meets,
)
from recommender.planner.plan_pool import PlanPool, best_among_other_offers
from recommender.planner.problem import Problem
from recommender.text import duration, usd

TIGHTER, LOOSER = 0.6, 1.5
MIN_CHANGE = 0.01  # a change of the answer below this share is not worth a line
MIN_USD = 0.1  # nor is one of a few cents of a job for pennies
TAIL_DEADLINE = 3.0  # times the median: a deadline for users who will not wait for the slowest runs
NO_PLAN = "no plan meets it"
TRIES = 12  # plans simulated again until one meets another limit


def sensitivity(pool: PlanPool, first: Evaluated) -> tuple[SensitivityStep, ...]:
    """The value of each limit and every quota, found by planning again.

    Both plans are compared by their printed figures, from the same paths.
    """
    steps = [
        (_looser if looser else _tighter)(pool, words, limits, first)
        for words, limits, looser in _other_limits(pool.problem)
    ]
    steps += [_wider_quotas(pool.problem, first.plan), _as_gang(pool, first.plan)]
    return tuple(step for step in steps if step is not None)


def tail_cut(pool: PlanPool, lead: Plan) -> tuple[SensitivityStep, ...]:
    """The cost of a deadline that removes the long tail of unlucky runs, if there is one."""
    limits, time = pool.problem.limits, lead.estimate.time
    if limits.deadline_s is not None or not time.has_tail:
        return ()
    past = pool.problem.progress
    due_s = rounded_up(DEADLINE, math.ceil(TAIL_DEADLINE * time.p50 / 3600.0) * 3600.0, past)
    found = pool.replan(replace(limits, deadline_s=due_s, objective="cost"))
    if found is None:
        return ()
    gained = _slow_runs(found.plan, lead)
    if not gained:
        return ()
    effect = f"{_dollars(found.plan, lead)}, {gained}"
    return (SensitivityStep(as_typed(DEADLINE, due_s, past), effect, found.plan),)


def _as_gang(pool: PlanPool, first: Plan) -> SensitivityStep | None:
    """What a job costs that trains with all its machines only, where on-demand ones train alone."""
    if not pool.problem.job.resizes or len({machines.market for machines in first.machines}) == 1:
        return None
    job = replace(pool.problem.job, elastic=False)
    gang = PlanPool(replace(pool.problem, job=job))
    best = _lead(gang.best.plans, gang.builder, first)
    none = SensitivityStep("--gang", "no plan was found", None)
    return none if best is None else compared("--gang", best, first)


def _other_limits(problem: Problem) -> list[tuple[str, Limits, bool]]:
    """Each limit tightened and loosened: as typed, as limits, and whether it is looser."""
    limits, past = problem.limits, problem.progress
    return [
        (as_typed(limit, share * value, past), limits.with_value(limit, share * value), share > 1.0)
        for limit, value in limits.given(LIMITS)
        if limit.sensitivity
        for share in (TIGHTER, LOOSER)
    ]


def _looser(pool: PlanPool, words: str, limits: Limits, first: Evaluated) -> SensitivityStep:
    """What a looser limit gains: the plan at hand remains."""
    found, builder = pool.select(limits), pool.builder.under(limits)
    best = _lead(found.plans, builder, first.plan, cutoff=first.candidate.goal_value)
    return _gain(words, best, first.plan, limits)


def _gain(words: str, best: Plan | None, first: Plan, limits: Limits) -> SensitivityStep:
    gains = best is not None and _better(best, first, limits)
    return compared(words, best if gains else None, first)


def compared(words: str, best: Plan | None, first: Plan) -> SensitivityStep:
    """What a change makes of the plan at hand; None: nothing."""
    if best is None or alike(best, first):
        return SensitivityStep(words, SAME_PLAN, None)
    return SensitivityStep(words, f"{_dollars(best, first)}, {_clock(best, first)}", best)


def _tighter(
    pool: PlanPool, words: str, limits: Limits, first: Evaluated
) -> SensitivityStep | None:
    """What a tighter limit costs; nothing where no plan was found that meets it for sure."""
    mine = _first_if_met(pool, limits, first)
    if mine is not None and alike(mine, first.plan):
        return compared(words, None, first.plan)
    found = pool.select(limits)
    if not found.plans:
        found = pool.select(limits, first=CHOSEN)
    best = _lead(found.plans, pool.builder.under(limits), first.plan)
    if mine is not None and (best is None or not _better(best, mine, limits)):
        best = mine
    if best is None:
        return None if found.plans else SensitivityStep(words, NO_PLAN, None)
    told = alike(best, first.plan) or _matters(best, first.plan)
    return compared(words, best, first.plan) if told else None


def _first_if_met(pool: PlanPool, tighter: Limits, first: Evaluated) -> Plan | None:
    """The plan at hand under a tighter limit, if it meets that as well.

    It is then as good as any there, but for a fallback that has to start earlier.
    """
    usd_per_hour = first.plan.max_usd_per_hour
    if tighter.hourly_usd is not None and not HOURLY.allows(usd_per_hour, tighter.hourly_usd):
        return None
    over = any(limit.of_plan(first.plan) > most for limit, most in tighter.given(PATH_LIMITS))
    if over and first.plan.fallback is None and tighter.confidence >= 0.95:
        return None  # seen without simulating again
    plan = pool.builder.under(tighter).build(first.candidate).plan
    return plan if meets(plan, tighter) else None


def _wider_quotas(problem: Problem, first: Plan) -> SensitivityStep | None:
    """What half as much again of every quota is worth; own machines are as many as there are."""
    given = problem.choice.quotas
    if not problem.quotas_bind or all(q.provider == "own" for q in given):
        return None
    quotas = tuple(
        q if q.provider == "own" else replace(q, amount=q.amount * LOOSER) for q in given
    )
    found, builder = best_among_other_offers(problem, replace(problem.choice, quotas=quotas))
    best = _lead(found.plans, builder, first)
    gain = _gain(f"every quota × {LOOSER:g}", best, first, problem.limits)
    return replace(gain, offers=True)


def _lead(
    plans: Iterable[Candidate], builder: PlanBuilder, first: Plan, cutoff: float = float("inf")
) -> Plan | None:
    """The best plan that meets the limits; at quoted prices, where the plan at hand has them.

    Only plans whose goal lies below `cutoff` are built.
    """
    below = (each for each in plans if each.goal_value < cutoff)
    met = (each.plan for each in builder.meeting(islice(below, TRIES)))
    return next((p for p in met if has_derived_price(first) or not has_derived_price(p)), None)


def alike(plan: Plan, first: Plan) -> bool:
    """Whether the cost and time of two plans are practically equal."""
    money = plan.estimate.cost.mean / first.estimate.cost.mean - 1.0
    time = plan.estimate.time.p50 / first.estimate.time.p50 - 1.0
    return abs(money) < MIN_CHANGE and abs(time) < MIN_CHANGE


def _matters(plan: Plan, first: Plan) -> bool:
    """Whether another plan under a tighter limit costs more or less, or takes less time.

    One that costs the same and takes longer is no reason to do anything.
    """
    sooner = plan.estimate.time.p50 < first.estimate.time.p50 * (1.0 - MIN_CHANGE)
    return _differs_in_cost(plan, first) or sooner or bool(_slow_runs(plan, first))


def _differs_in_cost(plan: Plan, first: Plan) -> bool:
    money, before = plan.estimate.cost.mean, first.estimate.cost.mean
    return abs(money - before) >= max(MIN_CHANGE * before, MIN_USD)


def _better(plan: Plan, first: Plan, limits: Limits) -> bool:
    """Whether the goal gains enough to be worth a line."""
    if limits.goal == "cost" and not _differs_in_cost(plan, first):
        return False
    return goal_value_of(plan, limits) < goal_value_of(first, limits) * (1.0 - MIN_CHANGE)


def _clock(plan: Plan, first: Plan) -> str:
    """The change of the median; of the slow runs where a plan that costs more gains only there."""
    median, before = plan.estimate.time.p50, first.estimate.time.p50
    tail, money = _slow_runs(plan, first), plan.estimate.cost.mean
    saves = money < first.estimate.cost.mean * (1.0 - MIN_CHANGE)
    if median >= before * (1.0 - MIN_CHANGE) and tail and not saves:
        return tail
    if abs(median - before) < MIN_CHANGE * before:
        return "the same time"
    return f"{duration(abs(median - before))} {'sooner' if median < before else 'later'}"


def _slow_runs(plan: Plan, first: Plan) -> str:
    """What 1 run in 20 takes, where that is clearly less."""
    slow, before = plan.estimate.time.p95, first.estimate.time.p95
    if slow >= before * (1.0 - MIN_CHANGE):
        return ""
    return f"1 run in 20 over {duration(slow)} instead of {duration(before)}"


def _dollars(plan: Plan, first: Plan) -> str:
    money = plan.estimate.cost.mean - first.estimate.cost.mean
    if abs(money) < MIN_CHANGE * first.estimate.cost.mean:
        return "the same cost"
    return f"saves {usd(-money)} USD" if money < 0 else f"costs {usd(money)} USD more"
