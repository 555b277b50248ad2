"""Expands clusters into plans, and simulates these while they could still be the best.

Simulations are the quicker per plan the more plans they have, so those of all sites go together.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

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
from recommender.optimize.bounds.overhead import bound_gangs, bounds_within_overhead
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
from recommender.optimize.fallback_choices import faster_choices, slower_choices
from recommender.optimize.last_moment import ROUGHLY
from recommender.optimize.overhead_limit import Switched, switched_in_time
from recommender.optimize.search_state import Candidate, Screened, SearchState
from recommender.optimize.space import Site, Space
from recommender.risk.path_inputs import PathInputs

OVERRUN = 2  # no batch starts beyond so many times the plans allowed
NEAR = 1.1  # times the cutoff: clusters that a table may show get their fallbacks as well, last
PLANS_AT_ONCE = 32  # plans simulated before the cutoff is applied again


@dataclass(frozen=True, slots=True)
class SiteClusters:
    """Clusters of some entries of one site."""

    index: int  # of the site
    rows: Ints  # the entries
    counts: Ints  # (clusters, rows)


@dataclass(frozen=True, slots=True)
class _SitePlans:
    """The plans of one site's clusters without a fallback; shape (plans,)."""

    index: int
    rows: Ints
    site: Site  # with these entries only
    plans: Plans
    drafts: Reduced
    lower_bounds: Floats

    def with_fallbacks(self, space: Space, rows: Ints) -> Helped:
        """Some of the plans with each fallback worth trying."""
        return helped(space, self.site, self.plans, self.drafts, rows)

    def with_slower(self, space: Space, found: Helped, over_overhead: Bools) -> Helped:
        """Plans over the overhead with slower fallbacks: less work is lost while those start."""
        plans, fall, drafts = self.plans, self.site.fallbacks, self.drafts
        which = np.flatnonzero(np.bincount(found.of[over_overhead]))
        fastest_s = np.full(len(plans), np.inf)
        np.minimum.at(
            fastest_s, found.of[over_overhead], fall.step_s[found.plans.fallback[over_overhead]]
        )
        tried = self._tried(found)[which]
        choices = slower_choices(fall, drafts.step_s[which], fastest_s[which], tried)
        return helped(space, self.site, plans, drafts, which, choices)

    def with_faster(self, space: Space, found: Helped, late: Floats) -> Helped:
        """Plans that are too often late, with fallbacks a little faster than the surest of them."""
        plans, fall, drafts = self.plans, self.site.fallbacks, self.drafts
        chance, late_s = np.zeros(len(plans)), np.full(len(plans), np.inf)
        np.maximum.at(chance, found.of, late)
        surest = (late > 0.0) & (late == chance[found.of])
        np.minimum.at(late_s, found.of[surest], fall.step_s[found.plans.fallback[surest]])
        which = np.flatnonzero(chance)
        choices = faster_choices(fall, late_s[which], self._tried(found)[which])
        return helped(space, self.site, plans, drafts, which, choices)

    def _tried(self, found: Helped) -> Bools:
        tried = np.zeros((len(self.plans), len(self.site.fallbacks)), dtype=bool)
        tried[found.of, found.plans.fallback] = True
        return tried


