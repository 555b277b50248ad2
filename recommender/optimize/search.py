"""The exact search: single types first, then sets of entries, each pruned by a proven lower bound.

1. Every cluster of one entry gets a lower bound. In the order of the bounds, its plans are
   simulated until the next bound is no better than the incumbent.
2. Sets of entries (supports) of one site grow while their bound beats the incumbent; the clusters
   of a surviving set are enumerated and evaluated in the same way.

If checkpoints may go to an anchor only, no cluster of one entry has a checkpoint path, and the
general search would find one on-demand machine with spot machines of its type late. These mixes are
few, so all of them come first (`search_anchored`). The search stops early after `most` plans and
then reports the remaining gap.
"""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.cluster import ClusterFigures, sums_of
from recommender.optimize.bounds.fallback import bounds_by_queue
from recommender.optimize.columns import Cluster, counts_table
from recommender.optimize.confirm import confirm_open
from recommender.optimize.expand import (
    NearPlans,
    SiteClusters,
    expand_better,
    expand_clusters,
    expand_near,
)
from recommender.optimize.search_state import SearchState
from recommender.optimize.space import (
    ANCHOR,
    OBJECT_STORE,
    Masks,
    Site,
    Space,
    numbers_allowed,
    single_steps,
    within_quota,
)
from recommender.performance.clusters import spread_at
from recommender.performance.parameter_server import cluster_spread
from recommender.risk.laws import gang_hazard
from recommender.risk.on_demand_wait import OnDemandLaw

if TYPE_CHECKING:
    from recommender.optimize.bounds.site import SiteBounds
    from recommender.optimize.mixed_sites import MixedSites

RANKED_AT_ONCE = 12  # clusters in a given order expanded at once
MAX_QUEUED = 2_000_000  # sets of entries that wait, about 500 MB; then the worse half is given up
CLUSTERS_AT_ONCE = 64  # clusters expanded into plans at once
PLANS_EACH = 3  # plans of a cluster, about: where few are allowed, fewer clusters at once
LEAVES = 256  # clusters of several entries expanded at once
LOOKED_AT = 1000  # so many clusters to look at are as much work as one more set of entries
TIGHTEN = 200  # plans simulated before lower bounds from tables, slow to make, are worth it

QueuedSet = tuple[float, int, tuple[int, ...]]  # a bound, a site, and entries of it; (): the site


def anchors_only(space: Space) -> bool:
    """Whether spot machines may save to an anchor only."""
    return ANCHOR in space.checkpoint_paths and OBJECT_STORE not in space.checkpoint_paths


