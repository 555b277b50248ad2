"""Clusters of several types or markets of one region, listed by the numbers of their machines.

Such a mix pays where quotas leave few machines of each type, where a job trains on while its spot
machines are away, or where capacity is scarce. x_e machines of each of two or three entries e:

    step       t = 1/Σ x_e·s_e + max_e c_e(N)       s_e: speed of one machine, N = Σ x_e;
                                                    c_e(N): what N machines like it take besides
                                                    (under parameter servers t = 1/Σ x_e·s_e(N))
    quota q    Σ u_qe·x_e <= Q_q        hourly  Σ p_e·x_e <= H        N <= the most machines
    deadline   W·t <= D/m               margins m: waits and lost work leave less than the deadline
    min        W·t·Σ p_e·x_e            or, under a budget, the least time at margins of the budget

Adding good points as cuts one after the other takes hundreds of solves of an integer program; all
points on a grid of numbers are a few array operations. The best of each margin are rated and
simulated like clusters of one type (`rating.py`).
"""

from collections.abc import Collection, Iterable
from itertools import chain, combinations

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Cluster
from recommender.optimize.evaluate import sensible_paths
from recommender.optimize.space import Site, Space, most_machines
from recommender.plan.limits import Limits
from recommender.risk.laws import gang_hazard, logistic

RESTART_S = 200.0  # of work that an interruption of an elastic cluster costs, roughly
SURE_OF_OVERHEAD = 3.0  # times the limit: what is more is over it, as short jobs meet fewer
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)  # of machines of one entry
TYPES = 3  # of one mix, at most
CHEAPEST, FASTEST = 5, 4  # entries of each market that are combined
MARGINS = np.array([0.6, 0.8, 1.0, 1.25, 1.6, 2.0])
STEPS, RANGE = 24, 100.0  # of deadlines and budgets under which points are kept
KEPT = 16  # of each margin
AT_ONCE = 100_000  # points
LISTS = 3  # of regions on demand, of each provider, by each measure


@dataclass(frozen=True, slots=True)
class Points(Table):
    """Numbers of machines of some entries of a region, and rough figures; (points,)."""

    index: Ints  # of the region
    entries: Ints  # (points, types)
    counts: Ints  # (points, types)
    usd: Floats
    time_s: Floats
    max_usd_per_hour: Floats
    overhead: Floats  # of restarts, where on-demand machines train on without spot; else inf

    def within(self, limits: Limits) -> Bools:
        """Which points meet the limits that hold at every moment, and may meet that of overhead."""
        fits = limits.at_every_moment(self.counts.sum(axis=1), self.max_usd_per_hour)
        if limits.max_overhead is not None:
            fits &= self.overhead <= limits.max_overhead * SURE_OF_OVERHEAD
        return fits

    def best(self, limits: Limits) -> list[Cluster]:
        """The clusters of the best points of each margin."""
        by_time = limits.goal == "time"
        most = limits.budget_usd if by_time else limits.deadline_s
        goal = np.where(self.within(limits), self.time_s if by_time else self.usd, np.inf)
        asked = np.array([np.inf, *([] if most is None else most / MARGINS)])
        chosen = _best(goal, self.usd if by_time else self.time_s, asked)
        return [self._cluster(point) for point in chosen.tolist()]

    def worth_keeping(self, limits: Limits) -> "Points":
        """The points that are among the best under some deadline or budget."""
        fits = np.flatnonzero(self.within(limits))
        if not len(fits):
            return self.take(fits)
        some, kept = self.take(fits), list[Ints]()
        due_s = (limits.deadline_s or np.inf) / MARGINS
        for goal, limited, asked in (
            (some.usd, some.time_s, due_s),
            (some.time_s, some.usd, due_s[:0]),
        ):
            least = max(float(limited.min()), 1e-9)
            most = np.concatenate([np.geomspace(least, RANGE * least, STEPS), asked])
            kept.append(_best(goal, limited, most))
        return some.take(distinct(np.concatenate(kept)))

    def _cluster(self, point: int) -> Cluster:
        entries, counts = self.entries[point].tolist(), self.counts[point].tolist()
        return Cluster(int(self.index[point]), tuple(entries), tuple(counts))


def best_mixes(points: Iterable[Points], limits: Limits) -> list[Cluster]:
    """The mixes of some regions that may be the best under limits, each once."""
    return list(dict.fromkeys(chain.from_iterable(each.best(limits) for each in points)))


def _best(goal: Floats, limited: Floats, most: Floats) -> Ints:
    """The places of the least goals where another figure is within each of some values."""
    ranked = np.argsort(goal, kind="stable")
    ranked = ranked[: int(np.isfinite(goal).sum())]
    limited = limited[ranked]
    return distinct(np.concatenate([ranked[np.flatnonzero(limited <= m)[:KEPT]] for m in most]))


def mixes_of(
    space: Space, sites: range, step_s: Floats, types: int, kinds: Collection[int]
) -> list[Points]:
    """The mixes of several regions, of so many types at most.

    Machines of some `kinds` are among those combined in any case.
    """
    found = list[Points]()
    for index in sites:
        rows = _combined(space.sites[index], step_s, space.limits.max_machines, kinds)
        found += _of_entries(space, index, rows, step_s, types)
    return found