@dataclass(frozen=True, slots=True)
class _Batch:
    """Plans of some sites that are simulated together, one site's after the other's; (plans,)."""

    sites: tuple[_SitePlans, ...]
    plans: tuple[Plans, ...]  # of each site
    begin: Ints  # the first of each site, and their number
    drafts: PathInputs
    lower_bounds: Floats
    of: Ints | None = None  # the plan without a fallback that each was

    @staticmethod
    def joined(
        sites: Sequence[_SitePlans],
        plans: Sequence[Plans],
        drafts: Sequence[PathInputs],
        lower_bounds: Sequence[Floats],
        of: Ints | None = None,
    ) -> "_Batch":
        """The plans of each site."""
        begin = np.cumsum([0, *map(len, plans)])
        inputs = drafts[0] if len(drafts) == 1 else PathInputs.joined(drafts)
        bounds = np.concatenate(lower_bounds)
        return _Batch(tuple(sites), tuple(plans), begin, inputs, bounds, of)

    def by_site(self, rows: Ints) -> list[tuple[int, Ints, Ints]]:
        """The sites of some plans: the number, which of `rows` it has, and their places there."""
        place = np.searchsorted(self.begin, rows, side="right") - 1
        found = [(number, np.flatnonzero(place == number)) for number in range(len(self.sites))]
        return [
            (number, mine, rows[mine] - self.begin[number]) for number, mine in found if len(mine)
        ]


@dataclass(frozen=True, slots=True)
class NearPlans:
    """Plans of a site that no fallback makes the best, but that a table may show with one."""

    site: _SitePlans
    rows: Ints  # of its plans without a fallback
    bounds: Floats  # their least cost with any


def expand_clusters(space: Space, clusters: Sequence[SiteClusters], state: SearchState) -> None:
    """Expand clusters into plans and simulate every one that could be the best or near it."""
    expand_near(space, expand_better(space, clusters, state), state)


def expand_better(
    space: Space, clusters: Sequence[SiteClusters], state: SearchState
) -> list[NearPlans]:
    """Expand clusters into plans and simulate every one that could still be the best.

    Plans without a fallback come first: they also bound what any fallback can save, so few of the
    plans with one have to be simulated. Returns those that may be near the best: `expand_near` is
    to simulate them, which is quickest when the best plan is known.
    """
    sites = [_alone(space, each, state.cutoff) for each in clusters]
    alone = _joined(sites)
    bounds = _simulate_by_bound(space, alone, state).bounds
    if space.limits.deadline_s is None:
        return []
    better = bounds < state.cutoff
    _try_fallbacks(space, alone, np.flatnonzero(better), bounds, state)
    near = np.flatnonzero(~better & (bounds < NEAR * state.cutoff))
    return [
        NearPlans(sites[number], places, bounds[near[mine]])
        for number, mine, places in alone.by_site(near)
    ]


def expand_near(space: Space, near: Sequence[NearPlans], state: SearchState) -> None:
    """Simulate plans with fallbacks that a table may show."""
    some = [each for each in near if (each.bounds < NEAR * state.cutoff).any()]
    if not some or state.stopped:
        return
    alone = _joined([each.site for each in some])
    bounds = np.full(len(alone.lower_bounds), np.inf)
    for begin, each in zip(alone.begin.tolist(), some, strict=False):
        bounds[begin + each.rows] = each.bounds / NEAR  # simulated up to so much above the cutoff
    open_bound = state.open_bound
    _try_fallbacks(space, alone, np.flatnonzero(bounds < state.cutoff), bounds, state)
    state.open_bound = open_bound  # none of them is the best, with any fallback


def _joined(sites: Sequence[_SitePlans]) -> _Batch:
    """The plans of some sites without fallbacks."""
    return _Batch.joined(
        sites,
        [each.plans for each in sites],
        [each.drafts.inputs for each in sites],
        [each.lower_bounds for each in sites],
    )


def _try_fallbacks(
    space: Space, alone: _Batch, promising: Ints, bounds: Floats, state: SearchState
) -> None:
    """Simulate promising plans with fallbacks; `bounds` of the least cost with any: (alone,)."""
    found = [
        (number, alone.sites[number].with_fallbacks(space, places))
        for number, _, places in alone.by_site(promising)
        if len(alone.sites[number].site.fallbacks)
    ]
    misses = _simulate_helped(space, alone, promising, found, bounds, state)
    others = [
        (number, alone.sites[number].with_slower(space, each, over))
        for (number, each), (over, _) in zip(found, misses, strict=True)
        if over.any()
    ] + [
        (number, alone.sites[number].with_faster(space, each, late))
        for (number, each), (_, late) in zip(found, misses, strict=True)
        if late.any()
    ]
    _simulate_helped(space, alone, promising, others, bounds, state)


