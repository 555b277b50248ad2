"""Expands clusters into plans, and simulates these while they could still be the best."""

from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.fallback import (
    Helped,
    bounds_with_own_fallbacks,
    drafts_and_bounds,
    helped,
    min_times,
    without_savings,
)
from recommender.optimize.bounds.overhead import bounds_within_overhead
from recommender.optimize.confirm import admit
from recommender.optimize.dominated import dominated, fallback_costs, may_be_dominated
from recommender.optimize.early_rejection import surely_infeasible
from recommender.optimize.evaluate import (
    Plans,
    Reduced,
    Values,
    plans_without_fallback,
    values_of,
    with_best_interval,
)
from recommender.optimize.fallback_choices import slower_choices
from recommender.optimize.overhead_limit import ROUGHLY, Switched, switched_in_time
from recommender.optimize.search_state import Candidate, Screened, SearchState
from recommender.optimize.space import Site, Space
from recommender.risk.path_inputs import PathInputs

OVERRUN = 2  # no batch starts beyond so many times the plans allowed
NEAR = 1.1  # times the cutoff: clusters that a table may show get their fallbacks as well
PLANS_AT_ONCE = 16  # plans simulated before the cutoff is applied again


def expand_clusters(space: Space, index: int, rows: Ints, counts: Ints, state: SearchState) -> None:
    """Expand clusters into plans and simulate every one that could still be the best.

    Plans without a fallback come first: they also bound what any fallback can save, so few of the
    plans with one have to be simulated.
    """
    site = space.sites[index].only(rows)
    alone = plans_without_fallback(space, site, counts)
    drafts, lower_bounds = drafts_and_bounds(space, site, alone)
    has_fallback = space.limits.deadline_s is not None and len(site.fallbacks) > 0
    if has_fallback:
        lower_bounds = bounds_with_own_fallbacks(
            space, site, alone, drafts, lower_bounds, state.cutoff
        )
    run = _simulate_by_bound(space, index, rows, alone, drafts.inputs, lower_bounds, state)
    promising = np.flatnonzero(run.bounds < NEAR * state.cutoff)
    if has_fallback and len(promising):
        found = helped(space, site, alone, drafts, promising)
        over_overhead = _simulate_helped(space, index, rows, drafts, promising, found, state)
        if over_overhead.any():
            slower = _helped_by_slower(space, site, alone, drafts, found, over_overhead)
            _simulate_helped(space, index, rows, drafts, promising, slower, state)


def _simulate_helped(
    space: Space,
    index: int,
    rows: Ints,
    drafts: Reduced,
    promising: Ints,
    found: Helped,
    state: SearchState,
) -> Bools:
    """Simulate plans with fallbacks, and tell which need an earlier switch for the overhead."""
    own, least = found.drafts.without_fallback_bound(), found.lower_bounds
    over_overhead = np.zeros(len(own), dtype=bool)
    if space.limits.goal == "time":
        least = np.maximum(least, min_times(space, drafts.inputs, promising, found))
    elif space.limits.max_overhead is not None:
        open_ = np.flatnonzero(least < state.cutoff)
        within = bounds_within_overhead(
            space, drafts.inputs, own.take(open_), found.of[open_], state.cutoff
        )
        least, over_overhead[open_] = least.copy(), within >= state.cutoff
        least[open_] = np.maximum(least[open_], within)
    plans, of = found.plans, found.of
    run = _simulate_by_bound(space, index, rows, plans, own, least, state, of)
    return over_overhead | run.over_overhead


def _helped_by_slower(
    space: Space, site: Site, alone: Plans, drafts: Reduced, found: Helped, over_overhead: Bools
) -> Helped:
    """Plans over the overhead with slower fallbacks: less work is lost while those start."""
    which = np.flatnonzero(np.bincount(found.of[over_overhead]))
    fastest_s = np.full(len(alone), np.inf)
    np.minimum.at(
        fastest_s,
        found.of[over_overhead],
        site.fallbacks.step_s[found.plans.fallback[over_overhead]],
    )
    tried = np.zeros((len(alone), len(site.fallbacks)), dtype=bool)
    tried[found.of, found.plans.fallback] = True
    choices = slower_choices(site.fallbacks, drafts.step_s[which], fastest_s[which], tried[which])
    return helped(space, site, alone, drafts, which, choices)


