"""The notes below the table: baseline plans, lower bounds, the proof, the age of the prices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from recommender.optimize.pool import EPSILON
from recommender.plan.answer import PriceDate, Proof
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import (
    Evaluated,
    are_duplicates,
    goal_value_of,
    is_on_demand_only,
    is_uninterrupted,
    meets,
)
from recommender.planner.plan_pool import Only, PlanPool
from recommender.planner.problem import Problem
from recommender.planner.ranking import HORIZON_S

# Which plans of a table are of a kind that a search can be restricted to.
IS_KIND: dict[Only, Callable[[Plan], bool]] = {
    "any": lambda plan: True,
    "uninterrupted": is_uninterrupted,
    "on_demand": is_on_demand_only,
    "spot": lambda plan: all(m.market == "spot" for m in plan.machines),
    "one GPU": lambda plan: plan.gpus == 1,
    "one GPU on demand": lambda plan: plan.gpus == 1 and is_on_demand_only(plan),
    "big": lambda plan: [m.count for m in plan.machines] == [1] and plan.gpus >= 8,
}


def baselines(pool: PlanPool, shown: Sequence[Evaluated]) -> tuple[Evaluated, ...]:
    """The baselines: one GPU, one big machine, all on-demand, all spot, whether in time or not.

    Each is the best of its kind by the printed figures, so no plan of that kind in the table is
    better. Without limits none takes months.
    """
    plans = []
    for label, limits, only, rival in best_of_each_kind(pool):
        best = _best_of_kind(only, rival, limits, shown)
        if limits.goal == "frontier" and best.time_s > HORIZON_S:
            continue
        plan = replace(best.plan, labels=(label,), saving=None)
        plans.append(replace(best, plan=plan))
    return tuple(plans)


def best_of_each_kind(pool: PlanPool) -> Iterator[tuple[str, Limits, Only, Evaluated]]:
    """The best plan of each kind, with its label and its limits."""
    for label, limits, only in _kinds(pool.problem.limits):
        found = pool.select_or_relaxed(limits, only)
        if found.plans:
            yield label, limits, only, pool.builder.build(found.best)


def _kinds(limits: Limits) -> Iterator[tuple[str, Limits, Only]]:
    """Each baseline: its label, its limits and the entries that it may use."""
    one = replace(limits, max_machines=1)
    yield "one GPU", one, "one GPU"
    yield "one big machine", one, "big"
    yield "all on-demand", limits, "on_demand"
    yield "all spot", limits, "spot"
    if limits.goal == "time":
        yield "the cheapest, however slow", replace(limits, objective="cost"), "any"


def _best_of_kind(
    only: Only, rival: Evaluated, limits: Limits, shown: Sequence[Evaluated]
) -> Evaluated:
    """The best of a plan and those of its kind in the table, which win against their twins."""
    found = [each for each in shown if IS_KIND[only](each.plan) and meets(each.plan, limits)]
    known = any(are_duplicates(rival.plan, each.plan) for each in found)
    in_time = limits.goal != "frontier" or rival.time_s <= HORIZON_S
    better = meets(rival.plan, limits) and in_time and not known
    found += [rival] if not found or better else []
    return min(found, key=lambda each: goal_value_of(each.plan, limits))


def lower_bounds_of(pool: PlanPool) -> tuple[float, float]:
    """Lower bounds of any plan's cost and time: best job FLOPP, without losses and waits."""
    rough = pool.pool.rough
    return float(rough.min_usd.min(initial=np.inf)), float(rough.min_s.min(initial=np.inf))


def proof_of(pool: PlanPool) -> Proof:
    """How much was rated and simulated, and how many clusters might still be better.

    Clusters of one machine type whose work alone, nothing lost, would cost less than the best plan.
    """
    best, limits, rated = pool.best, pool.problem.limits, pool.pool
    bounds = rated.bounds(limits)
    under = rated.rough.allowed(limits) & (bounds < best.goal * (1.0 - EPSILON))
    proven = pool.prove and best.open_bound >= best.goal * (1.0 - EPSILON)
    least = float(bounds[under].min(initial=np.inf))
    least = max(least, best.open_bound) if pool.prove else least
    open_ = 0 if proven else int(under.sum())
    return Proof(
        status="optimal" if proven or not open_ else "open",
        gap=0.0 if proven or not open_ else _gap(least, best.goal),
        rated=len(rated.rough),
        plans_simulated=best.simulated,
        open_clusters=open_,
        mixes_rated=len(pool.mixes.known),
    )


def _gap(bound: float, goal: float) -> float:
    """By which share a plan that was left out may be better at most; 1 where none was found."""
    return max(1.0 - bound / goal, 0.0) if np.isfinite(goal) else 1.0


def more_regions(plans: tuple[Plan, ...]) -> int:
    """Regions in the failover lists of plans that are not in the table."""
    first = {plan.sites[0].region for plan in plans if plan.sites}
    return len({site.region for plan in plans for site in plan.sites} - first)


def price_dates(problem: Problem) -> tuple[PriceDate, ...]:
    """The newest price of each provider and market from which something may be rented."""
    offers = problem.catalog.offers
    rows = problem.offers.allowed.rows or range(len(offers))
    used = {(offers.provider[row], offers.market[row]) for row in rows}
    return tuple(
        PriceDate(d.provider, d.market, d.newest, d.offers)
        for d in problem.catalog.price_dates()
        if (d.provider, d.market) in used
    )