def _alone(space: Space, clusters: SiteClusters, cutoff: float) -> _SitePlans:
    """The plans of clusters without a fallback, and their lower bounds."""
    site = space.sites[clusters.index].only(clusters.rows)
    plans = plans_without_fallback(space, site, clusters.counts)
    drafts, lower_bounds = drafts_and_bounds(space, site, plans)
    if space.limits.deadline_s is not None and len(site.fallbacks):
        lower_bounds = bounds_with_own_fallbacks(space, site, plans, drafts, lower_bounds, cutoff)
    return _SitePlans(clusters.index, clusters.rows, site, plans, drafts, lower_bounds)


def _simulate_helped(
    space: Space,
    alone: _Batch,
    promising: Ints,
    found: Sequence[tuple[int, Helped]],
    bounds: Floats,
    state: SearchState,
) -> list[tuple[Bools, Floats]]:
    """Simulate plans with fallbacks; which exceed the overhead, and the chances of late ones.

    `found` are those of the `promising` plans of some sites, by the number of the site; `bounds`
    the least cost of each plan with any fallback.
    """
    if not found:
        return []
    each = [one for _, one in found]
    of = np.concatenate([one.of + alone.begin[number] for number, one in found])
    batch = _Batch.joined(
        [alone.sites[number] for number, _ in found],
        [one.plans for one in each],
        [one.drafts.without_fallback_bound() for one in each],
        [one.lower_bounds for one in each],
        of,
    )
    least, over_overhead = np.maximum(batch.lower_bounds, bounds[of]), np.zeros(len(of), dtype=bool)
    if space.limits.goal == "time":  # of which `bounds` say nothing
        times = min_times(space, alone.drafts, promising, batch.drafts, of)
        least = np.maximum(batch.lower_bounds, times)
    elif space.limits.max_overhead is not None:
        open_ = np.flatnonzero(least < state.cutoff)
        own = batch.drafts.take(open_)
        within = bounds_within_overhead(space, alone.drafts, own, of[open_])
        least, over_overhead[open_] = least.copy(), within >= state.cutoff
        least[open_] = np.maximum(least[open_], within)
    run = _simulate_by_bound(space, replace(batch, lower_bounds=least), state)
    over_overhead |= run.over_overhead
    sites = pairwise(batch.begin.tolist())
    return [(over_overhead[begin:end], run.late[begin:end]) for begin, end in sites]


@dataclass(frozen=True, slots=True)
class _Simulated:
    """What a simulation of plans tells besides the candidates; shape (plans,)."""

    bounds: Floats  # the least cost with any fallback; inf where a plan was not simulated
    over_overhead: Bools  # whether the overhead alone is too high at the last moment for a fallback
    late: Floats  # the chance of plans for which alone it is too low to be near the best; or 0


def _simulate_by_bound(space: Space, batch: _Batch, state: SearchState) -> _Simulated:
    """Simulate plans that may be the best, least bound first.

    Those of a cluster with several fallbacks follow each other: they share its runs.
    """
    lower_bounds = batch.lower_bounds
    count = len(lower_bounds)
    bounds, late = np.full(count, np.inf), np.zeros(count)
    over_overhead = np.zeros(count, dtype=bool)
    rest = _by_bound(lower_bounds, batch.of)
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
        inputs = with_best_interval(batch.drafts.take(keep))
        allowed = ~surely_infeasible(space, inputs)
        inputs = without_savings(space, inputs)
        if batch.of is None:
            bound_gangs(space, inputs.take(allowed))
        values = values_of(space, inputs, allowed)
        state.count_plans(len(keep))
        bounds[keep] = (
            values.usd_with_any_fallback if space.limits.goal != "time" else lower_bounds[keep]
        )
        found = switched_in_time(space, inputs, values, state.open_below, ROUGHLY)
        over_overhead[keep] = found.over_overhead
        late[keep] = _late(space, values, state)
        admit(space, _screened(space, batch, keep, inputs, found, state), state)
    return _Simulated(bounds, over_overhead, late)


