"""Clusters of several types or markets of one region, listed by the numbers of their machines.

Such a mix pays where quotas leave few machines of each type, where a job trains on while its spot
machines are away, or where capacity is scarce. x_e machines of each of two or three entries e:

    speed      S = Σ x_e·s_e(N), N = Σ x_e          s_e(N): of one machine in a cluster of N like it
    quota q    Σ u_qe·x_e <= Q_q        hourly  Σ p_e·x_e <= H        N <= the most machines
    deadline   S >= m·W/D               margins m: waits and lost work leave less than the deadline
    min        W/S·Σ p_e·x_e            or, under a budget, the least time at margins of the budget

Adding good points as cuts one after the other takes hundreds of solves of an integer program; all
points on a grid of numbers are a few array operations. The best of each margin are rated and
simulated like clusters of one type (`rating.py`).
"""

from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Cluster
from recommender.optimize.space import Site, Space, most_machines, within_quota
from recommender.plan.limits import TOLERANCE, Limits
from recommender.risk.laws import gang_hazard, logistic

RESTART_S = 200.0  # of work that an interruption of an elastic cluster costs, roughly
SURE_OF_OVERHEAD = 3.0  # times the limit: what is more is over it, as short jobs meet fewer
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)  # of machines of one entry
TYPES = 3  # of one mix, at most
CHEAPEST, FASTEST = 4, 3  # entries of each market that are combined
MARGINS = (0.6, 0.8, 1.0, 1.25, 1.6, 2.0)
KEPT = 16  # of each margin
LISTS = 3  # of regions on demand, of each provider, by each measure


def listed_mixes(
    space: Space, index: int, step_s: Floats, types: int = TYPES, kinds: Collection[int] = ()
) -> list[Cluster]:
    """The mixes of a region, of so many types at most, that may be the best at some margin.

    Machines of some `kinds` are among those combined in any case.
    """
    rows = _combined(space.sites[index], step_s, kinds)
    return _of_entries(space, index, rows, step_s, types)


def _of_entries(space: Space, index: int, rows: Ints, step_s: Floats, types: int) -> list[Cluster]:
    site, most = space.sites[index], min(space.limits.max_machines, step_s.shape[1])
    found: dict[Cluster, None] = {}
    for size in range(2, min(types, most) + 1):
        points = _points(site, rows, size, most)
        if len(points):
            rated = _estimated(space, site.only(rows), step_s, points)
            for point in _chosen(space.limits, rated).tolist():
                found[_cluster(index, rows, points[point])] = None
    return list(found)


def _combined(site: Site, step_s: Floats, kinds: Collection[int]) -> Ints:
    """The entries whose work is cheapest, and those that are fastest, of each market."""
    e = site.entries
    one_s = machine_s(step_s)[e.kind]
    usd = e.usd_per_hour * one_s
    allowed = within_quota(site, np.eye(len(e), dtype=np.int64)) & np.isfinite(one_s)
    found = list[int]()
    for market in (False, True):
        mine = np.flatnonzero(allowed & (e.spot == market))
        found += mine[np.isin(e.kind[mine], list(kinds))].tolist()
        found += mine[np.argsort(usd[mine], kind="stable")[:CHEAPEST]].tolist()
        found += mine[np.argsort(one_s[mine], kind="stable")[:FASTEST]].tolist()
    return np.array(sorted(set(found)), dtype=np.int64)


def machine_s(step_s: Floats) -> Floats:
    """Step seconds of one machine of each kind, in the smallest cluster that can hold the job."""
    able = np.isfinite(step_s)
    first = able.argmax(axis=1)
    return np.asarray(step_s[np.arange(len(step_s)), first] * (first + 1))


def _points(site: Site, rows: Ints, size: int, most: int) -> Ints:
    """Every number of machines of so many of the entries; (points, rows)."""
    numbers = np.array([n for n in NUMBERS if n < most], dtype=np.int64)
    if not len(numbers) or len(rows) < size:
        return np.zeros((0, len(rows)), dtype=np.int64)
    grid = np.stack(np.meshgrid(*[numbers] * size, indexing="ij"), axis=-1).reshape(-1, size)
    grid = grid[grid.sum(axis=1) <= most]
    parts = []
    for chosen in combinations(range(len(rows)), size):
        counts = np.zeros((len(grid), len(rows)), dtype=np.int64)
        counts[:, list(chosen)] = grid
        parts.append(counts)
    counts = np.concatenate(parts)
    return counts[within_quota(site.only(rows), counts)]


