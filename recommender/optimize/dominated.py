"""Drops plans that their own fallback, rented alone from the start, beats in cost and time.

Nobody would rent the spot machines of such a plan. The fallback alone is a candidate of the same
search, because fallbacks are on-demand entries of the same provider within the same quotas. So the
last plan that keeps the limits is never dropped.
"""

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.optimize.evaluate import (
    Plans,
    Values,
    path_inputs_of,
    plans_without_fallback,
    values_of,
)
from recommender.optimize.space import Site, Space

SAME_SHARE = 1e-4  # share by which costs or times differ without meaning anything

# Of the price of the work at the median speed: what a fallback alone costs at least. The mean over
# speeds is higher than the median, start-up and faults come on top.
MIN_SHARE = 0.95

FallbackCosts = tuple[Floats, Floats]  # expected cost and time of each fallback alone; (fallbacks,)


def fallback_costs(space: Space, site: Site) -> FallbackCosts:
    """Cost and time of each fallback of a site rented alone; inf if it misses a limit."""
    fall = site.fallbacks
    own = Site(
        site.provider,
        site.region,
        singles=True,
        entries=fall.entries,
        fallbacks=fall.none(),
        tier=site.tier,
        quota_use=np.zeros((0, len(fall))),
        quota=np.zeros(0),
        store_usd_per_hour=site.store_usd_per_hour,
    )
    plans = plans_without_fallback(space, own, np.diag(fall.count))
    if not len(plans):  # checkpoints may go where only spot machines need them
        return np.full(len(fall), np.inf), np.full(len(fall), np.inf)
    values = values_of(space, *path_inputs_of(space, own, plans))
    which = plans.counts.argmax(axis=1)
    best = np.lexsort((values.goal_value, which))
    first = best[np.searchsorted(which[best], np.arange(len(fall)))]
    keeps = np.isfinite(values.goal_value[first])
    cost, time = values.cost_usd[first], values.time_s[first]
    return np.where(keeps, cost, np.inf), np.where(keeps, time, np.inf)


def may_be_dominated(space: Space, site: Site, plans: Plans, values: Values) -> Bools:
    """Which plans cost at least as much as the work alone on their fallback: few do."""
    fall = site.fallbacks
    least = MIN_SHARE * fall.usd_per_hour * fall.step_s * space.steps_left / 3600.0
    may: Bools = np.append(least, np.inf)[plans.fallback] <= values.cost_usd
    return may


def dominated(plans: Plans, values: Values, costs: FallbackCosts) -> Bools:
    """Which plans their own fallback beats in cost and in time."""
    cost, time = (np.append(f, np.inf)[plans.fallback] * (1.0 - SAME_SHARE) for f in costs)
    beaten: Bools = (cost <= values.cost_usd) & (time <= values.time_s) & np.isfinite(cost)
    return beaten