def _late(space: Space, values: Values, state: SearchState) -> Floats:
    """The chances of plans that would be near the best if these were high enough; of others 0.

    Under a second limit none: chances may be those of the budget, and of 38 questions with an
    overhead limit and 14 with a budget none got a better plan, some larger gaps (2026-11-26).
    """
    if space.limits.max_overhead is not None or space.limits.budget_usd is not None:
        return np.zeros(len(values.chance))
    goal_value = values.time_s if space.limits.goal == "time" else values.cost_usd
    late = (values.chance < space.limits.confidence) & (goal_value < NEAR * state.cutoff)
    return np.where(late, values.chance, 0.0)


def _by_bound(lower_bounds: Floats, of: Ints | None) -> Ints:
    """The order in which plans are simulated; `of` is the cluster of each, if they share them."""
    if of is None or not len(of):
        return np.argsort(lower_bounds, kind="stable")
    least = np.full(int(of.max()) + 1, np.inf)
    np.minimum.at(least, of, lower_bounds)
    return np.lexsort((lower_bounds, of, least[of]))


def _screened(
    space: Space,
    batch: _Batch,
    keep: Ints,
    inputs: PathInputs,
    found: Switched,
    state: SearchState,
) -> list[Screened]:
    """The plans that may meet the limits, but those that their own fallback surely beats."""
    screened = []
    for number, mine, places in batch.by_site(keep):
        site, plans = batch.sites[number], batch.plans[number].take(places)
        values = found.values.take(mine)
        meets, beaten = _not_dominated(space, site.index, plans, values, state)
        screened += [
            Screened(
                _candidate(site, plans, int(i), values, float(found.early_s[mine[i]])),
                inputs,
                int(mine[i]),
                float(values.min_goal[i]),
                bool(values.meets_limits[i]),
                bool(beaten[i]),
            )
            for i in np.flatnonzero(meets)
        ]
    return screened


def _not_dominated(
    space: Space, index: int, plans: Plans, values: Values, state: SearchState
) -> tuple[Bools, Bools]:
    """Which plans of a site may meet the limits, unless surely beaten, and which seem beaten."""
    meets = np.isfinite(values.goal_value)
    beaten = np.zeros(len(plans), dtype=bool)
    if (meets & may_be_dominated(space, space.sites[index], plans, values)).any():
        if index not in state.fallback_costs:
            state.fallback_costs[index] = fallback_costs(space, space.sites[index])
        costs = state.fallback_costs[index]
        beaten = dominated(plans, values, costs)
        meets &= ~dominated(plans, _less_error(space, values), costs, certainly=True)
    return meets, beaten


def _less_error(space: Space, values: Values) -> Values:
    """The values of plans with a goal as low as the error of these paths may make it."""
    if space.limits.goal == "time":
        return replace(values, time_s=values.min_goal)
    return replace(values, cost_usd=values.min_goal)


def _candidate(site: _SitePlans, plans: Plans, i: int, values: Values, early_s: float) -> Candidate:
    used = np.flatnonzero(plans.counts[i])
    return Candidate(
        site=site.index,
        entries=tuple(int(site.rows[k]) for k in used),
        counts=tuple(int(plans.counts[i, k]) for k in used),
        checkpoint_path=int(plans.checkpoint_path[i]),
        fallback=int(plans.fallback[i]),
        goal_value=float(values.goal_value[i]),
        cost_usd=float(values.cost_usd[i]),
        time_s=float(values.time_s[i]),
        chance=float(values.chance[i]),
        early_s=early_s,
    )
