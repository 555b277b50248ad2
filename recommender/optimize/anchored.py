"""Clusters of spot machines with one on-demand machine of their type: the simplest anchors.

Where checkpoints may go to an anchor only, no cluster of one entry has anywhere to save, and the
general search for mixes meets these late. They are few, so all of them get a floor first.
"""

import numpy as np
from numpy.typing import NDArray

from recommender.optimize.found import Found, consider
from recommender.optimize.space import ANCHOR, OBJECT_STORE, Site, Space, within_quota
from recommender.optimize.supports import counts_floor

Ints = NDArray[np.int64]
BATCH = 8  # clusters of one pair followed at once


def anchors_only(space: Space) -> bool:
    """Whether an anchor is the only place that spot machines may save to."""
    return ANCHOR in space.paths and OBJECT_STORE not in space.paths


def search_anchored(space: Space, found: Found, first: int = 0) -> None:
    """Follow one on-demand and n spot machines of a type, for the sites from `first` on."""
    queue = []
    for index, site in enumerate(space.sites[first:], start=first):
        for pair in _pairs(site) if site.region else ():
            part, n = site.only(pair), np.arange(1, space.limits.max_machines)
            counts = np.stack([np.ones_like(n), n], axis=1)
            counts = counts[within_quota(part, counts)]
            floors = counts_floor(space, part, counts)
            for start in range(0, len(counts), BATCH):
                some = slice(start, start + BATCH)
                queue.append((float(floors[some].min()), index, pair, counts[some]))
    for floor, index, pair, counts in sorted(queue, key=lambda item: item[:2]):
        if floor >= found.bar or found.full:
            break
        consider(space, index, pair, counts, found)


def _pairs(site: Site) -> list[Ints]:
    """An on-demand entry and a spot entry of each type of a site."""
    e = site.entries
    steady, spot = np.flatnonzero(~e.spot), np.flatnonzero(e.spot)
    return [np.array([i, j]) for i in steady for j in spot if e.kind[i] == e.kind[j]]
