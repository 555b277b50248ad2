"""The value of each limit: the best plan under a tighter and a looser limit."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from recommender.inputs.limits import as_typed, rounded_up
from recommender.market.sites import SitePools
from recommender.optimize.search_state import SearchState, ranking_key
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
from recommender.planner.problem import Problem
from recommender.planner.search import PlanSearch, search_other_offers
from recommender.planner.single_type_search import BASELINE, ESTIMATED
from recommender.text import duration, usd

TIGHTER, LOOSER = 0.6, 1.5
MIN_CHANGE = 0.01  # a change of the answer below this share is not worth a line
MIN_USD = 0.1  # nor is one of a few cents of a job for pennies
HOUR_S = 3600.0
TAIL_DEADLINE = 3.0  # times the median: a deadline for users who will not wait for the slowest runs
NO_PLAN = "no plan meets it"
TRIES = 12  # plans simulated again until one meets another limit


def sensitivity(search: PlanSearch, first: Evaluated) -> tuple[SensitivityStep, ...]:
    """The value of each limit and every quota, found by planning again.

    Both plans are compared by their printed figures, from the same paths.
    """
    steps: list[SensitivityStep] = []
    if len(first.candidate.entries) > 1:
        return (*_limits_met_by_mix(search, first), *_as_gang(search, first.plan))
    for words, limits, looser in _other_limits(search.problem):
        steps += (_looser if looser else _tighter)(search, words, limits, first)
    return (*steps, *_wider_quotas(search.problem, first.plan))


def tail_cut(search: PlanSearch, lead: Plan) -> tuple[SensitivityStep, ...]:
    """The cost of a deadline that removes the long tail of unlucky runs, if there is one."""
    limits, time = search.problem.limits, lead.estimate.time
    if limits.deadline_s is not None or not time.has_tail:
        return ()
    past = search.problem.progress
    due_s = rounded_up(DEADLINE, math.ceil(TAIL_DEADLINE * time.p50 / HOUR_S) * HOUR_S, past)
    found = search.replan(replace(limits, deadline_s=due_s, objective="cost"), cap=ESTIMATED)
    if found is None:
        return ()
    gained = _slow_runs(found.plan, lead)
    if not gained:
        return ()
    effect = f"{_dollars(found.plan, lead)}, {gained}"
    return (SensitivityStep(as_typed(DEADLINE, due_s, past), effect, found.plan),)


def _limits_met_by_mix(search: PlanSearch, first: Evaluated) -> Iterator[SensitivityStep]:
    """Tighter limits that a mix meets as it is: nothing is better there either.

    Other limits and quotas are planned again with clusters of one type only: next to a mix,
    what these gain or cost says little.
    """
    for words, limits, looser in _other_limits(search.problem):
        first_again = None if looser else _first_if_met(search, limits, first)
        if first_again is not None and alike(first_again, first.plan):
            yield SensitivityStep(words, SAME_PLAN, None)


def _as_gang(search: PlanSearch, first: Plan) -> Iterator[SensitivityStep]:
    """What a job costs that trains with all its machines only, where on-demand ones train alone."""
    if not search.problem.job.resizes or len({machines.market for machines in first.machines}) == 1:
        return
    gang = PlanSearch(search.problem.as_gang())
    best = _best_gang(search, gang, first)
    if best is not None:
        effect = SAME_PLAN if alike(best, first) else _effect(best, first)
        yield SensitivityStep("--gang", effect, None if alike(best, first) else best)
    elif gang.mixes.proven_infeasible:
        yield SensitivityStep("--gang", NO_PLAN, None)
    else:
        yield SensitivityStep("--gang", "no plan was found", None)


def _best_gang(search: PlanSearch, gang: PlanSearch, first: Plan) -> Plan | None:
    """The best plan of a gang that is met without a second search of all mixes, if any is."""
    if search.mixes.likely:  # around clusters of one type, which are gangs: those were searched
        return _lead(search.single_type.own, search.builder, first)
    sites = search.mixes.sites
    met = gang.mixes.with_safest(_of_one_market(search.best, sites), sites)
    best = _lead(met, PlanBuilder(gang.problem, sites), first)
    return best or _lead(gang.best, gang.builder, first)


def _of_one_market(state: SearchState, sites: SitePools) -> SearchState:
    """The plans of a search that are gangs in any case."""
    gangs = {
        shape: each
        for shape, each in state.incumbents.items()
        if len(set(sites.sites[each.site].entries.spot[list(each.entries)].tolist())) == 1
    }
    return replace(state, incumbents=gangs)


def _other_limits(problem: Problem) -> list[tuple[str, Limits, bool]]:
    """Each limit tightened and loosened: as typed, as limits, and whether it is looser."""
    limits, past = problem.limits, problem.progress
    return [
        (as_typed(limit, share * value, past), limits.with_value(limit, share * value), share > 1.0)
        for limit, value in limits.given(LIMITS)
        if limit.sensitivity
        for share in (TIGHTER, LOOSER)
    ]


def _looser(
    search: PlanSearch, words: str, limits: Limits, first: Evaluated
) -> list[SensitivityStep]:
    """What a looser limit gains: the plan at hand remains."""
    there = search.under(limits)
    state, builder = there.single_type.search(limits, cap=BASELINE), there.builder.under(limits)
    best = _lead(state, builder, first.plan, cutoff=first.candidate.goal_value)
    return [_gain(words, best, first.plan, limits)]


def _gain(words: str, best: Plan | None, first: Plan, limits: Limits) -> SensitivityStep:
    if best is None or alike(best, first) or not _better(best, first, limits):
        return SensitivityStep(words, SAME_PLAN, None)
    return SensitivityStep(words, _effect(best, first), best)


def _tighter(
    search: PlanSearch, words: str, limits: Limits, first: Evaluated
) -> list[SensitivityStep]:
    """What a tighter limit costs; nothing where the search cannot tell whether a plan meets it."""
    mine = _first_if_met(search, limits, first)
    if mine is not None and alike(mine, first.plan):
        return [SensitivityStep(words, SAME_PLAN, None)]
    there = search.under(limits)
    state = there.single_type.search(limits, cap=BASELINE)
    if not state.incumbents and not state.exhausted:
        # Plans may miss the limit on the few paths of a short search alone.
        state = there.single_type.search(limits)
    state = _with_own(there, state, limits)
    best = _lead(state, there.builder.under(limits), first.plan)
    if mine is not None and (best is None or not _better(best, mine, limits)):
        best = mine
    if best is None:
        # A plan that meets the limit on the few paths of a search may be found by a longer one.
        unknown = state.exhausted or state.incumbents
        return [] if unknown else [SensitivityStep(words, NO_PLAN, None)]
    if alike(best, first.plan):
        return [SensitivityStep(words, SAME_PLAN, None)]
    return (
        [SensitivityStep(words, _effect(best, first.plan), best)]
        if _matters(best, first.plan)
        else []
    )


def _first_if_met(search: PlanSearch, tighter: Limits, first: Evaluated) -> Plan | None:
    """The plan at hand under a tighter limit, if it meets that as well.

    It is then as good as any there, but for a fallback that has to start earlier.
    """
    usd_per_hour = first.plan.max_usd_per_hour
    if tighter.hourly_usd is not None and not HOURLY.allows(usd_per_hour, tighter.hourly_usd):
        return None
    over = any(limit.of_plan(first.plan) > most for limit, most in tighter.given(PATH_LIMITS))
    if over and first.plan.fallback is None and tighter.confidence >= 0.95:
        return None  # seen without simulating again
    plan = search.builder.under(tighter).build(first.candidate).plan
    return plan if meets(plan, tighter) else None


def _with_own(search: PlanSearch, state: SearchState, tighter: Limits) -> SearchState:
    """A search under a tighter budget with the plans of the problem's own that it may allow.

    The fastest plans are met first: all that a short search meets may be over the budget.
    """
    budget = tighter.budget_usd
    if budget is None:
        return state
    own = search.single_type.own.incumbents
    also = {k: c for k, c in own.items() if c.fallback < 0 and c.cost_usd < budget}
    return replace(state, incumbents=also | state.incumbents)


def _wider_quotas(problem: Problem, first: Plan) -> list[SensitivityStep]:
    """What half as much again of every quota is worth; own machines are as many as there are."""
    given = problem.choice.quotas
    if not problem.quotas_bind or all(q.provider == "own" for q in given):
        return []
    quotas = tuple(
        q if q.provider == "own" else replace(q, amount=q.amount * LOOSER) for q in given
    )
    state, builder = search_other_offers(problem, replace(problem.choice, quotas=quotas))
    best = _lead(state, builder, first)
    gain = _gain(f"every quota × {LOOSER:g}", best, first, problem.limits)
    return [replace(gain, offers=True)]


def _lead(
    state: SearchState, builder: PlanBuilder, first: Plan, cutoff: float = float("inf")
) -> Plan | None:
    """The best plan that meets the limits; at quoted prices, where the plan at hand has them.

    Only plans whose goal lies below `cutoff` are simulated again.
    """
    ordered = (
        c for c in sorted(state.incumbents.values(), key=ranking_key) if c.goal_value < cutoff
    )
    met = (each.plan for each in builder.meeting(islice(ordered, TRIES)))
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


def _effect(plan: Plan, first: Plan) -> str:
    return f"{_dollars(plan, first)}, {_clock(plan, first)}"


def _clock(plan: Plan, first: Plan) -> str:
    """The change of the median; of the slow runs where a plan that costs more gains only there."""
    median, before = plan.estimate.time.p50, first.estimate.time.p50
    tail = _slow_runs(plan, first)
    if median >= before * (1.0 - MIN_CHANGE) and tail and not _saves(plan, first):
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


def _saves(plan: Plan, first: Plan) -> bool:
    return plan.estimate.cost.mean < first.estimate.cost.mean * (1.0 - MIN_CHANGE)


def _dollars(plan: Plan, first: Plan) -> str:
    money = plan.estimate.cost.mean - first.estimate.cost.mean
    if (
        abs(money) < MIN_CHANGE * first.estimate.cost.mean
    ):  # of near-ties, fewer machines lead a table
        return "the same cost"
    return f"saves {usd(-money)} USD" if money < 0 else f"costs {usd(money)} USD more"
