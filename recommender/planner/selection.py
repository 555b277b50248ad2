"""Selects which of the found plans are ranked, for a table or for a frontier."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from recommender.optimize.search_state import Candidate, SearchState
from recommender.plan.frontier import unbeaten
from recommender.planner.ranking import HORIZON_S, Ranked, Ranking
from recommender.planner.search import PlanSearch, cheapest_in_horizon
from recommender.planner.single_type_search import BASELINE, FULL, QUICK


def ranked_plans(search: PlanSearch, top: int, others: Iterable[Candidate] = ()) -> Ranked:
    """The best plans of a table of `top`; none if no plan meets the limits.

    `others` are candidates besides those that the search has met. Without limits, the frontier.
    """
    if not search.best.incumbents:
        return Ranked((), 0)
    limits = search.problem.limits
    on_demand = search.single_type.search_or_relaxed(limits, "on_demand")
    ranking = Ranking(
        search.builder, top, on_demand.best_candidate() if on_demand.incumbents else None
    )
    if limits.goal == "frontier":
        return ranking.frontier([search.best.best_candidate(), *_curve(search), *others])
    state = _with_quoted(search, ranking)
    state = replace(state, incumbents=dict(state.incumbents))
    for each in others:
        state.keep(each)
    return ranking.ranked(state, _best_of_each(search))


def _with_quoted(search: PlanSearch, ranking: Ranking) -> SearchState:
    """The best plans, with the best at quoted prices if one at a derived price may not lead.

    The search for the best of all meets few of those that cost a little more.
    """
    state, below = search.best, ranking.quoted_below(search.best)
    if below <= 0.0:
        return state
    problem = search.problem
    pools = problem.single_type_sites.pools
    masks = tuple(np.array([not problem.is_derived(p) for p in site]) for site in pools)
    quoted = search.single_type.among(masks, FULL, below)
    printed = {key: each for key, each in quoted.incumbents.items() if each.printed}
    return replace(state, incumbents=state.incumbents | printed)


def _best_of_each(search: PlanSearch) -> list[Candidate]:
    """The best plan without spot, and the best of each provider."""
    limits, sites = search.problem.limits, search.problem.single_type_sites.sites
    single_type = search.single_type
    found = [single_type.search(limits, "on_demand", BASELINE)]
    for index in range(len(sites)):
        if single_type.own.incumbents and single_type.own.best_candidate().site == index:
            continue  # the best plan of all is the best of its provider
        masks = tuple(np.full(len(s.entries), i == index) for i, s in enumerate(sites))
        found.append(single_type.among(masks, BASELINE))
    return [state.best_candidate() for state in found if state.incumbents]


def _curve(search: PlanSearch) -> list[Candidate]:
    """What no other plan beats in both cost and time: of all promising clusters, and of the fastest
    and the cheapest.
    """
    limits, single_type = search.problem.limits, search.single_type
    aims = [replace(limits, objective=aim) for aim in ("time", "cost")]
    found = [single_type.without_fallbacks(aim, cap=BASELINE) for aim in aims]
    times = [state.best_candidate().time_s for state in found if state.incumbents]
    if times and max(times) > HORIZON_S:  # the cheapest of all may take a year
        found.append(single_type.without_fallbacks(cheapest_in_horizon(limits), cap=QUICK))
    met = {key: each for state in found for key, each in state.incumbents.items()}
    searched = unbeaten(met.values(), lambda each: (each.cost_usd, each.time_s))
    return [*searched, *single_type.frontier(limits)]
