"""Clusters and plans by number: a site, entries of it, how many machines, path and fallback."""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import Plans


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines of one or several entries of a site."""

    site: int
    entries: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan: a site, counts of some of its entries, checkpoint path and fallback."""

    site: int
    entries: tuple[int, ...]
    counts: tuple[int, ...]
    checkpoint_path: int
    fallback: int  # row of the site's fallbacks; -1: none
    # By the paths of a search, or those printed; 0 where it was not simulated.
    goal_value: float = 0.0
    cost_usd: float = 0.0
    time_s: float = 0.0
    chance: float = 0.0
    printed: bool = False  # whether these are figures of the printed paths
    # By how much the fallback takes over before the last moment (`overhead_limit.py`).
    early_s: float = 0.0

    @property
    def cluster(self) -> Cluster:
        """Its machines."""
        return Cluster(self.site, self.entries, self.counts)


def ranking_key(candidate: Candidate) -> tuple[float, int, int, float, tuple[int, ...]]:
    """Sort key: least goal first; ties go to fewer machines, then fewer kinds, then the cheaper.

    If time is the goal, the same machines take as long in every region.
    """
    c = candidate
    return (c.goal_value, sum(c.counts), len(c.entries), c.cost_usd, c.entries)


def counts_table(clusters: Sequence[Cluster | Candidate]) -> tuple[Ints, Ints]:
    """The entries that clusters of one site use, and counts of shape (clusters, entries)."""
    rows = sorted({entry for cluster in clusters for entry in cluster.entries})
    place = {entry: column for column, entry in enumerate(rows)}
    counts = np.zeros((len(clusters), len(rows)), dtype=np.int64)
    for line, cluster in enumerate(clusters):
        for entry, count in zip(cluster.entries, cluster.counts, strict=True):
            counts[line, place[entry]] = count
    return np.array(rows, dtype=np.int64), counts


def plans_of(candidates: Sequence[Candidate]) -> tuple[Ints, Plans]:
    """The entries that candidates of one site use, and the candidates as plans of these."""
    entries, counts = counts_table(candidates)
    paths, fallbacks = np.array([(c.checkpoint_path, c.fallback) for c in candidates]).T
    return entries, Plans(counts, paths, fallbacks)
