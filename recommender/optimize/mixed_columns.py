"""Columns that mix markets: an on-demand core with spot machines around it, in one region.

An elastic job goes on with its core while the spot machines are away. The core is paid all the
time, at three to six times the price of spot, so such a mix pays only where waiting or a late
fallback costs more. A few of them around the best spot clusters stand in the master program, which
says how many of each would do; their estimates decide whether one is simulated.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from recommender.arrays import Ints
from recommender.optimize.columns import Cluster, Columns
from recommender.optimize.space import Site, Space, within_quota

SPOT_TYPES = 3  # types of the best spot clusters around which mixes are tried
CORES = (1, 2, 4)  # on-demand machines of a core
SPOT_SHARES = (0.5, 1.0, 1.5)  # of the machines of the best spot cluster


def mixed_clusters(space: Space, clusters: Sequence[Cluster], columns: Columns) -> list[Cluster]:
    """Mixes around the best spot clusters; none where the job is a gang."""
    if space.job.elastic is False or space.limits.max_machines < 2:
        return []
    found: list[Cluster] = []
    for best in _best_spot(space, clusters, columns):
        site = space.sites[best.site]
        spot = _in_one_region(site, best.entries[0])
        for core in _cores(space, site, spot):
            found += _around(space, best, spot, core)
    return found


def _best_spot(space: Space, clusters: Sequence[Cluster], columns: Columns) -> list[Cluster]:
    """The best cluster of each of the best spot types."""
    by_kind: dict[tuple[int, int], Cluster] = {}
    for number in columns.cluster[np.argsort(columns.goal, kind="stable")].tolist():
        cluster = clusters[number]
        entries = space.sites[cluster.site].entries
        if entries.spot[cluster.entries[0]]:
            kind = int(entries.kind[cluster.entries[0]])
            by_kind.setdefault((cluster.site, kind), cluster)
        if len(by_kind) == SPOT_TYPES:
            break
    return list(by_kind.values())


def _in_one_region(site: Site, entry: int) -> int:
    """The cheapest entry of the same spot type that lives in a single place."""
    e = site.entries
    alike = np.flatnonzero(e.spot & (e.kind == e.kind[entry]) & (e.sites <= 1.0))
    return int(alike[e.usd_per_hour[alike].argmin()]) if len(alike) else entry


def _cores(space: Space, site: Site, spot: int) -> list[int]:
    """On-demand machines next to it: of its type, and those of the cheapest work."""
    e = site.entries
    here = np.flatnonzero(~e.spot & (e.region == e.region[spot]))
    if not len(here):
        return []
    per_work = e.usd_per_hour[here] / np.maximum(space.columns.compute_per_s[e.kind[here]], 1e-30)
    alike = here[e.kind[here] == e.kind[spot]]
    return sorted({int(here[per_work.argmin()]), *alike.tolist()})


def _around(space: Space, best: Cluster, spot: int, core: int) -> list[Cluster]:
    """Cores of several sizes, each with more or fewer spot machines than the best cluster has."""
    site, most = space.sites[best.site], space.limits.max_machines
    sizes = sorted({max(round(best.counts[0] * share), 1) for share in SPOT_SHARES})
    pairs = [(n, k) for n, k in product(CORES, sizes) if n + k <= most]
    if not pairs:
        return []
    order = sorted((core, spot))
    counts: Ints = np.array([[n, k] if core < spot else [k, n] for n, k in pairs], dtype=np.int64)
    fits = within_quota(site.only(np.array(order)), counts)
    return [
        Cluster(best.site, (order[0], order[1]), (int(row[0]), int(row[1]))) for row in counts[fits]
    ]
