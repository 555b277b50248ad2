"""Selects which of the found plans are ranked, for a table or for a frontier."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from recommender.optimize.candidate import Candidate
from recommender.plan.frontier import unbeaten
from recommender.plan.limits import Limits
from recommender.planner.plan_pool import PlanPool
from recommender.planner.ranking import HORIZON_S, Ranked, Ranking


def ranked_plans(pool: PlanPool, top: int, others: Iterable[Candidate] = ()) -> Ranked:
    """The best plans of a table of `top`; none if no plan meets the limits.

    `others` are candidates besides the best by the goal. Without limits, the frontier.
    """
    if not pool.best.plans:
        return Ranked((), 0)
    limits = pool.problem.limits
    on_demand = pool.select_or_relaxed(limits, "on_demand")
    ranking = Ranking(pool.builder, top, on_demand.best if on_demand.plans else None)
    if limits.goal == "frontier":
        return ranking.frontier([pool.best.best, *_curve(pool), *others])
    plans = [*pool.best.plans, *others]
    if ranking.quoted_below(pool.best.plans) > 0.0:
        plans += [each for each in pool.at_quoted_prices().plans if each.printed]
    return ranking.ranked(list(dict.fromkeys(plans)), _best_of_each(pool, top))


def _best_of_each(pool: PlanPool, top: int) -> list[Candidate]:
    """The best plan without spot, and the best of each provider that a table of `top` may show."""
    found = [pool.select(pool.problem.limits, "uninterrupted")]
    of_best = pool.sites.sites[pool.best.best.site].provider
    providers = [each for each in pool.providers if each != of_best]
    found += [pool.of_provider(each) for each in providers[:top]]
    return [selection.best for selection in found if selection.plans]


def cheapest_in_horizon(limits: Limits) -> Limits:
    """Limits under which the cheapest plan ends within the horizon in 19 of 20 runs."""
    most_s = min(HORIZON_S, limits.deadline_s or HORIZON_S)
    return replace(limits, deadline_s=most_s, objective="cost", confidence=0.95)


def _curve(pool: PlanPool) -> list[Candidate]:
    """What no other plan beats in both cost and time: of the promising clusters, of the fastest and
    the cheapest, all without a fallback.
    """
    aims: tuple[Literal["time", "cost"], ...] = ("time", "cost")
    limits = pool.problem.limits
    found = [pool.select(replace(limits, objective=aim)) for aim in aims]
    if any(each.plans and each.best.time_s > HORIZON_S for each in found):
        found.append(pool.select(cheapest_in_horizon(limits)))  # the cheapest may take a year
    met = [plan for each in found for plan in each.plans if plan.fallback < 0]
    searched = unbeaten(met, lambda each: (each.cost_usd, each.time_s))
    return [*searched, *pool.pool.frontier(limits)]


def best_unconstrained(pool: PlanPool, aim: Literal["time", "cost"]) -> "Candidate | None":
    """The best plan of the same problem with an objective but no limits.

    The cheapest within the horizon, because prices and spot laws say little about later times.
    """
    limits = replace(pool.problem.limits.of_size, objective=aim)
    found = pool.select(limits).plans
    if aim == "cost" and found and found[0].time_s > HORIZON_S:
        found = pool.select(cheapest_in_horizon(limits)).plans or found
    return found[0] if found else None
