"""Lower bounds of clusters that need a fallback to meet the deadline, by the available fallbacks.

The bound of a cluster (`bounds/cluster.py`) combines the fastest fallback of its site with the
price of the cheapest. Under a short deadline that is weak, because no single fallback has both: the
fast ones have a queue, the others are slow.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.cluster import (
    ROUNDING,
    ClusterSums,
    cluster_lower_bounds,
    enough_in_time,
    plan_lower_bounds,
    sums_of_plans,
    surely_over_overhead,
)
from recommender.optimize.bounds.deadline import max_reserve_without_wait_s
from recommender.optimize.evaluate import (
    RENDEZVOUS_S,
    Plans,
    Reduced,
    drafts_of,
    fallback_drafts_of,
    goal_error,
    with_best_interval,
    with_fallbacks,
)
from recommender.optimize.fallback_choices import fallback_choices
from recommender.optimize.space import Site, Space
from recommender.risk.on_demand_wait import wait_s
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import random_numbers, time_factors
from recommender.risk.run_statistics import trimmed_mean

TIERS = (0.5, 0.8, 0.95)  # of the chance to be there at once: fallbacks that are bounded together


def bounds_by_queue(
    space: Space, site: Site, sums: ClusterSums, step_s: Floats, tight: bool
) -> Floats:
    """Lower bounds of clusters; for those that need a fallback, the minimum over kinds of fallback.

    If time is the goal any cluster may gain by a fallback, so all are bounded this way. A plan has
    one fallback, so the smallest bound over the kinds is valid. A kind contains all fallbacks with
    about the same chance of being available at once. `step_s` has shape (clusters,).
    """
    lower_bounds = cluster_lower_bounds(space, sums, tight)
    if space.limits.deadline_s is None or not len(site.fallbacks):
        return lower_bounds
    open_ = np.flatnonzero(np.isfinite(lower_bounds) & (sums.spot_usd_per_hour > 0))
    by_time = space.limits.goal == "time"
    rows = open_ if by_time else open_[_need_fallback(space, sums.take(open_))]
    if not len(rows):
        return lower_bounds
    fall, least = site.fallbacks, np.full(len(rows), np.inf)
    tier, waits_s = np.digitize(fall.at_once, TIERS), fall.law.reserve_s(space.limits.confidence)
    other_reserve_s = max_reserve_without_wait_s(space) if by_time else 0.0
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
        reserve_s = np.full(len(rows), other_reserve_s + float(waits_s[kind].max()))
        least = np.minimum(least, cluster_lower_bounds(space, own, tight, reserve_s))
    lower_bounds[rows] = np.maximum(lower_bounds[rows], least)
    return lower_bounds


def _need_fallback(space: Space, sums: ClusterSums) -> Bools:
    """Which clusters are too slow alone, or lose too much."""
    needy: Bools = ~enough_in_time(space, sums) | surely_over_overhead(space, sums)
    return needy


def drafts_and_bounds(space: Space, site: Site, plans: Plans) -> tuple[Reduced, Floats]:
    """Plans as inputs of the simulation, and their lower bounds; inf if not allowed."""
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


def helped(
    space: Space,
    site: Site,
    plans: Plans,
    drafts: Reduced,
    rows: Ints,
    choices: Ints | None = None,
) -> Helped:
    """Some of the plans with fallbacks; values that do not depend on the fallback are reused.

    With those worth trying, or with `choices`: shape (rows, choices), -1 none.
    """
    if choices is None:
        choices = fallback_choices(site.fallbacks, drafts.step_s[rows], space.steps_left)
    found, of = with_fallbacks(space, site, plans.take(rows), choices)
    of = rows[of]
    inputs, allowed = fallback_drafts_of(space, site, found.fallback, of, drafts)
    return Helped(found, of, inputs, _bounds(space, inputs, allowed))


def without_savings(space: Space, inputs: PathInputs) -> PathInputs:
    """Plans without the computation of what a fallback could save, which time goals do not need.

    So plans without a fallback are equal whether their site has fallbacks or not, and are simulated
    once.
    """
    if space.limits.goal != "time":
        return inputs
    never, even = np.full(len(inputs), np.inf), np.ones(len(inputs))
    return replace(inputs, best_fallback_usd_per_hour=never, best_fallback_speed=even)


def min_times(
    space: Space, drafts: PathInputs, simulated: Ints, own: PathInputs, of: Ints
) -> Floats:
    """Lower bound of the time of each plan with its fallback, from the plan without; seconds,
    (plans,).

    With D the deadline and f its speed, a fallback takes over at t with t + (W - P(t))/f + start >=
    D - reserve. P(t) lacks what is saved on the way, at most an interval τ, and before the first
    step W is a cautious prediction, which may be more by w. So a path that is handed over ends no
    earlier than D - reserve - max(τ, w)/f and than queue + start + W/max(f, 1), and any other path
    ends as without a fallback. Under an overhead limit a fallback may take over at any
    moment, so only the second bound holds. Elastic clusters train meanwhile and are not bounded.
    `simulated` are the `drafts` that were simulated; `of` tells which of these each plan was.
    """
    limits = space.limits
    any_moment = limits.max_overhead is not None
    due_s = 0.0 if any_moment or limits.deadline_s is None else limits.deadline_s
    alone = without_savings(space, with_best_interval(drafts.take(simulated)))
    ends = space.cache.outcomes(alone, space.limits.deadline_s)
    which = np.searchsorted(simulated, of)
    sample = random_numbers(space.cache.path_count, 8, space.seed)
    work_s = own.work_s[:, None] * time_factors(own.speed_sigma[:, None], sample.speed)
    early = np.maximum(alone.interval_s[which][:, None], own.cautious_work_s[:, None] - work_s)
    early /= np.maximum(own.fallback_speed, 1e-12)[:, None]
    latest = due_s * (1.0 - ROUNDING) - own.reserve_s[:, None] - early
    work_s /= np.maximum(own.fallback_speed, 1.0)[:, None]
    queue_s = wait_s(own.fallback_at_once[:, None], own.fallback_wait_s[:, None], sample.supply)
    handed_over = np.maximum(queue_s + own.fallback_start_s[:, None] + work_s, latest)
    least = trimmed_mean(np.minimum(ends.time_s[which], handed_over)) * (1.0 - ROUNDING)
    least -= goal_error(space, alone, ends)[which]
    return np.where(own.elastic_share > 0.0, 0.0, least)


def bounds_with_own_fallbacks(
    space: Space, site: Site, plans: Plans, drafts: Reduced, lower_bounds: Floats, cutoff: float
) -> Floats:
    """Lower bounds of plans that need a fallback, over those they may have."""
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