def _of_entries(space: Space, index: int, rows: Ints, step_s: Floats, types: int) -> list[Points]:
    site, most = space.sites[index], min(space.limits.max_machines, step_s.shape[1])
    alone = most_machines(site, most)
    found = list[Points]()
    for size in range(2, min(types, most, len(rows)) + 1):
        mixes, grid = _types_of(space, site, rows, size), _grid(size, most)
        at_once = max(AT_ONCE // max(len(grid), 1), 1)
        parts = [
            _estimated(space, index, step_s, *_allowed(site, some, grid, alone))
            for some in np.split(mixes, range(at_once, len(mixes), at_once))
        ]
        parts = [part.worth_keeping(space.limits) for part in parts]
        found.append(Points.joined(parts).worth_keeping(space.limits))
    return found


def _combined(site: Site, step_s: Floats, most: int, kinds: Collection[int]) -> Ints:
    """Of each market the entries whose work is cheapest, and those that are fastest together.

    That is with as many machines as quotas allow.
    """
    e, machines = site.entries, most_machines(site, most)
    one_s = machine_s(step_s)[e.kind]
    usd = e.usd_per_hour * one_s
    allowed = (machines >= 1) & np.isfinite(one_s)
    all_s = one_s / np.maximum(machines, 1)
    found = list[int]()
    for market in (False, True):
        mine = np.flatnonzero(allowed & (e.spot == market))
        found += mine[np.isin(e.kind[mine], list(kinds))].tolist()
        found += mine[np.argsort(usd[mine], kind="stable")[:CHEAPEST]].tolist()
        found += mine[np.argsort(all_s[mine], kind="stable")[:FASTEST]].tolist()
    return np.array(sorted(set(found)), dtype=np.int64)


def machine_s(step_s: Floats) -> Floats:
    """Step seconds of one machine of each kind, in the smallest cluster that can hold the job."""
    able = np.isfinite(step_s)
    first = able.argmax(axis=1)
    return np.asarray(step_s[np.arange(len(step_s)), first] * (first + 1))


def _types_of(space: Space, site: Site, rows: Ints, size: int) -> Ints:
    """So many of the entries in every way, where a checkpoint path suits them; (mixes, size)."""
    found = rows[np.array(list(combinations(range(len(rows)), size)), dtype=np.int64)]
    spot = site.entries.spot[found]
    has_spot, held = (np.asarray(some.any(axis=1)) for some in (spot, ~spot))
    return found[sensible_paths(space, has_spot, held).any(axis=1)]


def _grid(size: int, most: int) -> Ints:
    """Every listed number of machines of so many entries, `most` together; (numbers, size)."""
    numbers = np.array([n for n in NUMBERS if n < most], dtype=np.int64)
    grid = np.stack(np.meshgrid(*[numbers] * size, indexing="ij"), axis=-1).reshape(-1, size)
    return np.asarray(grid[grid.sum(axis=1) <= most])


def _allowed(site: Site, mixes: Ints, grid: Ints, alone: Ints) -> tuple[Ints, Ints]:
    """The entries and the numbers of machines of the clusters within quotas; (points, size).

    `alone`: the most machines of each entry of the site without others.
    """
    entries, counts = np.repeat(mixes, len(grid), axis=0), np.tile(grid, (len(mixes), 1))
    fits = np.flatnonzero((counts <= alone[entries]).all(axis=1))
    used = distinct(mixes.ravel())
    for use, quota in zip(site.quota_use, site.quota, strict=True):
        if np.count_nonzero(use[used]) > 1:
            together = (use[entries[fits]] * counts[fits]).sum(axis=1)
            fits = fits[together <= quota + 1e-9]
    return entries[fits], counts[fits]


def _estimated(space: Space, index: int, step_s: Floats, entries: Ints, counts: Ints) -> Points:
    """Cost and time: speeds add up, and all wait for the slowest exchange.

    Workers of parameter servers wait for none: each is as fast as among as many like it.
    """
    e, machines = space.sites[index].entries, counts.sum(axis=1)
    one_s = machine_s(step_s)[e.kind[entries]]
    alike_s = step_s[e.kind[entries], machines[:, None] - 1] * machines[:, None]
    alike_s = np.where(np.isfinite(alike_s), alike_s, one_s)
    exchange_s = (alike_s - one_s).max(axis=1) / machines
    if space.job.sync == "parameter_server":
        one_s, exchange_s = alike_s, np.zeros(len(machines))
    up = logistic(e.availability_logit)
    there = np.where(e.spot, np.minimum(up ** (1.0 / np.maximum(e.zone_count, 1.0)), 1.0), 1.0)
    speed = (counts * there[entries] / one_s).sum(axis=1)
    step = 1.0 / np.maximum(speed, 1e-30) + np.maximum(exchange_s, 0.0)
    time_s = space.steps_left * step
    hourly = (counts * (e.usd_per_hour * there)[entries]).sum(axis=1)
    rate = gang_hazard(counts, e.co_interruption[entries]) / e.run_mean_s[entries]
    rate = np.where(e.spot[entries], rate, 0.0).sum(axis=1)
    both = e.spot[entries].any(axis=1) & ~e.spot[entries].all(axis=1)
    lost = np.where(both, RESTART_S * rate, np.inf)
    usd, most = hourly * time_s / 3600.0, (counts * e.max_usd_per_hour[entries]).sum(axis=1)
    return Points(np.full(len(usd), index), entries, counts, usd, time_s, most, lost)


def on_demand_mixes(space: Space, sites: range, step_s: Floats) -> list[Points]:
    """On-demand machines of several types along the same list of regions.

    Of each provider the lists with the most compute and with the cheapest work.
    """
    found = list[Points]()
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
            found += _of_entries(space, index, np.sort(fastest), step_s, TYPES)
    return found