@dataclass(frozen=True, slots=True)
class _Simulated:
    """What a simulation of plans tells besides the candidates; shape (plans,)."""

    bounds: Floats  # the least cost with any fallback; inf where a plan was not simulated
    over_overhead: Bools  # whether the overhead alone is too high at the last moment for a fallback


def _simulate_by_bound(
    space: Space,
    index: int,
    rows: Ints,
    plans: Plans,
    drafts: PathInputs,
    lower_bounds: Floats,
    state: SearchState,
    of: Ints | None = None,
) -> _Simulated:
    """Simulate plans that may be the best, least bound first.

    With `of`, the cluster of each plan, those of a cluster follow each other: they share its runs.
    """
    bounds, over_overhead = np.full(len(plans), np.inf), np.zeros(len(plans), dtype=bool)
    if not len(plans):
        return _Simulated(bounds, over_overhead)
    rest = _by_bound(lower_bounds, of)
    while True:
        rest = rest[lower_bounds[rest] < state.cutoff]
        keep, rest = rest[:PLANS_AT_ONCE], rest[PLANS_AT_ONCE:]
        if not len(keep):
            break
        if (
            state.stopped or state.plans_evaluated >= OVERRUN * state.max_plans
        ):  # many clusters at once, none of them better
            state.leave_open(float(lower_bounds[keep].min()))
            break
        inputs = with_best_interval(drafts.take(keep))
        allowed = ~surely_infeasible(space, inputs)
        inputs = without_savings(space, inputs)
        values = values_of(space, inputs, allowed)
        state.count_plans(len(keep))
        bounds[keep] = (
            values.usd_with_any_fallback if space.limits.goal != "time" else lower_bounds[keep]
        )
        found = switched_in_time(space, inputs, values, state.open_below, ROUGHLY)
        over_overhead[keep] = found.over_overhead
        admit(space, _screened(space, index, rows, plans.take(keep), found, state), state)
    return _Simulated(bounds, over_overhead)


def _by_bound(lower_bounds: Floats, of: Ints | None) -> Ints:
    """The order in which plans are simulated; `of` is the cluster of each, if they share them."""
    if of is None:
        return np.argsort(lower_bounds, kind="stable")
    least = np.full(int(of.max()) + 1, np.inf)
    np.minimum.at(least, of, lower_bounds)
    return np.lexsort((lower_bounds, of, least[of]))


def _screened(
    space: Space,
    index: int,
    rows: Ints,
    plans: Plans,
    found: Switched,
    state: SearchState,
) -> list[Screened]:
    """The plans that may meet the limits, but those that their own fallback surely beats."""
    values = found.values
    meets = np.isfinite(values.goal_value)
    beaten = np.zeros(len(plans), dtype=bool)
    if (meets & may_be_dominated(space, space.sites[index], plans, values)).any():
        if index not in state.fallback_costs:
            state.fallback_costs[index] = fallback_costs(space, space.sites[index])
        costs = state.fallback_costs[index]
        beaten = dominated(plans, values, costs)
        meets &= ~dominated(plans, _less_error(space, values), costs, certainly=True)
    return [
        Screened(
            _candidate(index, rows, plans, found, int(i)),
            found.inputs,
            int(i),
            float(values.min_goal[i]),
            bool(values.meets_limits[i]),
            bool(beaten[i]),
        )
        for i in np.flatnonzero(meets)
    ]


def _less_error(space: Space, values: Values) -> Values:
    """The values of plans with a goal as low as the error of these paths may make it."""
    if space.limits.goal == "time":
        return replace(values, time_s=values.min_goal)
    return replace(values, cost_usd=values.min_goal)


def _candidate(index: int, rows: Ints, plans: Plans, found: Switched, i: int) -> Candidate:
    used, values = np.flatnonzero(plans.counts[i]), found.values
    return Candidate(
        site=index,
        entries=tuple(int(rows[k]) for k in used),
        counts=tuple(int(plans.counts[i, k]) for k in used),
        checkpoint_path=int(plans.checkpoint_path[i]),
        fallback=int(plans.fallback[i]),
        goal_value=float(values.goal_value[i]),
        cost_usd=float(values.cost_usd[i]),
        time_s=float(values.time_s[i]),
        chance=float(values.chance[i]),
        early_s=float(found.early_s[i]),
    )
