"""Lower bounds of clusters of several types in any region: all regions of a provider merged.

A site with one entry per type and market, each as good as in the best region, has a cluster for
every mix of every region that is at least as cheap and fast. Sets of its entries are grown
(`entry_sets.py`) until none is below the best plan, which rules mixes out, or until so many were
examined: then the smallest bound of the waiting sets bounds every mix.
"""

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.optimize.bounds.site import SiteBounds, lines_of, site_bounds_of
from recommender.optimize.entry_sets import extended, first, min_of_set
from recommender.optimize.space import Entries, Site, Space

LOOK = 20  # sets after which those left are given up if at this pace they would not rule mixes out


def min_mix_goal(space: Space, sites: Sequence[Site], cutoff: float, sets: int) -> float:
    """Lower bound of any cluster of several entries in one region; the cutoff if none is below it.

    `sites` are those of the providers, each with the entries of all its regions. At most so many
    sets of entries are grown.
    """
    lines, queue, parts = lines_of(space), [], list[SiteBounds]()
    for site in sites:
        merged = of_all_regions(site)
        part = site_bounds_of(space, merged, lines, laws=site.entries)
        if part is None:
            continue
        narrow, alone = first(part, cutoff)
        queue += [(bound, len(parts), support) for bound, support in alone]
        parts.append(narrow)
    heapq.heapify(queue)
    before, least = 0.0, cutoff
    for done in range(sets):
        if not queue or queue[0][0] >= least:
            break
        if done % LOOK == 0:
            pace = (queue[0][0] - before) / LOOK
            if done and queue[0][0] + pace * (sets - done) < least:
                break
            before = queue[0][0]
        bound, place, support = heapq.heappop(queue)
        if len(support) > 1:
            least = min(least, max(bound, min_of_set(parts[place], support, cutoff)))
        for larger_bound, larger in extended(parts[place], support, least):
            heapq.heappush(queue, (larger_bound, place, larger))
    return min(least, queue[0][0]) if queue else least


def of_all_regions(site: Site) -> Site:
    """A site with one entry per type and market, each as good as in the best region."""
    key = site.entries.kind * 2 + site.entries.spot
    rows = np.sort(np.unique(key, return_index=True)[1])
    groups = [np.flatnonzero(key == key[row]) for row in rows]
    use = np.array([_least(row, groups) for row in site.quota_use]).reshape(-1, len(rows))
    return replace(site, entries=_best_of(site.entries, rows, groups), quota_use=use)


def _best_of(e: Entries, rows: Ints, groups: list[Ints]) -> Entries:
    """The best of each group by what bounds read of entries."""
    return replace(
        e.take(rows),
        cap=_most(e.cap, groups).astype(np.int64),
        usd_per_hour=_least(e.usd_per_hour, groups),
        max_usd_per_hour=_least(e.max_usd_per_hour, groups),
        fixed_usd=_least(e.fixed_usd, groups),
        boot_s=_least(e.boot_s, groups),
        # For budgets and free hours: short runs in a long free time, most interruptions together.
        run_mean_s=_least(e.run_mean_s, groups),
        co_interruption=_least(e.co_interruption, groups),
        availability_logit=_most(e.availability_logit, groups),
        availability_slope=_least(e.availability_slope, groups),
        free_s=_most(e.free_s, groups),
        # The spread under which least is counted.
        price_sigma=_most(e.price_sigma, groups),
    )


def _least(values: Floats, groups: list[Ints]) -> Floats:
    return np.array([values[group].min() for group in groups], dtype=np.float64)


def _most(values: Floats | Ints, groups: list[Ints]) -> Floats:
    return np.array([values[group].max() for group in groups], dtype=np.float64)
