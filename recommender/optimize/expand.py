"""How clusters are expanded into plans, and these simulated while they could still be the best."""

from dataclasses import replace

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.optimize.bounds.fallback import (
    as_followed,
    bounds_with_own_fallbacks,
    drafts_and_bounds,
    helped,
    least_times,
)
from recommender.optimize.confirm import admit
from recommender.optimize.dominated import dominated, fallbacks_alone, may_be_dominated
from recommender.optimize.early_rejection import hopeless
from recommender.optimize.evaluate import (
    Plans,
    Values,
    plans_without_fallback,
    values_of,
    with_best_interval,
)
from recommender.optimize.search_state import Candidate, Screened, SearchState
from recommender.optimize.space import Space
from recommender.risk.path_inputs import PathInputs

OVERRUN = 2  # no batch starts beyond so many times the plans allowed
PLANS_AT_ONCE = 16  # plans simulated before the cutoff is applied again


def expand_clusters(space: Space, index: int, rows: Ints, counts: Ints, state: SearchState) -> None:
    """Expand clusters into plans and simulate every one that could still be the best.

    Plans without a fallback come first: they also bound what any fallback can save, so only few
    of the plans with one have to be simulated.
    """
    site = space.sites[index].only(rows)
    alone = plans_without_fallback(space, site, counts)
    drafts, lower_bounds = drafts_and_bounds(space, site, alone)
    has_fallback = space.limits.deadline_s is not None and len(site.fallbacks) > 0
    if has_fallback:
        lower_bounds = bounds_with_own_fallbacks(
            space, site, alone, drafts, lower_bounds, state.cutoff
        )
    bounds = _simulate_by_bound(space, index, rows, alone, drafts.inputs, lower_bounds, state)
    promising = np.flatnonzero(bounds < state.cutoff)
    if has_fallback and len(promising):
        found = helped(space, site, alone, drafts, promising)
        own = found.drafts.without_fallback_bound()
        least = found.lower_bounds
        if space.limits.goal == "time":
            least = np.maximum(least, least_times(space, drafts.inputs, promising, found))
        _simulate_by_bound(space, index, rows, found.plans, own, least, state)


def _simulate_by_bound(
    space: Space,
    index: int,
    rows: Ints,
    plans: Plans,
    drafts: PathInputs,
    lower_bounds: Floats,
    state: SearchState,
) -> Floats:
    """Simulate plans, least bound first; returns the least cost of each with any fallback."""
    bounds = np.full(len(plans), np.inf)
    if not len(plans):
        return bounds
    for batch in np.array_split(
        np.argsort(lower_bounds, kind="stable"), -(-len(plans) // PLANS_AT_ONCE)
    ):
        keep = batch[lower_bounds[batch] < state.cutoff]
        if not len(keep):
            break
        if (
            state.stopped or state.plans_evaluated >= OVERRUN * state.max_plans
        ):  # many clusters at once, none of them better
            state.open_bound = min(state.open_bound, float(lower_bounds[keep].min()))
            break
        inputs = with_best_interval(drafts.take(keep))
        allowed = ~hopeless(space, inputs)
        inputs = as_followed(space, inputs)
        values = values_of(space, inputs, allowed)
        state.plans_evaluated += len(keep)
        bounds[keep] = (
            values.usd_with_any_fallback if space.limits.goal != "time" else lower_bounds[keep]
        )
        found = _screened(space, index, rows, plans.take(keep), inputs, values, state)
        admit(space, found, state)
    return bounds


def _screened(
    space: Space,
    index: int,
    rows: Ints,
    plans: Plans,
    inputs: PathInputs,
    values: Values,
    state: SearchState,
) -> list[Screened]:
    """The plans that may keep the limits, but those that their own fallback surely beats."""
    keeps = np.isfinite(values.goal_value)
    beaten = np.zeros(len(plans), dtype=bool)
    if (keeps & may_be_dominated(space, space.sites[index], plans, values)).any():
        if index not in state.alone:
            state.alone[index] = fallbacks_alone(space, space.sites[index])
        alone = state.alone[index]
        beaten = dominated(plans, values, alone)
        keeps &= ~dominated(plans, _less_error(space, values), alone)
    return [
        Screened(
            _candidate(index, rows, plans, values, int(i)),
            inputs,
            int(i),
            float(values.least_goal[i]),
            bool(values.kept[i]),
            bool(beaten[i]),
        )
        for i in np.flatnonzero(keeps)
    ]


def _less_error(space: Space, values: Values) -> Values:
    """The values of plans with a goal as low as the error of these paths may make it."""
    if space.limits.goal == "time":
        return replace(values, time_s=values.least_goal)
    return replace(values, cost_usd=values.least_goal)


def _candidate(index: int, rows: Ints, plans: Plans, values: Values, i: int) -> Candidate:
    used = np.flatnonzero(plans.counts[i])
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
    )
