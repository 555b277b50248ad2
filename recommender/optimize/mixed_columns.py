"""Columns of mixed clusters: an on-demand core with spot, and several types under tight quotas.

An elastic job continues on its on-demand core while the spot machines are away. The core is paid
all the time, at three to six times the price of spot, so such a mix pays only if waiting or a late
fallback costs more. A few of them around the best spot clusters are in the master program, which
selects how much of each; their estimates decide whether one is simulated.

If quotas leave few machines of each family, machines of several families in one region are
combined, the fastest or the cheapest first.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import Cluster, Columns
from recommender.optimize.space import Site, Space, most_machines, within_quota

SPOT_TYPES = 3  # types of the best spot clusters around which mixes are tried
CORE_SIZES = (1, 2, 4)  # on-demand machines of a core
SPOT_SHARES = (0.5, 1.0, 1.5)  # of the machines of the best spot cluster
QUOTA_TYPES = 4  # of a mix under quotas, at most
TRIED_PLACES = 8  # regions and markets in which these are tried, by each order
ROUNDING = 1e-9  # of a machine, where a quota is a whole number of them


@dataclass(frozen=True, slots=True)
class SharedQuota:
    """A quota that several entries use."""

    amount: float
    use: Mapping[int, float]  # by one machine of each of these entries

    def room(self, row: int, counts: Mapping[int, int]) -> int:
        """How many machines of one of these entries it allows next to others."""
        used = sum(self.use.get(other, 0.0) * n for other, n in counts.items())
        return int((self.amount - used) / self.use[row] + ROUNDING)


def mixed_clusters(space: Space, clusters: Sequence[Cluster], columns: Columns) -> list[Cluster]:
    """Mixes worth a column; those of markets only if the job can continue in part."""
    if not space.mix or space.limits.max_machines < 2:
        return []
    found = [mix for index in range(len(space.sites)) for mix in mixes_under_quotas(space, index)]
    if not space.job.resizes:
        return found
    for best in _best_spot(space, clusters, columns):
        site = space.sites[best.site]
        spot = _in_one_region(site, best.entries[0])
        for core in _cores(space, site, spot):
            found += _around(space, best, spot, core)
    return found


def _best_spot(space: Space, clusters: Sequence[Cluster], columns: Columns) -> list[Cluster]:
    """The best cluster of each of the best spot types."""
    by_kind: dict[tuple[int, int], Cluster] = {}
    for number in columns.cluster[np.argsort(columns.goal_value, kind="stable")].tolist():
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
    alike = np.flatnonzero(e.spot & (e.kind == e.kind[entry]) & (e.zone_count <= 1.0))
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
    pairs = [(n, k) for n, k in product(CORE_SIZES, sizes) if n + k <= most]
    if not pairs:
        return []
    order = sorted((core, spot))
    counts: Ints = np.array([[n, k] if core < spot else [k, n] for n, k in pairs], dtype=np.int64)
    fits = within_quota(site.only(np.array(order)), counts)
    return [
        Cluster(best.site, (order[0], order[1]), (int(row[0]), int(row[1]))) for row in counts[fits]
    ]


def mixes_under_quotas(space: Space, index: int) -> list[Cluster]:
    """As much as the quotas allow of one to four types of a region and market."""
    site = space.sites[index]
    if not len(site.quota):
        return []
    e, machines = site.entries, space.limits.max_machines
    most = most_machines(site, machines)
    speed = space.columns.compute_per_s[e.kind]
    usable = (most >= 1) & (~e.spot | (e.zone_count <= 1.0))
    found: dict[Cluster, None] = {}
    for rank in (-speed * np.minimum(most, machines), e.usd_per_hour / speed):
        for rows in _best_places(e.region * 2 + e.spot, usable, rank):
            for used in range(2, len(rows) + 1):
                some = rows[:used].tolist()
                shared = shared_quotas(site, rows[:used])
                if counts := as_many_as_allowed(some, most[some].tolist(), machines, shared):
                    found[cluster_of(index, counts)] = None
    return list(found)


def _best_places(place: Ints, usable: Bools, rank: Floats) -> list[Ints]:
    """The best entries of each region and market, those of the best places first."""
    order = np.flatnonzero(usable)[np.argsort(rank[usable], kind="stable")]
    by_place: dict[int, list[int]] = {}
    for row in order.tolist():
        by_place.setdefault(int(place[row]), []).append(row)
    rows = [np.array(mine[:QUOTA_TYPES]) for mine in by_place.values() if len(mine) > 1]
    return sorted(rows, key=lambda mine: float(rank[mine].sum()))[:TRIED_PLACES]


def shared_quotas(site: Site, rows: Ints) -> list[SharedQuota]:
    """The quotas that several of some entries use."""
    use = site.quota_use[:, rows]
    return [
        SharedQuota(
            amount=float(site.quota[number]),
            use={
                row: each
                for row, each in zip(rows.tolist(), use[number].tolist(), strict=True)
                if each > 0.0
            },
        )
        for number in np.flatnonzero((use > 0.0).sum(axis=1) > 1).tolist()
    ]


def as_many_as_allowed(
    rows: Sequence[int], wanted: Sequence[int], left: int, shared: Sequence[SharedQuota]
) -> dict[int, int]:
    """Machines of each entry: those wanted, or fewer if a shared quota or `left` ends before.

    The first entries get theirs first. {} if nothing is left for one of them.
    """
    counts: dict[int, int] = {}
    for row, most in zip(rows, wanted, strict=True):
        counts[row] = min(
            [most, left, *(each.room(row, counts) for each in shared if row in each.use)]
        )
        left -= counts[row]
        if counts[row] < 1:
            return {}
    return counts


def cluster_of(site: int, counts: Mapping[int, int]) -> Cluster:
    """A cluster of these machines of each entry."""
    order = sorted(counts)
    return Cluster(site, tuple(order), tuple(counts[row] for row in order))
