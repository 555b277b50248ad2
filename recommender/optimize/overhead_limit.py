"""Starts fallbacks before the last possible moment, if that is needed to meet an overhead limit.

A plan that waits for spot as long as its deadline allows may lose more work than `--max-overhead`
allows. The earlier its fallback takes over, the less work is done and lost on machines that are
reclaimed, but since spot is cheaper, the more it costs. So the last moment that meets the limit is
found, as an increase of the reserve of the fallback rule. Plans that meet the limit at the last
moment that the deadline allows are unchanged.

Only plans that would be the best but for their overhead switch earlier (`last_moment.py`).
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import Values, goal_error, values_of
from recommender.optimize.last_moment import CLOSELY, last_moments
from recommender.optimize.space import Space
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import keys_of


@dataclass(frozen=True, slots=True)
class Switched:
    """Plans whose fallbacks take over when the overhead limit requires; shape (plans,)."""

    values: Values
    early_s: Floats  # before the last moment that the deadline allows
    over_overhead: Bools  # whether at that moment the overhead alone is too high


def switched_in_time(
    space: Space,
    inputs: PathInputs,
    values: Values,
    below: float = np.inf,
    rounds: int = CLOSELY,
    near_s: float = 0.0,
) -> Switched:
    """Switch earlier the plans with a fallback that would beat `below` but for their overhead.

    `values` are those of the last moment that the deadline allows. On search paths a limit may be
    broken within sampling error, so `ROUGHLY` is enough: on the printed paths the moment is
    computed again, near the one that a search found, if it is given.
    """
    early_s, over_overhead = (
        np.zeros(len(inputs)),
        _misses_overhead_only(space, inputs, values, below),
    )
    rows = np.flatnonzero(over_overhead)
    if not len(rows):
        return Switched(values, early_s, over_overhead)
    found_s, least = _remembered(space, inputs.take(rows), below, rounds, near_s)
    known = np.isfinite(found_s)
    rows, found_s, least = rows[known], found_s[known], least[known]
    early_s[rows] = found_s
    switched = inputs.take(rows).earlier(found_s)
    own = values_of(space, switched, np.ones(len(rows), dtype=bool))
    sure = own.chance >= space.limits.confidence - 1e-12
    own = replace(own, meets_limits=np.where(found_s > 0.0, sure, own.meets_limits))
    if space.limits.goal != "time":
        own = replace(own, min_goal=np.maximum(own.min_goal, least))
    return Switched(values.with_rows(rows, own), early_s, over_overhead)


def _misses_overhead_only(space: Space, inputs: PathInputs, values: Values, below: float) -> Bools:
    """Plans with a fallback that may be possible, and better than `below`, but for their overhead.

    On the paths of a search: within the error of their goal.
    """
    limits = space.limits
    over_overhead = np.zeros(len(inputs), dtype=bool)
    if limits.max_overhead is None or limits.deadline_s is None:
        return over_overhead
    goal_value = values.time_s if limits.goal == "time" else values.cost_usd
    over_overhead |= (inputs.fallback_speed > 0.0) & (values.overhead > limits.max_overhead)
    over_overhead &= np.isfinite(goal_value) & (values.chance >= space.min_chance - 1e-12)
    rows = np.flatnonzero(over_overhead)
    if len(rows):
        some = inputs.take(rows)
        error = goal_error(space, some, space.cache.outcomes(some, limits.deadline_s))
        over_overhead[rows] = goal_value[rows] - error < below
    return over_overhead


def _remembered(
    space: Space, plans: PathInputs, below: float, rounds: int, near_s: float
) -> tuple[Floats, Floats]:
    """The last moments of plans, and the least that they may cost then on other paths.

    What another search has found is not looked for again.
    """
    limits, known = space.limits, space.cache.switches
    how = (limits.max_overhead or 0.0, rounds, space.printed is None)
    each = [(key, *how) for key in keys_of(plans, limits.deadline_s)]
    found = [known.get(key, (np.inf, -np.inf, -np.inf)) for key in each]
    early_s, below_usd, least = np.array(found).T
    # Where no moment was found, it was too expensive for that search.
    new = np.flatnonzero(np.isinf(early_s) & (below > below_usd))
    if len(new):
        early_s[new], least[new] = last_moments(space, plans.take(new), below, rounds, near_s)
        room = max(space.cache.most - len(known), 0)
        known.update(
            (each[row], (float(early_s[row]), below, float(least[row]))) for row in new[:room]
        )
    return early_s, least
