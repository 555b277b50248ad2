"""Narrows the least value of a limit under which fallbacks start at other moments.

They start in time for the deadline, and early enough for an overhead limit. So a plan needs less
of the limit where less is allowed, and several values are tried. The plans that need least at one
value are tried at others; at a value a little below the least of these, all are looked at again.
"""

from collections.abc import Sequence

import numpy as np

from recommender.optimize.search_state import Candidate
from recommender.planner.least_value import SUGGESTED_MARGIN, LeastValue, Met, Tried

# Values this close to each other count as equal, and where each needs a search of plans.
CLOSER, CLOSE_SEARCHED = 1.005, 1.02
# Plans that need so much more than a value say little of those that need least (a judgement).
FAR = 1.1
KEPT = 10  # plans tried at the next values (docs/decisions.md)


def narrowed(least: LeastValue, met: Met) -> Met:
    """A smaller value that leaves a plan, where there is one: fallbacks start the earlier."""
    low = max(least.limits.value(least.limit) or 0.0, least.half_without_limits())
    if least.limits.max_overhead is not None:
        return _bisected(least, low, met)
    plans, value = [met.candidate], (low * met.value) ** 0.5
    while met.value / CLOSER > low:
        found = least.least_of(list(dict.fromkeys([*least.likely(value), *plans])), value)
        low, met = (value, met) if found.met is None else (low, found.met)
        plans = found.plans[:KEPT]
        if found.met is None and found.need > FAR * value:
            value = min(found.need * SUGGESTED_MARGIN, met.value / CLOSER)
            continue
        met = _least_of_plans(least, plans, low, met, found)
        value = met.value / CLOSER
    return met


def _bisected(least: LeastValue, low: float, met: Met) -> Met:
    """A smaller value, by a search of plans at each: fallbacks may have to start early."""
    while met.value / CLOSE_SEARCHED > low:
        middle = (low * met.value) ** 0.5
        found = least.within(middle)
        low, met = (middle, met) if found is None else (low, found)
    return met


def _least_of_plans(
    least: LeastValue, plans: Sequence[Candidate], low: float, met: Met, found: Tried
) -> Met:
    """About the least value that some plans leave, between one that leaves none and another.

    `found` is what they need at either. With a little more than they need at a value that leaves
    none, they mostly need a little more again.
    """
    step = CLOSER
    while met.value / CLOSER > low:
        likely = np.inf if found.met else max(found.need * SUGGESTED_MARGIN, low * step)
        value = min((low * met.value) ** 0.5, likely)
        found = least.least_of(plans, value)
        low, met = (value, met) if found.met is None else (low, found.met)
        step = CLOSER if found.met else step**2
    return met
