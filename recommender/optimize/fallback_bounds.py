"""Lower bounds of clusters that need a fallback to meet the deadline, by the fallbacks on offer.

The bound of a cluster (`lower_bounds.py`) joins the quickest fallback of its site with the price
of the cheapest. Under a short deadline that lets pass what no single fallback can save: the quick
ones queue, the others are slow.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import (
    RENDEZVOUS_S,
    Plans,
    Reduced,
    drafts_of,
    fallback_drafts_of,
    with_fallbacks,
)
from recommender.optimize.lower_bounds import (
    ClusterSums,
    cluster_lower_bounds,
    enough_in_time,
    plan_lower_bounds,
    sums_of_plans,
    too_lossy,
)
from recommender.optimize.space import Site, Space
from recommender.risk.path_inputs import PathInputs

TIERS = (0.5, 0.8, 0.95)  # of the chance to be there at once: fallbacks that are bounded together


def bounds_by_queue(
    space: Space, site: Site, sums: ClusterSums, step_s: Floats, tight: bool
) -> Floats:
    """Lower bounds of clusters; of those that need a fallback, by each kind of it.

    A plan has one fallback, so the least lower bound over the kinds bounds it; a kind are all
    fallbacks that are about as likely to be there at once. `step_s` has shape (clusters,).
    """
    lower_bounds = cluster_lower_bounds(space, sums, tight)
    if space.limits.deadline_s is None or not len(site.fallbacks):
        return lower_bounds
    open_ = np.flatnonzero(np.isfinite(lower_bounds) & (sums.spot_usd_per_hour > 0))
    rows = open_[_need_fallback(space, sums.take(open_))]
    if not len(rows):
        return lower_bounds
    fall, least = site.fallbacks, np.full(len(rows), np.inf)
    tier = np.digitize(fall.at_once, TIERS)
    for each in distinct(tier):
        kind = tier == each
        usd = float((fall.usd_per_hour * fall.step_s)[kind].min())
        own = replace(
            sums.take(rows),
            best_fallback_usd_per_hour=usd / step_s[rows],
            best_fallback_speed=step_s[rows] / float(fall.step_s[kind].min()),
            fallback_start_s=np.full(len(rows), float(fall.boot_s[kind].min()) + RENDEZVOUS_S),
            fallback_at_once=np.full(len(rows), float(fall.at_once[kind].max())),
            fallback_wait_s=np.full(len(rows), float(fall.wait_s[kind].min())),
        )
        least = np.minimum(least, cluster_lower_bounds(space, own, tight))
    lower_bounds[rows] = np.maximum(lower_bounds[rows], least)
    return lower_bounds


def _need_fallback(space: Space, sums: ClusterSums) -> Bools:
    """Which clusters are too slow alone, or lose too much."""
    needy: Bools = ~enough_in_time(space, sums) | too_lossy(space, sums)
    return needy


def drafts_and_bounds(space: Space, site: Site, plans: Plans) -> tuple[Reduced, Floats]:
    """The plans as inputs of the simulation, and their lower bounds; inf where not allowed."""
    drafts = drafts_of(space, site, plans)
    return drafts, _bounds(space, drafts.inputs, drafts.allowed)


def _bounds(space: Space, inputs: PathInputs, allowed: Bools) -> Floats:
    return np.where(allowed, plan_lower_bounds(space, inputs), np.inf)


@dataclass(frozen=True, slots=True)
class Helped:
    """Plans with each fallback worth trying; shape (plans,)."""

    plans: Plans
    of: Ints  # which plan without one each was
    drafts: PathInputs
    lower_bounds: Floats


def helped(space: Space, site: Site, plans: Plans, drafts: Reduced, rows: Ints) -> Helped:
    """Some of the plans with fallbacks; what no fallback changes is not worked out again."""
    found, of = with_fallbacks(space, site, plans.take(rows), drafts.step_s[rows])
    of = rows[of]
    inputs, allowed = fallback_drafts_of(space, site, found.fallback, of, drafts)
    return Helped(found, of, inputs, _bounds(space, inputs, allowed))


def bounds_with_own_fallbacks(
    space: Space, site: Site, plans: Plans, drafts: Reduced, lower_bounds: Floats, cutoff: float
) -> Floats:
    """Lower bounds of plans that cannot do without a fallback, by those that they may have."""
    open_ = np.flatnonzero(lower_bounds < cutoff)
    sums = sums_of_plans(space, drafts.inputs.take(open_))
    needy = open_[_need_fallback(space, sums)]
    if not len(needy):
        return lower_bounds
    found, least = helped(space, site, plans, drafts, needy), np.full(len(plans), np.inf)
    np.minimum.at(least, found.of, found.lower_bounds)
    own = lower_bounds.copy()
    own[needy] = np.maximum(lower_bounds[needy], least[needy])
    return own
