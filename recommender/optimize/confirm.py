"""Confirms plans on the printed paths if they are within sampling error on the search paths.

A search compares plans on few paths, and the printed figures come from many. Near the edge of a
limit the two disagree: of 256 paths 94.5 % may be in time where of 2,048 it is 95.2 %, and a cost
differs by one or two per cent. So the few paths only screen a plan:

* it may meet the limits if it does so within the error of its chance (`Space.min_chance`) and of
  its overhead;
* it is no plan if its own fallback beats it, but only beyond the error of its goal;
* it may be the best if its goal minus its error (`Values.min_goal`) is below that of the
  best, on the printed paths or on the same few (`SearchState.open_below`).

A plan that may be the best is simulated on the printed paths, and only plans that meet the limits
there prune others. A plan that looks better than the best is confirmed at once. One that is better
only within the error waits until the search has ended (`confirm_open`), when most are out of the
question; these are confirmed in the order of their goals. Plans that the search may not simulate
any more are part of its gap.
"""

from dataclasses import replace

import numpy as np

from recommender.optimize.evaluate import limits_met, values_of
from recommender.optimize.overhead_limit import switched_in_time
from recommender.optimize.search_state import (
    EPSILON,
    Screened,
    SearchState,
)
from recommender.optimize.space import Space, chance_less_error
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import difference_error, trimmed_mean

FIRST_PRINTED = 512  # printed paths looked at first where a chance is short on those of the search
# Standard errors by which a difference of costs may be off: over twelve questions the two sets of
# paths differed by 0.4-1.2 of them (sd; at most 2.1 in 1 %; November 2026).
PAIR_ERRORS = 2.0
SWITCH_RUNS = 5  # simulations on the printed paths until a switch is found, about


def admit(space: Space, found: list[Screened], state: SearchState) -> None:
    """Confirm plans that may meet the limits as incumbents, or let them wait."""
    if space.printed is None:
        for each in found:
            state.keep_decisive(replace(each.candidate, printed=True), each)
        return
    # What meets the limits on these paths as well is the surest to cut others off.
    for each in sorted(found, key=lambda one: (not one.meets_limits, one.candidate.goal_value)):
        better = each.candidate.goal_value < state.screened_goal * (1.0 - EPSILON)
        if better and not each.beaten and state.may_simulate_printed:
            _confirm(space, each, state)
        else:
            _wait(each, state)


def confirm_open(space: Space, state: SearchState) -> None:
    """Confirm waiting plans that may be better than the best, in the order of their goals."""
    done: set[float] = set()
    for each in sorted(state.take_postponed(), key=_order):
        goal = each.candidate.goal_value
        # The same machines in another region take as long to the second: the cheapest is enough.
        if each.min_goal >= state.open_below or goal in done or _is_worse(space, each, state):
            _keep_if_distinct(each, state)
        elif state.may_simulate_printed:
            done.add(goal)
            _confirm(space, each, state)
        else:
            state.leave_open(each.min_goal)


def _order(each: Screened) -> tuple[float, float, float]:
    return each.min_goal, each.candidate.goal_value, each.candidate.cost_usd


def _is_worse(space: Space, each: Screened, state: SearchState) -> bool:
    """Whether a plan costs more than the best on the same paths, by more than their error.

    Two plans that meet the same paths differ by less than each of them may be off. Trimmed means
    of times are no means of differences, so there each time's own error has to do.
    """
    if state.lead is None or space.limits.goal == "time":
        return False
    both = PathInputs.joined([each.inputs, state.lead.inputs])
    usd = space.cache.outcomes(both, space.limits.deadline_s).cost_usd
    error = PAIR_ERRORS * difference_error(usd[0] - usd[1], space.seed)
    return each.candidate.goal_value - error >= state.lead.candidate.goal_value * (1.0 - EPSILON)


def _wait(each: Screened, state: SearchState) -> None:
    """Keep a plan that may be the best."""
    if each.min_goal < state.open_below:
        state.postpone(each)
    else:
        _keep_if_distinct(each, state)


def _keep_if_distinct(each: Screened, state: SearchState) -> None:
    """Whether a plan that cannot be the best may be listed with it: if it meets the limits.

    One that switches early has yet to find its moment on the printed paths: it seems too cheap.
    """
    seems = each.candidate.early_s > 0.0 and each.candidate.goal_value < state.best_goal
    if each.meets_limits and not each.beaten and not seems:
        state.keep(each.candidate)


def _confirm(space: Space, each: Screened, state: SearchState) -> None:
    """Follow a plan on the printed paths, and take it if it meets the limits there."""
    if not each.meets_limits and _falls_short(space, each):
        state.count_printed(1)
        return
    last, decides = each.last.without_fallback_bound(), space.on_printed_paths()
    values = values_of(decides, last, np.ones(1, dtype=bool))
    found = switched_in_time(decides, last, values, near_s=each.candidate.early_s)
    state.count_printed(SWITCH_RUNS if found.over_overhead.any() else 1)
    values = found.values
    best = state.best_goal if each.beaten else np.inf  # a plan that its fallback beats is none
    if values.goal_value[0] < best:
        printed = replace(
            each.candidate,
            goal_value=float(values.goal_value[0]),
            cost_usd=float(values.cost_usd[0]),
            time_s=float(values.time_s[0]),
            chance=float(values.chance[0]),
            printed=True,
            early_s=float(found.early_s[0]),
        )
        if printed.goal_value < state.best_goal:
            each = _as_printed(space, each, printed.early_s)
        state.keep_decisive(printed, each)


def _as_printed(space: Space, each: Screened, early_s: float) -> Screened:
    """A plan on the paths of the search, whose fallback takes over as on the printed ones.

    The paths of a search allow for the error of an overhead, so there it takes over later, and
    costs less than what other plans can be compared with.
    """
    if early_s == each.candidate.early_s:
        return each
    inputs = each.last.earlier(np.array([early_s]))
    found = space.cache.outcomes(inputs, space.limits.deadline_s)
    by_time = space.limits.goal == "time"
    goal_value = trimmed_mean(found.time_s) if by_time else found.expected_usd
    candidate = replace(each.candidate, goal_value=float(goal_value[0]), early_s=early_s)
    return replace(each, candidate=candidate)


def _falls_short(space: Space, each: Screened) -> bool:
    """Whether the first of the printed paths show that a plan meets the limits too seldom."""
    limits, decides = space.limits, space.on_printed_paths().cache
    first = min(FIRST_PRINTED, decides.path_count)
    begun = simulate_paths(
        each.inputs, limits.deadline_s, decides.path_count, decides.seed, first=first
    )
    chance = float(limits_met(limits, begun).mean())
    return chance < chance_less_error(limits.confidence, first, decides.path_count)
