"""What stands under the table: plain plans, the floor, the age of the prices."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from recommender.optimize.search import single_lower_bounds
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan, PriceDate
from recommender.planner.plan_builder import Presenter, is_steady, keeps
from recommender.planner.problem import Question
from recommender.planner.sensitivity import Search

# Which plans of a table are of a kind; the names are those of the search.
LIKE: dict[str, Callable[[Plan], bool]] = {
    "any": lambda plan: True,
    "on_demand": is_steady,
    "spot": lambda plan: all(m.market == "spot" for m in plan.machines),
    "one GPU": lambda plan: plan.gpus == 1,
    "big": lambda plan: [m.count for m in plan.machines] == [1] and plan.gpus >= 8,
}


def trivial(
    limits: Limits, near: Search, presenter: Presenter, shown: tuple[Plan, ...]
) -> tuple[Plan, ...]:
    """One GPU, one big machine, all on demand, all spot, whether in time or not.

    The best of each kind by the printed figures, so none is beaten by its like in the table.
    """
    one = replace(limits, max_machines=1)
    asked = [
        ("one GPU", one, "one GPU"),
        ("one big machine", one, "big"),
        ("all on-demand", limits, "on_demand"),
        ("all spot", limits, "spot"),
    ]
    if limits.goal == "time":
        asked.append(("the cheapest", replace(limits, objective="cost"), "any"))
    plans = []
    for label, under, which in asked:
        found = near(under, which)
        if found.incumbents:
            best = _best_like(which, presenter.plan(found.best_candidate()), under, shown)
            plans.append(replace(best, labels=(label,), saving=None, also_regions=()))
    return tuple(plans)


def _best_like(which: str, rival: Plan, under: Limits, shown: tuple[Plan, ...]) -> Plan:
    """The best of a plan and those of the table that are of its kind."""
    like = [plan for plan in shown if LIKE[which](plan) and keeps(plan, under)]
    like += [rival] if keeps(rival, under) or not like else []
    return min(like, key=lambda plan: _goal(plan, under))


def _goal(plan: Plan, limits: Limits) -> float:
    estimate = plan.estimate
    return estimate.time.typical if limits.goal == "time" else estimate.cost.mean


def floors_of(question: Question) -> tuple[float, float]:
    """Least cost and time of any plan: best job FLOPP, nothing lost, nothing waited for."""
    most = question.limits.max_machines
    cost = _least(Limits(objective="cost", max_machines=most), question)
    return cost, _least(Limits(objective="time", max_machines=most), question)


def _least(free: Limits, question: Question) -> float:
    space = replace(question.space(question.lists), limits=free)
    floors = [
        single_lower_bounds(space, s, question.step_s).min(initial=np.inf) for s in space.sites
    ]
    return float(min(floors, default=np.inf))


def more_regions(plans: tuple[Plan, ...]) -> int:
    """Regions that stand in the failover lists of plans and not in the table."""
    named = {plan.sites[0].region for plan in plans if plan.sites}
    return len({site.region for plan in plans for site in plan.sites} - named)


def price_dates(question: Question) -> tuple[PriceDate, ...]:
    """The newest price of each provider and market of which something may be rented."""
    offers = question.catalog.offers
    rows = question.allowed.rows or range(len(offers))
    used = {(offers.provider[row], offers.market[row]) for row in rows}
    return tuple(
        PriceDate(d.provider, d.market, d.newest, d.offers)
        for d in question.catalog.price_dates()
        if (d.provider, d.market) in used
    )
