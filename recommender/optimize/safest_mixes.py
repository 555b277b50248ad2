"""The mixes most likely to meet a deadline if no single machine type does.

A search by cost or by time finds thousands of mixes that are cheap, or usually fast, and meet no
deadline with the required chance. Those that do use all that the quotas of a region allow: its
fastest on-demand machines, together with spot machines. Such clusters are few, and their
closed-form rates (`renewal_rates.py`) select those worth a simulation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.optimize.columns import Cluster, Columns, columns_of
from recommender.optimize.mixed_columns import most_machines
from recommender.optimize.space import Space, single_steps, within_quota

FASTEST_TYPES = 4  # of each market, the fastest of a region
COMBINED = 2  # any of them in one cluster, or all
CORE_SHARES = (1.0, 0.5)  # of the on-demand machines allowed: half where all leave no room for spot
SAME_MACHINES = 2  # regions in which the same machines are tried
REGIONS = 12  # those with the most compute, of both markets and on demand alone


def safest_mixes(space: Space, first: int) -> list[Cluster]:
    """Mixes of the sites from `first` on, the most likely to meet the limits first."""
    best = dict.fromkeys(
        index for spot in (True, False) for index in _by_compute(space, first, spot)[:REGIONS]
    )
    # Beyond some number of machines a global batch is too small for more.
    useful = single_steps(space.job, space.columns, space.limits.max_machines).argmin(axis=1) + 1
    clusters = [cluster for index in best for cluster in _mixes(space, useful, index)]
    if not clusters:
        return []
    found = columns_of(space, clusters)
    excess = _excess(space, found)
    # Those that seem sure enough, the cheapest first, and the surest of all take turns.
    orders = np.stack(
        [np.lexsort((excess, found.goal_value)), np.argsort(excess, kind="stable")], axis=1
    )
    ordered = dict.fromkeys(found.cluster[orders.ravel()].tolist())
    return _in_few_places(space, [clusters[number] for number in ordered])


def _in_few_places(space: Space, clusters: Iterable[Cluster]) -> list[Cluster]:
    """The first clusters of each set of machines: alike ones elsewhere are as sure."""
    seen: Counter[tuple[bytes, bytes, tuple[int, ...]]] = Counter()
    kept = []
    for cluster in clusters:
        e, rows = space.sites[cluster.site].entries, list(cluster.entries)
        alike = (e.kind[rows].tobytes(), e.spot[rows].tobytes(), cluster.counts)
        seen[alike] += 1
        if seen[alike] <= SAME_MACHINES:
            kept.append(cluster)
    return kept


def _by_compute(space: Space, first: int, spot: bool) -> list[int]:
    """Sites by the samples per second of their fastest types, as many machines as are allowed."""
    markets = (False, True) if spot else (False,)

    def compute(index: int) -> float:
        speed = _speed(space, index)
        return float(sum(speed[_fastest(space, index, market)].sum() for market in markets))

    return sorted(range(first, len(space.sites)), key=lambda index: -compute(index))


def _speed(space: Space, index: int) -> Floats:
    """Samples per second of as many machines of each entry as its quotas allow."""
    site = space.sites[index]
    return space.columns.compute_per_s[site.entries.kind] * most_machines(space, site)


def _fastest(space: Space, index: int, spot: bool) -> Ints:
    rows = np.flatnonzero(space.sites[index].entries.spot == spot)
    speed = _speed(space, index)[rows]
    return rows[np.argsort(-speed, kind="stable")][: int(min(FASTEST_TYPES, (speed > 0.0).sum()))]


def _mixes(space: Space, useful: Ints, index: int) -> Iterator[Cluster]:
    """On-demand machines of one or two types with spot machines of none, one or two."""
    site = space.sites[index]
    useful, most = useful[site.entries.kind], most_machines(space, site)
    cores, others = (list(_sets(_fastest(space, index, spot))) for spot in (False, True))
    for core, other in product(cores, others):
        rows = (*core, *other)
        room = int(useful[list(rows)].max(initial=0))
        filled = (
            _filled(space, index, rows, [*_part(most[list(core)], share), *most[list(other)]], room)
            for share in CORE_SHARES
        )
        mix = next((mix for mix in filled if mix is not None), None) if len(rows) > 1 else None
        if mix is not None:
            yield mix


def _part(most: Ints, share: float) -> list[int]:
    """A share of so many machines, rounded up."""
    return [int(n) for n in np.ceil(share * most)]


def _sets(rows: Ints) -> Iterator[tuple[int, ...]]:
    """None, one, two or all of some entries."""
    for size in dict.fromkeys((*range(COMBINED + 1), len(rows))):
        yield from combinations(rows.tolist(), size)


def _filled(
    space: Space, index: int, rows: Sequence[int], wanted: Sequence[int], left: int
) -> Cluster | None:
    """As many machines of each entry as are wanted and allowed, the first entries first."""
    counts: dict[int, int] = {}
    for row, most in zip(rows, wanted, strict=True):
        counts[row] = min(int(most), left)
        left -= counts[row]
    order = sorted(counts)
    table = np.array([[counts[row] for row in order]], dtype=np.int64)
    if table.min() < 1 or not within_quota(space.sites[index].only(np.array(order)), table).all():
        return None
    return Cluster(index, tuple(order), tuple(table[0].tolist()))


def _excess(space: Space, found: Columns) -> Floats:
    """By which factor a column misses the limit that it misses most, at the requested chance."""
    limits, misses = space.limits, [np.zeros(len(found))]
    if limits.deadline_s is not None:
        misses.append(found.time_quantile_s / limits.deadline_s)
    if limits.budget_usd is not None:
        misses.append(found.usd_quantile / limits.budget_usd)
    return np.asarray(np.max(misses, axis=0))
