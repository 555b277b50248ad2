"""The mixes most likely to pay, around the best spot clusters of one type.

An on-demand core of the same type, on which an elastic job continues while its spot machines are
away, next to the spot machines or in place of some; and other types that are cheap in the same
region in place of some. Under an overhead limit only cores, which lose less; more of them.
"""

from collections.abc import Sequence
from itertools import chain, product

import numpy as np

from recommender.arrays import Ints
from recommender.optimize.columns import Cluster
from recommender.optimize.space import Entries, Space, within_quota

OTHER_TYPES = 2  # of a region, the cheapest for their work
PARTS = (0.25, 0.5)  # of the compute, on other machines
CORES = (1, 2)  # machines on demand, under an overhead limit next to
SPOT_PARTS = (0.5, 0.75, 1.0)  # of the spot machines


def likely_mixes(space: Space, first: int, kinds: Sequence[tuple[int, int]]) -> list[Cluster]:
    """Mixes in the regions from site `first` on, around so many spot machines of each kind."""
    found = (
        _around(space, index, kind, machines)
        for index in range(first, len(space.sites))
        for kind, machines in kinds
    )
    return list(dict.fromkeys(chain.from_iterable(found)))


def _around(space: Space, index: int, kind: int, machines: int) -> list[Cluster]:
    """Those of one region; none where the type is not for rent on spot."""
    e = space.sites[index].entries
    spot, core = (np.flatnonzero((e.spot == market) & (e.kind == kind)) for market in (True, False))
    if not len(spot):
        return []
    mine, cores = int(spot[0]), core[:1].tolist() if space.job.resizes else []
    found = [(mine, row, *counts) for row in cores for counts in _with_core(space, machines)]
    if space.limits.max_overhead is None:
        found += [
            (mine, row, *counts)
            for row in _others(space, e, mine)
            for counts in _in_place(space, e, mine, row, machines)
        ]
    return [cluster for row in found if (cluster := _cluster(space, index, *row)) is not None]


def _with_core(space: Space, machines: int) -> list[tuple[int, int]]:
    """Spot machines and on-demand machines of the same type."""
    if space.limits.max_overhead is None:
        return [(machines, 1), *((max(machines - k, 1), k) for k in _parts(machines))]
    parts = sorted({max(round(machines * part), 1) for part in SPOT_PARTS})
    return list(product(parts, CORES))


def _in_place(
    space: Space, e: Entries, mine: int, row: int, machines: int
) -> list[tuple[int, int]]:
    """Machines of a type, and others with the compute of those that they take the place of."""
    speed = space.columns.compute_per_s[e.kind]
    faster = float(speed[mine] / speed[row])
    return [(max(machines - k, 1), max(round(k * faster), 1)) for k in _parts(machines)]


def _parts(machines: int) -> list[int]:
    return sorted({max(round(machines * part), 1) for part in PARTS})


def _others(space: Space, e: Entries, mine: int) -> list[int]:
    """Other spot types whose work is cheapest here."""
    price = e.usd_per_hour / np.maximum(space.columns.compute_per_s[e.kind], 1e-30)
    other = np.flatnonzero(e.spot & (e.kind != e.kind[mine]))
    order = np.argsort(price[other], kind="stable")
    return [int(row) for row in other[order][:OTHER_TYPES]]


def _cluster(
    space: Space, index: int, one: int, other: int, machines: int, more: int
) -> Cluster | None:
    """A cluster of two entries, within the machines and quotas allowed."""
    rows, counts = [one, other], [machines, more]
    order = np.argsort(rows)
    table: Ints = np.array([counts], dtype=np.int64)[:, order]
    site = space.sites[index].only(np.array(rows)[order])
    if sum(counts) > space.limits.max_machines or not within_quota(site, table).all():
        return None
    first, second = (int(order[0]), int(order[1]))
    return Cluster(index, (rows[first], rows[second]), (counts[first], counts[second]))
