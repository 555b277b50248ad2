"""What an answer leads with: the sensible plan, the cheapest, and the fastest or the safest."""

from collections.abc import Sequence
from dataclasses import replace

from recommender.optimize.search_state import Candidate
from recommender.plan.limits import Limits
from recommender.plan.plan import Pick, Role, Trio
from recommender.planner.effort import effort_of, reasons_of, whole_usd
from recommender.planner.plan_builder import Evaluated, is_on_demand_only, keeps
from recommender.planner.ranking import HORIZON_S
from recommender.planner.search import BASELINE, Budget, PlanSearch

RUNGS = (2.5, 8.0)  # times the fastest: the cheapest plan within each is looked at
GLANCE = Budget(100)  # plans followed for each


def trio(search: PlanSearch, shown: Sequence[Evaluated]) -> Trio | None:
    """Three plans that keep the limits; None where none does."""
    limits = search.problem.limits
    # All that was simulated for the table, with the labels of those that stand in it.
    known = dict(search.builder.built) | {each.candidate: each for each in shown}
    for candidate in (*_simple(search), *_slower(search, shown)):
        known.setdefault(candidate, search.builder.build(candidate))
    plans = _sooner([each for each in known.values() if keeps(each.plan, limits)])
    if not plans:
        return None
    ranks = {each.candidate: rank for rank, each in enumerate(shown, start=1)}
    pressed = limits.goal == "time"
    third = _safest(plans) if limits.deadline_s is not None else _fastest(plans)

    def pick(role: Role, chosen: Evaluated) -> Pick:
        rank, plan = ranks.get(chosen.candidate), chosen.plan
        return Pick(role, rank, plan, reasons_of(plan), effort_of(plan).total_h)

    return Trio(
        sensible=pick("sensible", min(plans, key=lambda each: whole_usd(each.plan, pressed))),
        cheapest=pick("cheapest", min(plans, key=lambda each: each.plan.estimate.cost.mean)),
        third=pick("fastest" if limits.deadline_s is None else "safest", third),
    )


def _sooner(plans: list[Evaluated]) -> list[Evaluated]:
    """None beyond the horizon where there are others."""
    return [each for each in plans if each.plan.estimate.time.typical <= HORIZON_S] or plans


def _fastest(plans: Sequence[Evaluated]) -> Evaluated:
    def order(each: Evaluated) -> tuple[float, float]:
        return each.plan.estimate.time.typical, each.plan.estimate.cost.mean

    return min(plans, key=order)


def _safest(plans: Sequence[Evaluated]) -> Evaluated:
    """Of those as likely to be in time as any, to a point: the cheapest, on demand if there is."""
    best = max(each.plan.estimate.chance for each in plans)
    sure = [each for each in plans if each.plan.estimate.chance >= best - 0.01]

    def order(each: Evaluated) -> tuple[bool, float]:
        return not is_on_demand_only(each.plan), each.plan.estimate.cost.mean

    return min(sure, key=order)


def _simple(search: PlanSearch) -> list[Candidate]:
    """One machine on demand: the cheapest of one GPU, and of any number."""
    limits = replace(search.problem.limits, max_machines=1, objective="cost")
    found = [search.search(limits, only, BASELINE) for only in ("one GPU on demand", "on_demand")]
    return [state.best_candidate() for state in found if state.incumbents]


def _slower(search: PlanSearch, shown: Sequence[Evaluated]) -> list[Candidate]:
    """Where speed is asked for: the cheapest plans that take so many times the fastest."""
    limits = search.problem.limits
    if limits.goal != "time" or not shown:
        return []
    found = []
    for times in RUNGS:
        due_s = shown[0].time_s * times
        if limits.deadline_s is None or due_s < limits.deadline_s:
            found.append(_within(search, limits, due_s))
    return [candidate for candidate in found if candidate is not None]


def _within(search: PlanSearch, limits: Limits, due_s: float) -> Candidate | None:
    under = replace(limits, deadline_s=due_s, objective="cost")
    state = search.without_fallbacks(under, budget=GLANCE)
    return state.best_candidate() if state.incumbents else None
