"""Finds out whether a cluster of several types meets limits that none of one type meets.

A search by cost evaluates the cheapest mixes first, and these meet no limit. So the order is: a
bound that rules out every mix of a provider at once; the mixes that are most likely to meet the
limits, including those of on-demand machines alone (`optimize/safest_mixes.py`); then all mixes,
the fastest first.
"""

from dataclasses import replace

import numpy as np

from recommender.optimize.bounds.site import lines_of, site_bounds_of
from recommender.optimize.entry_sets import first
from recommender.optimize.merged_regions import of_all_regions
from recommender.optimize.safest_mixes import safest_mixes
from recommender.optimize.search import search_mixes, simulate_ranked
from recommender.optimize.search_state import SearchState
from recommender.optimize.space import Site, Space
from recommender.plan.limits import PATH_LIMITS, Aim

SAFEST_MIXES = 24  # clusters simulated, those of the best estimates


def able_providers(space: Space) -> frozenset[str]:
    """The providers whose mixes are not ruled out by a bound on time and money.

    `space` holds a site per provider (`SiteBuilder.provider_sites`).
    """
    by_time = replace(space, limits=replace(space.limits, objective="time"))
    lines = lines_of(by_time)

    def able(site: Site, quick: bool) -> bool:
        part = site_bounds_of(by_time, of_all_regions(site), lines, site.entries, quick)
        return part is not None and bool(first(part, np.inf)[1])

    # A quick bound rules most out; the other takes a second where first hours of spot may be free.
    return frozenset(
        s.provider for s in space.sites if able(s, quick=True) and able(s, quick=False)
    )


def find_any(space: Space, start: int, state: SearchState, plans: int, sets: int) -> bool:
    """Find mixes that meet the limits, in the sites from `start` on, if no plan is known.

    They become incumbents of `state`, from which the search by its goal continues; `plans` and
    `sets` (of entries) limit the search of all mixes. Returns whether the search was complete,
    which proves that there is none if nothing was found.
    """
    judge_safest(space, start, state)
    if state.incumbents:
        return False
    found = _quickest(space, start, plans, sets)
    state.adopt_all(found, by_time=space.limits.goal == "time")
    complete = not np.isfinite(found.open_bound)
    if not complete and not state.incumbents:
        # Mixes with spot machines used the search up: on-demand ones are slower, but surer.
        reliable = _quickest(_on_demand_only(space), start, plans, sets)
        state.adopt_all(reliable, by_time=space.limits.goal == "time")
    return complete


def judge_safest(space: Space, start: int, state: SearchState) -> None:
    """Simulate the mixes most likely to meet the limits, of the sites from `start` on."""
    if next(space.limits.given(PATH_LIMITS), None) is None:
        return
    before = state.plans_evaluated
    simulate_ranked(space, safest_mixes(space, start)[:SAFEST_MIXES], state)
    state.allow_more_plans(state.plans_evaluated - before)


def _on_demand_only(space: Space) -> Space:
    """A space in which no spot entry may have machines."""
    sites = tuple(
        replace(
            site,
            entries=replace(site.entries, cap=np.where(site.entries.spot, 0, site.entries.cap)),
        )
        for site in space.sites
    )
    return replace(space, sites=sites)


def _quickest(space: Space, start: int, plans: int, sets: int) -> SearchState:
    """All mixes by the other goal: quick ones for a deadline, cheap ones for a budget."""
    aim: Aim = "cost" if space.limits.goal == "time" else "time"
    found = SearchState(slack=0.0, max_plans=plans, max_supports=sets)
    search_mixes(replace(space, limits=replace(space.limits, objective=aim)), found, start)
    return found