@dataclass(frozen=True, slots=True)
class _Points:
    """Rough figures of mixes; (points,)."""

    usd: Floats
    time_s: Floats
    max_usd_per_hour: Floats
    overhead: Floats  # of restarts, where on-demand machines train on while spot is away; else inf


def _estimated(space: Space, site: Site, step_s: Floats, counts: Ints) -> _Points:
    """Cost and time, each entry as fast as in a cluster of as many machines like it."""
    e, machines = site.entries, counts.sum(axis=1)
    each_s = step_s[e.kind][:, machines - 1].T * machines[:, None]  # (points, entries)
    each_s = np.where(np.isfinite(each_s), each_s, machine_s(step_s)[e.kind])
    up = logistic(e.availability_logit)
    there = np.where(e.spot, np.minimum(up ** (1.0 / np.maximum(e.zone_count, 1.0)), 1.0), 1.0)
    speed = (counts * there / np.where(counts > 0, each_s, np.inf)).sum(axis=1)
    time_s = space.steps_left / np.maximum(speed, 1e-30)
    hourly = counts @ (e.usd_per_hour * there)
    ends = np.where(counts > 0, gang_hazard(np.maximum(counts, 1), e.co_interruption), 0.0)
    rate = (np.where(e.spot, ends, 0.0) / e.run_mean_s).sum(axis=1)
    both = (counts[:, e.spot] > 0).any(axis=1) & (counts[:, ~e.spot] > 0).any(axis=1)
    lost = np.where(both, RESTART_S * rate, np.inf)
    return _Points(hourly * time_s / 3600.0, time_s, counts @ e.max_usd_per_hour, lost)


def _chosen(limits: Limits, found: _Points) -> Ints:
    """The best points of each margin."""
    fits: Bools = np.ones(len(found.usd), dtype=bool)
    if limits.hourly_usd is not None:
        fits &= found.max_usd_per_hour <= limits.hourly_usd + TOLERANCE
    if limits.max_overhead is not None:
        fits &= found.overhead <= limits.max_overhead * SURE_OF_OVERHEAD
    by_time = limits.goal == "time"
    goal = found.time_s if by_time else found.usd
    limited, most = (found.usd, limits.budget_usd) if by_time else (found.time_s, limits.deadline_s)
    taken = [_least(np.where(fits, goal, np.inf))]
    for margin in MARGINS if most is not None else ():
        within = fits & (limited * margin <= (most or np.inf))
        taken.append(_least(np.where(within, goal, np.inf)))
    return np.unique(np.concatenate(taken))


def _least(values: Floats) -> Ints:
    places = np.arange(len(values))
    if len(values) > KEPT:
        places = np.flatnonzero(values <= np.partition(values, KEPT - 1)[KEPT - 1])
    order = places[np.argsort(values[places], kind="stable")][:KEPT]
    return order[np.isfinite(values[order])]


def _cluster(index: int, rows: Ints, counts: Ints) -> Cluster:
    used = np.flatnonzero(counts)
    return Cluster(index, tuple(rows[used].tolist()), tuple(counts[used].tolist()))


def mixes_of(
    space: Space, sites: range, step_s: Floats, types: int, kinds: Collection[int]
) -> Iterator[Cluster]:
    """The mixes of several regions."""
    for index in sites:
        yield from listed_mixes(space, index, step_s, types, kinds)


def on_demand_mixes(space: Space, sites: range, step_s: Floats) -> Iterator[Cluster]:
    """On-demand machines of several types along the same list of regions.

    Of each provider the lists with the most compute and with the cheapest work.
    """
    for index in sites:
        site = space.sites[index]
        e, most = site.entries, most_machines(site, space.limits.max_machines)
        one_s = machine_s(step_s)[e.kind]
        usable = np.flatnonzero(~e.spot & np.isfinite(one_s) & (most >= 1))
        lists: dict[tuple[int, float], list[int]] = {}
        for row in usable.tolist():
            lists.setdefault((int(e.region[row]), float(e.zone_count[row])), []).append(row)
        groups = [np.array(mine, dtype=np.int64) for mine in lists.values() if len(mine) > 1]
        by_speed = sorted(groups, key=lambda rows: -float((most[rows] / one_s[rows]).sum()))
        by_cost = sorted(groups, key=lambda rows: float((e.usd_per_hour[rows] * one_s[rows]).min()))
        for rows in (*by_speed[:LISTS], *by_cost[:LISTS]):
            fastest = rows[np.argsort(one_s[rows] / most[rows], kind="stable")][
                : CHEAPEST + FASTEST
            ]
            yield from _of_entries(space, index, np.sort(fastest), step_s, TYPES)