def search_anchored(space: Space, state: SearchState, first: int = 0) -> None:
    """Simulate one on-demand and n spot machines of a type, for the sites from `first` on."""
    from recommender.optimize.entry_sets import counts_lower_bounds  # most answers need no mixes

    numbers = [n for n, site in enumerate(space.sites) if n >= first and site.region]
    counts = {n: _anchored(space.sites[n], space.limits.max_machines) for n in numbers}
    lower_bounds = [counts_lower_bounds(space, space.sites[n], counts[n]) for n in numbers]
    bound = np.concatenate([np.empty(0), *lower_bounds])
    index = np.repeat(numbers, [len(each) for each in lower_bounds])
    row = np.concatenate([np.empty(0, dtype=np.int64), *map(np.arange, map(len, lower_bounds))])
    order = np.argsort(bound, kind="stable")
    for start in range(0, len(order), LEAVES):
        some = order[start : start + LEAVES]
        some = some[bound[some] < state.cutoff]
        if not len(some) or state.exhausted:
            break
        state.count_supports(len(some) // RANKED_AT_ONCE)
        rows = {n: row[some[index[some] == n]] for n in distinct(index[some])}
        sites = [_of_entries_used(n, counts[n][mine]) for n, mine in rows.items()]
        expand_clusters(space, sites, state)


def _anchored(site: Site, most: int) -> Ints:
    """One on-demand machine and 1 to `most` - 1 of an entry on spot; (clusters, entries)."""
    e, n = site.entries, np.arange(1, most)
    spot, on_demand = np.nonzero(e.spot[:, None] & ~e.spot & (e.kind[:, None] == e.kind))
    counts = np.zeros((len(spot) * len(n), len(e)), dtype=np.int64)
    cluster = np.arange(len(counts))
    counts[cluster, np.repeat(spot, len(n))] = np.tile(n, len(spot))
    counts[cluster, np.repeat(on_demand, len(n))] = 1
    return counts[within_quota(site, counts)]


def _of_entries_used(index: int, counts: Ints) -> SiteClusters:
    """Clusters of a site, with the entries that any of them uses."""
    used = np.flatnonzero(counts.any(axis=0))
    return SiteClusters(index, used, counts[:, used])


def search(
    space: Space, slack: float = 0.0, most: int = 4000, masks: Masks | None = None
) -> SearchState:
    """Find the plan with the least goal, and those within `slack` of it.

    `masks` restricts the entries of each site, for "the best plan that ..." questions.
    """
    state = SearchState(slack=slack, max_plans=most)
    search_singles(space, state, masks)
    if space.mix:
        search_mixes(space, state)
    return state


def search_mixes(
    space: Space,
    state: SearchState,
    first: int = 0,
    quick: bool = False,
    lower_bounds: Sequence[float] = (),
) -> None:
    """Search clusters of several entries of one site, for the sites from `first` on.

    Sets of entries of all sites share one queue, best bound first; a site with too many clusters to
    list is searched by boxes of counts. With `quick` bounds (`billed_share_of`) a search under a
    budget that ends with a gap takes half as long. Sites of which `lower_bounds` are known, one for
    each from `first` on, are looked at when their turn comes.
    """
    # Most answers need no mixes.
    from recommender.optimize.branch_and_bound import boxes_apply, search_boxes
    from recommender.optimize.mixed_sites import MixedSites

    sites = list(enumerate(space.sites))[first:]
    if not any(site.region for _, site in sites):
        return
    if anchors_only(space):
        search_anchored(space, state, first)
    state.explore_from(0.0)
    queue = list[QueuedSet]()
    known = lower_bounds or [0.0] * len(sites)
    for (index, site), bound in zip(sites, known, strict=True):
        if site.region and boxes_apply(space, site):
            search_boxes(space, index, state)
        elif site.region:
            queue.append((bound, index, ()))
    heapq.heapify(queue)
    _search_sets(space, MixedSites(space, quick), queue, state)
    confirm_open(space, state)


def _search_sets(
    space: Space, mixed: "MixedSites", queue: list[QueuedSet], state: SearchState
) -> None:
    """Search the sets of a queue and those they grow to, while one may be better than the best."""
    while queue and queue[0][0] < state.cutoff:
        state.explore_from(queue[0][0])
        if state.exhausted and (state.stopped or queue[0][2]):
            state.leave_open(state.bound)
            return
        least, index, support = heapq.heappop(queue)
        if support:
            larger = _search_set(space, index, mixed.bounds[index], support, state)
        else:
            larger = [(max(bound, least), one) for bound, one in mixed.opened(index, state.cutoff)]
        for bound, entries in larger:
            heapq.heappush(queue, (bound, index, entries))
        if len(queue) > MAX_QUEUED:
            queue.sort()  # which is a heap as well
            state.leave_open(queue[MAX_QUEUED // 2][0])
            del queue[MAX_QUEUED // 2 :]


def _search_set(
    space: Space, index: int, part: "SiteBounds", support: tuple[int, ...], state: SearchState
) -> Iterable[tuple[float, tuple[int, ...]]]:
    """Evaluate the clusters of a set of entries; return the larger sets with their bounds."""
    # Most answers need no mixes.
    from recommender.optimize.entry_sets import clusters_of_set, extended, leaves

    state.count_supports(1)
    if clusters_of_set(part, support) > LOOKED_AT * state.supports_left:
        state.leave_open(state.bound)  # as much work as all that is left
        return ()
    if len(support) > 1:
        blocks, looked_at = leaves(part, support, state.cutoff)
        state.count_supports(looked_at // LOOKED_AT)
        _expand_leaves(space, index, part.order[list(support)], blocks, state)
    return extended(part, support, state.cutoff)


def _expand_leaves(
    space: Space, index: int, rows: Ints, blocks: Sequence[Ints], state: SearchState
) -> None:
    """Evaluate the clusters of a set of entries; many of them count as several sets."""
    some = [part for block in blocks for part in np.array_split(block, -(-len(block) // LEAVES))]
    for number, counts in enumerate(some):
        if number and state.exhausted:
            state.leave_open(state.bound)
            return
        state.count_supports(int(number > 0))
        expand_clusters(space, [SiteClusters(index, rows, counts)], state)


def simulate_ranked(space: Space, clusters: Sequence[Cluster], state: SearchState) -> None:
    """Simulate the plans of the clusters that the master program ranks first."""
    for start in range(0, len(clusters), RANKED_AT_ONCE):
        some = clusters[start : start + RANKED_AT_ONCE]
        sites = sorted({cluster.site for cluster in some})
        mine = [[cluster for cluster in some if cluster.site == index] for index in sites]
        tables = zip(sites, map(counts_table, mine), strict=True)
        expand_clusters(space, [SiteClusters(index, *table) for index, table in tables], state)


def search_singles(
    space: Space, state: SearchState, masks: Masks | None = None, queue: "SingleQueue | None" = None
) -> None:
    """Search clusters of one entry by ascending lower bound; `queue` if already made."""
    if queue is None:
        step_s = single_steps(space.job, space.columns, space.limits.max_machines)
        queue = single_queue(space, step_s)
    queue = queue if masks is None else queue.masked(masks)
    most = max(1, min(CLUSTERS_AT_ONCE, state.max_plans // PLANS_EACH))
    at, clusters, near = 0, most, list[NearPlans]()
    while at < len(queue.bound) and queue.bound[at] < state.cutoff and not state.exhausted:
        state.explore_from(float(queue.bound[at]))
        stop = min(at + clusters, int(np.searchsorted(queue.bound, state.cutoff)))
        done = state.plans_evaluated
        near += _expand_singles(space, queue, at, stop, state)
        # Where bounds rule all of them out, more at once are as exact and quicker.
        clusters = most if state.plans_evaluated > done else 2 * clusters
        at = stop
    expand_near(space, near, state)
    confirm_open(space, state)
    if at < len(queue.bound):
        state.leave_open(float(queue.bound[at]))


@dataclass(frozen=True, slots=True)
class SingleQueue:
    """Clusters of one entry in the order of their lower bounds; shape (clusters,)."""

    bound: Floats
    site: Ints
    entry: Ints
    machines: Ints
    step_s: Floats  # by (kind, machines) instead

    def without(self, done: Collection[tuple[int, int, int]]) -> "SingleQueue":
        """The clusters without some, each given by site, entry and machines."""
        if not done:
            return self
        most = int(self.machines.max(initial=0)) + 1
        wide = int(self.entry.max(initial=0)) + 1
        key = (self.site * wide + self.entry) * most + self.machines
        taken = np.array([(site * wide + entry) * most + n for site, entry, n in done])
        return self._kept(~np.isin(key, taken))

    def up_to(self, most: int) -> "SingleQueue":
        """The clusters of at most so many machines."""
        return self._kept(self.machines <= most)

    def masked(self, masks: Masks) -> "SingleQueue":
        """The clusters of some entries only."""
        keep = np.zeros(len(self.bound), dtype=bool)
        for index, mask in enumerate(masks):
            here = self.site == index
            keep[here] = mask[self.entry[here]]
        return self._kept(keep)

    def _kept(self, keep: Bools) -> "SingleQueue":
        return replace(
            self,
            bound=self.bound[keep],
            site=self.site[keep],
            entry=self.entry[keep],
            machines=self.machines[keep],
        )


def single_queue(space: Space, step_s: Floats) -> SingleQueue:
    """Every cluster of one entry, with its quick lower bound."""
    parts = []
    for index, site in enumerate(space.sites):
        if not site.singles or not len(site.entries):
            continue
        lower_bounds = single_lower_bounds(space, site, step_s)
        entry, n = np.nonzero(np.isfinite(lower_bounds))
        usd = site.entries.usd_per_hour[entry] * (n + 1)
        parts.append((lower_bounds[entry, n], usd, np.full(len(entry), index), entry, n + 1))
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return SingleQueue(np.zeros(0), none, none, none, step_s)
    lower_bounds, usd, sites, entries, machines = (
        np.concatenate(c) for c in zip(*parts, strict=True)
    )
    # Of equal lower bounds the cheaper; the sort is stable, so then by site, entry and machines.
    order = np.lexsort((usd, lower_bounds))
    return SingleQueue(lower_bounds[order], sites[order], entries[order], machines[order], step_s)


def _expand_singles(
    space: Space, queue: SingleQueue, at: int, stop: int, state: SearchState
) -> list[NearPlans]:
    """Evaluate the next clusters, and return plans that may be near the best."""
    clusters = []
    for index in sorted(set(queue.site[at:stop].tolist())):
        mine = at + np.flatnonzero(queue.site[at:stop] == index)
        if state.plans_evaluated >= TIGHTEN:
            where = (queue.entry[mine], queue.machines[mine])
            tight = _single_bounds(space, space.sites[index], queue.step_s, *where, tight=True)
            mine = mine[tight < state.cutoff]
            if not len(mine):
                continue
        rows, column = np.unique(queue.entry[mine], return_inverse=True)
        counts = np.zeros((len(mine), len(rows)), dtype=np.int64)
        counts[np.arange(len(mine)), column] = queue.machines[mine]
        clusters.append(SiteClusters(index, rows, counts))
    return expand_better(space, clusters, state) if clusters else []


def single_lower_bounds(space: Space, site: Site, step_s: Floats) -> Floats:
    """Quick lower bound of every (entry, number of machines) of a site; inf if not allowed.

    Smallest overheads need a simulation, so they are computed when a cluster's turn comes; here any
    overhead is allowed.
    """
    if space.limits.max_overhead is not None:
        space = replace(space, limits=replace(space.limits, max_overhead=np.inf))
    allowed = numbers_allowed(space, site, step_s)
    entry, machines = np.nonzero(allowed)
    lower_bounds = np.full(allowed.shape, np.inf)
    lower_bounds[entry, machines] = _single_bounds(
        space, site, step_s, entry, machines + 1, tight=False
    )
    return lower_bounds


def _single_bounds(
    space: Space, site: Site, step_s: Floats, entry: Ints, machines: Ints, tight: bool
) -> Floats:
    """Lower bounds of clusters of one entry; `entry` and `machines` have shape (clusters,)."""
    e = site.entries
    kind, spot = e.kind[entry], e.spot[entry]
    price = e.usd_per_hour[entry] * machines
    gang = gang_hazard(machines, e.co_interruption[entry])
    step = step_s[kind, machines - 1]
    one = OnDemandLaw(e.at_once[entry], e.wait_s[entry])
    queue = one.of_gang(machines, e.availability_slope[entry]).of_list(e.zone_count[entry])
    figures = ClusterFigures(
        step_s=step,
        speed_sigma=_spread(space, site, entry, machines),
        base_usd_per_hour=np.where(spot, 0.0, price),
        spot_usd_per_hour=np.where(spot, price, 0.0),
        spot_price_sigma=np.where(spot, e.price_sigma[entry], 0.0),
        fixed_usd=e.fixed_usd[entry],
        boot_s=e.boot_s[entry],
        run_mean_s=e.run_mean_s[entry] / gang,
        run_sigma=e.run_sigma[entry],
        free_s=e.free_s[entry],
        elastic_share=np.zeros_like(step),
        at_once=np.where(spot, 1.0, queue.at_once),
        wait_s=np.where(spot, 0.0, queue.wait_s),
    )
    return bounds_by_queue(space, site, sums_of(space, site, figures), step, tight)


def _spread(space: Space, site: Site, entry: Ints, machines: Ints) -> Floats:
    """The spread of clusters of one entry."""
    kind, c = site.entries.kind[entry], space.columns
    if c.service_sigma is None:
        return spread_at(c, kind, machines)
    counts = np.zeros((len(entry), len(site.entries)), dtype=np.int64)
    counts[np.arange(len(entry)), entry] = machines
    fleet, found = space.timed(site, counts)
    return cluster_spread(space.job, c, fleet, found, site.entries.kind, counts)
