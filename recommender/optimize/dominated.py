"""Drops plans that their own fallback, rented alone from the start, beats in cost and time.

Such a plan would do better without its spot machines. The fallback alone is a candidate of the same
search, because fallbacks are on-demand entries of the same provider within the same quotas. So the
last plan that meets the limits is never dropped.
"""

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
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


@dataclass(frozen=True, slots=True)
class FallbackCosts:
    """Each fallback of a site, rented alone; shape (fallbacks,)."""

    usd: Floats  # expected; inf if it misses a limit, on the paths of a search beyond their error
    time_s: Floats
    certain: Bools  # whether it meets the limits whatever the error


def fallback_costs(space: Space, site: Site) -> FallbackCosts:
    """Cost and time of each fallback of a site rented alone."""
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
        never = np.full(len(fall), np.inf)
        return FallbackCosts(never, never, np.zeros(len(fall), dtype=bool))
    values = values_of(space, *path_inputs_of(space, own, plans))
    which = plans.counts.argmax(axis=1)
    best = np.lexsort((values.goal_value, which))
    first = best[np.searchsorted(which[best], np.arange(len(fall)))]
    meets = np.isfinite(values.goal_value[first])
    usd, time_s = values.cost_usd[first], values.time_s[first]
    return FallbackCosts(
        usd=np.where(meets, usd, np.inf),
        time_s=np.where(meets, time_s, np.inf),
        # As far above the requested chance as the minimum that may be enough is below it.
        certain=values.chance[first]
        >= min(2.0 * space.limits.confidence - space.min_chance, 1.0) - 1e-12,
    )


def may_be_dominated(space: Space, site: Site, plans: Plans, values: Values) -> Bools:
    """Which plans cost at least as much as the work alone on their fallback: few do."""
    fall = site.fallbacks
    least = MIN_SHARE * fall.usd_per_hour * fall.step_s * space.steps_left / 3600.0
    may: Bools = np.append(least, np.inf)[plans.fallback] <= values.cost_usd
    return may


def dominated(plans: Plans, values: Values, costs: FallbackCosts, certainly: bool = False) -> Bools:
    """Which plans their own fallback beats in cost and in time.

    With `certainly`, only by fallbacks that meet the limits whatever the error of these paths.
    """
    usd = np.where(costs.certain, costs.usd, np.inf) if certainly else costs.usd
    cost, time = (
        np.append(each, np.inf)[plans.fallback] * (1.0 - SAME_SHARE) for each in (usd, costs.time_s)
    )
    beaten: Bools = (cost <= values.cost_usd) & (time <= values.time_s) & np.isfinite(cost)
    return beaten
