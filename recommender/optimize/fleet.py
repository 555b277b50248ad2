"""The program of a fleet: which job runs on which of its plans, and when, under what all share.

A column k is a plan of a job's pool that starts in a time slot; x_k says whether it is chosen, z_j
whether job j is left out, which loses what the job is worth.

    min  Σ usd_k·x_k + Σ worth_j·z_j
    run_j           Σ x_k of j + z_j = 1
    quota_q,t       Σ use_kq·x_k <= Q_q                      of the columns that run in slot t
    budget_g,m      Σ usd_km·x_k <= B_gm                     of a team's jobs, spent in month m
    after_i,j,t     Σ x_k of j begun by t <= Σ x_k of i ended by t
    x, z in {0, 1}

There are too many columns for one program. Those that the prices of its rows (the duals of the
relaxation) ask for are added until none is missing: the bound. The program of whole numbers has
these columns, then all that the gap between the two does not exclude.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from graphlib import TopologicalSorter
from time import process_time

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.linear_program import Model, Solution, solve

SECONDS = 60.0  # of CPU time, after which a search ends that nothing else has ended
GAP = 0.02  # of a fleet too large for one program, at which the search ends: what users ask
VAIN = 12  # programs in a row that improve nothing before it ends
FEW = 25  # columns of a job in a program of some jobs
MORE = 3  # columns of a job added at once
ORDERS = 8  # in which jobs are planned one by one, for a first solution
MOST = 2_000  # columns of a program of whole numbers
CLOSE = 1e-6  # share by which two objectives are the same
TOLERANCE = 1e-9  # of sums of uses
BARRED = 1e18  # what a column that is not wanted again costs
SEED = 7

Group = tuple[str, ...]  # ("quota", name), ("budget", team, month), ("after", job, job)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a job: a plan of its pool."""

    usd: float
    slots: int  # for which it may run
    uses: Mapping[str, float] = field(default_factory=dict)  # of each quota, while it runs


@dataclass(frozen=True, slots=True)
class FleetJob:
    """A job: its ways, what it is worth, and when it may run."""

    name: str
    ways: tuple[Way, ...]
    worth: float  # USD that are lost if it is left out
    end: int  # slots by which it must be done
    first: int = 0  # slot in which it may begin
    team: str = ""
    after: tuple[str, ...] = ()  # jobs that must be done before


@dataclass(frozen=True)
class Fleet:
    """Jobs, and what they share."""

    jobs: tuple[FleetJob, ...]
    months: tuple[str, ...]  # of each slot
    quotas: Mapping[str, float] = field(default_factory=dict)  # most at once
    budgets: Mapping[tuple[str, str], float] = field(default_factory=dict)  # team, month

    @property
    def worths(self) -> Floats:
        """What each job is worth."""
        return np.array([job.worth for job in self.jobs])

    @cached_property
    def depths(self) -> list[int]:
        """How many jobs have to be done one after the other before each."""
        after, depth = {job.name: job.after for job in self.jobs}, dict[str, int]()
        for name in TopologicalSorter(after).static_order():
            depth[name] = 1 + max((depth[each] for each in after[name]), default=-1)
        return [depth[job.name] for job in self.jobs]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A way of a job, and the slot in which it starts."""

    job: int
    way: int
    start: int


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What to run when, how good it can be at best, and what more of everything is worth."""

    chosen: tuple[Chosen, ...]
    usd: float  # of what runs, and what is lost by leaving out the others
    bound: float  # no plan of the fleet has less
    worth: Mapping[Group, float]  # USD per unit of a quota, and per dollar of a budget
    margin: Floats  # USD by which each job is worth more than it takes from others
    later: Floats  # USD saved if each job had until the last slot

    @property
    def gap(self) -> float:
        """The share by which another plan may be better."""
        return max(1.0 - self.bound / self.usd, 0.0) if self.usd > 0.0 else 0.0


@dataclass(frozen=True)
class Columns:
    """Every way of every job at every start, and what each takes of the rows."""

    fleet: Fleet
    job: Ints  # (columns,), in ascending order
    way: Ints
    start: Ints
    usd: Floats
    at: Ints  # column of each entry, in ascending order
    row: Ints
    factor: Floats
    groups: Mapping[Group, slice]  # rows of each quota, budget and order of two jobs
    limit: Floats  # of each row

    def reduced(self, price: Floats) -> Floats:
        """What each column costs, with what it takes of every row at its price."""
        return self.usd + np.bincount(self.at, self.factor * price[self.row], len(self.usd))

    def least(self, price: Floats) -> Floats:
        """What each job costs at least at these prices; inf if it cannot run at all."""
        found = np.full(len(self.fleet.jobs), np.inf)
        np.minimum.at(found, self.job, self.reduced(price))
        return found

    def at_least(self, price: Floats) -> Floats:
        """What each job costs at least at these prices, run or left out."""
        return np.minimum(self.least(price), self.fleet.worths)

    def bound(self, price: Floats) -> float:
        """What every plan of the fleet costs at least (Lagrange)."""
        return float(self.at_least(price).sum() - price @ self.limit)

    def entries(self, first: int, end: int) -> slice:
        """The entries of neighbouring columns."""
        return slice(*np.searchsorted(self.at, (first, end)).tolist())

    def take(self, left: Floats, column: int, sign: float = 1.0) -> None:
        """Take what a column needs from what is left of the rows, or give it back."""
        mine = self.entries(column, column + 1)
        np.subtract.at(left, self.row[mine], sign * self.factor[mine])

    def fitting(self, left: Floats, first: int, end: int) -> Ints:
        """Those of some neighbouring columns that fit into what is left of the rows."""
        mine = self.entries(first, end)
        over = self.factor[mine] > np.maximum(left[self.row[mine]], 0.0) + TOLERANCE
        bad = np.bincount(self.at[mine] - first, over & (self.factor[mine] > 0.0), end - first)
        return first + np.flatnonzero(bad == 0)


def columns_of(fleet: Fleet) -> Columns:
    """The columns of a fleet."""
    groups, limit = _rows_of(fleet)
    heads, entries, count = [np.zeros((4, 0))], [np.zeros((3, 0))], 0
    for number, job in enumerate(fleet.jobs):
        for index, way in enumerate(job.ways):
            starts = np.arange(job.first, min(job.end, len(fleet.months)) - way.slots + 1)
            each = np.ones(len(starts))
            heads.append(np.stack([number * each, index * each, starts, way.usd * each]))
            for row, factor in _entries_of(fleet, job, way, starts, groups):
                at = np.broadcast_to(count + np.arange(len(starts))[:, None], row.shape)
                entries.append(np.stack([at, row, factor])[:, factor != 0.0])
            count += len(starts)
    job_of, way_of, start, usd = np.concatenate(heads, axis=1)
    at, row, factor = np.concatenate(entries, axis=1)
    order = np.argsort(at, kind="stable")
    return Columns(
        fleet, _whole(job_of), _whole(way_of), _whole(start), usd,
        _whole(at[order]), _whole(row[order]), factor[order], groups, limit,
    )  # fmt: skip


def _whole(column: Floats) -> Ints:
    return column.astype(np.int64)


def _rows_of(fleet: Fleet) -> tuple[dict[Group, slice], Floats]:
    """The rows of each group, and the limit of every row."""
    slots, groups, limits = len(fleet.months), dict[Group, slice](), list[float]()
    afters = [("after", i, job.name) for job in fleet.jobs for i in job.after]
    for group, size, limit in (
        *((("quota", name), slots, most) for name, most in fleet.quotas.items()),
        *((("budget", *key), 1, most) for key, most in fleet.budgets.items()),
        *((each, slots, 0.0) for each in dict.fromkeys(afters)),
    ):
        groups[group] = slice(len(limits), len(limits) + size)
        limits += [limit] * size
    return groups, np.array(limits)


def _entries_of(
    fleet: Fleet, job: FleetJob, way: Way, starts: Ints, groups: Mapping[Group, slice]
) -> Iterator[tuple[Ints, Floats]]:
    """Rows and factors of a way at each start; (starts, some)."""
    slots = np.arange(len(fleet.months))
    while_it_runs = starts[:, None] + np.arange(way.slots)
    for name, use in way.uses.items():
        if ("quota", name) in groups:
            row = groups["quota", name].start + while_it_runs
            yield row, np.full(row.shape, use)
    for month in dict.fromkeys(fleet.months):
        if ("budget", job.team, month) in groups:
            inside = np.array([each == month for each in fleet.months])[while_it_runs]
            share = inside.sum(axis=1, keepdims=True) / way.slots
            yield np.full(share.shape, groups["budget", job.team, month].start), way.usd * share
    for group, rows in groups.items():
        if group[0] == "after" and job.name in group[1:]:
            since = starts if job.name == group[2] else starts + way.slots
            done = (slots >= since[:, None]).astype(float)
            yield (
                np.broadcast_to(rows.start + slots, done.shape),
                (done if job.name == group[2] else -done),
            )


def plan_fleet(fleet: Fleet, seconds: float = SECONDS) -> FleetPlan:
    """The cheapest way to run a fleet, as far as it is found in some seconds, and its bound."""
    until, columns = process_time() + seconds, columns_of(fleet)
    best, known = _one_by_one(columns)
    bound, price, share = _relaxed(columns, known, until)
    over = columns.reduced(price) - columns.at_least(price)[columns.job]
    best = min(best, _rounded(columns, over, share), key=partial(fleet_usd, columns))
    best, bound = _improved(columns, price, best, bound, until)
    patient = tuple(replace(job, end=len(fleet.months)) for job in fleet.jobs)
    at_end = columns_of(replace(fleet, jobs=patient))
    return FleetPlan(
        tuple(_at(columns, each) for each in _as_early_as_possible(columns, best)),
        fleet_usd(columns, best),
        min(bound, fleet_usd(columns, best)),
        {g: float(price[rows].sum()) for g, rows in columns.groups.items() if g[0] != "after"},
        fleet.worths - columns.least(price),
        columns.at_least(price) - at_end.at_least(price),
    )


def _at(columns: Columns, column: int) -> Chosen:
    return Chosen(*(int(each[column]) for each in (columns.job, columns.way, columns.start)))


def fleet_usd(columns: Columns, chosen: Sequence[int]) -> float:
    """What some columns cost, with what is lost by leaving out the other jobs."""
    lost = columns.fleet.worths
    lost[columns.job[list(chosen)]] = 0.0
    return float(lost.sum() + columns.usd[list(chosen)].sum())


def _one_by_one(columns: Columns) -> tuple[list[int], Bools]:
    """The best of some orders in which each job takes its cheapest column that is still possible.

    And the columns that any of them took.
    """
    jobs, known = columns.fleet.jobs, np.zeros(len(columns.usd), dtype=bool)
    cheapest = columns.least(np.zeros(len(columns.limit)))
    draws = np.random.default_rng(SEED).random((ORDERS, len(jobs)))
    keys = (-columns.fleet.worths / cheapest, np.array([j.end for j in jobs]), *draws)
    found = [in_order(columns, np.argsort(key, kind="stable").tolist()) for key in keys]
    for each in found:
        known[each] = True
    return min(found, key=partial(fleet_usd, columns)), known


def in_order(columns: Columns, order: Sequence[int], value: Floats | None = None) -> list[int]:
    """The columns that jobs take one after the other: of those that fit the one of least value.

    By default that is its cost. Jobs that others wait for come first.
    """
    value = columns.usd if value is None else value
    left, chosen, jobs = columns.limit.copy(), list[int](), columns.fleet.jobs
    for number in sorted(order, key=columns.fleet.depths.__getitem__):
        first, end = np.searchsorted(columns.job, (number, number + 1)).tolist()
        fitting = columns.fitting(left, first, end)
        if len(fitting):
            column = int(min(fitting, key=lambda c: (value[c], columns.start[c])))
            if columns.usd[column] < jobs[number].worth:
                columns.take(left, column)
                chosen.append(column)
    return chosen


def _as_early_as_possible(columns: Columns, chosen: Sequence[int]) -> list[int]:
    """The chosen ways, each as early as the others leave room, the first before the later."""
    left = columns.limit.copy()
    for column in chosen:
        columns.take(left, column)
    moved = list[int]()
    for column in sorted(chosen, key=lambda c: int(columns.start[c])):
        columns.take(left, column, -1.0)
        first = column - int(columns.start[column] - columns.fleet.jobs[columns.job[column]].first)
        earliest = int(columns.fitting(left, first, column + 1)[0])
        columns.take(left, earliest)
        moved.append(earliest)
    return sorted(moved)


def _relaxed(columns: Columns, known: Bools, until: float) -> tuple[float, Floats, Floats]:
    """The bound of the relaxation, the prices of its rows, and how much of each column it takes."""
    price, share = np.zeros(len(columns.limit)), np.zeros(len(columns.usd))
    bound = columns.bound(price)
    while process_time() < until:
        solution, solved = _solved(columns, known, until)
        if solution.status != "optimal":
            break
        share[known] = [solution.values[f"x{c}"] for c in np.flatnonzero(known).tolist()]
        if columns.bound(solved) > bound:
            bound, price = columns.bound(solved), solved
        if solution.objective - bound <= CLOSE * abs(solution.objective):
            break
        known |= _rank_in_job(columns, columns.reduced(solved) + known * BARRED) < MORE
    return bound, price, share


def _rounded(columns: Columns, over: Floats, share: Floats) -> list[int]:
    """The relaxation in whole numbers: the surest jobs first, each on its largest share.

    Where that does not fit, on what is over the cost of the job by the least.
    """
    most = np.zeros(len(columns.fleet.jobs))
    np.maximum.at(most, columns.job, share)
    value = over / max(float(over.max(initial=0.0)), 1.0) - 2.0 * share
    return in_order(columns, np.argsort(-most, kind="stable").tolist(), value)


def _solved(columns: Columns, known: Bools, until: float) -> tuple[Solution, Floats]:
    """The relaxation with the known columns, and the price of every row."""
    every = np.ones(len(columns.fleet.jobs), dtype=bool)
    model = _model(columns, known, columns.limit, every)
    solution = solve(model, max(until - process_time(), 1.0))
    price = np.zeros(len(columns.limit))
    for name, dual in solution.duals.items():
        if name.startswith("r"):
            price[int(name[1:])] = max(-dual, 0.0)
    return solution, price


def _improved(
    columns: Columns, price: Floats, best: list[int], bound: float, until: float
) -> tuple[list[int], float]:
    """Plan some jobs anew, all others staying, until that improves nothing or the gap is small.

    What is over the cost of its job by more than the gap is part of no better plan of the fleet.
    Where all jobs are planned at once on all other columns, what is found is the best.
    """
    least, draws, vain = columns.at_least(price), np.random.default_rng(SEED), 0
    over = columns.reduced(price) - least[columns.job]
    while vain < VAIN and process_time() < until:
        gap = fleet_usd(columns, best) - bound
        near = over <= gap + CLOSE * abs(bound)
        every = near.sum() <= MOST
        if gap <= (CLOSE if every else GAP) * abs(bound):
            break
        near &= every | (_rank_in_job(columns, over) < FEW)
        regret = columns.fleet.worths - least
        regret[columns.job[best]] = over[best]
        free = _drawn(columns, near, regret, draws.random(len(regret)))
        found, proven = _replanned(columns, near & free[columns.job], free, best, until)
        if every and proven:
            return found, fleet_usd(columns, found)
        vain += 1
        if fleet_usd(columns, found) < fleet_usd(columns, best) - CLOSE * abs(bound):
            best, vain = found, 0
    return best, bound


def _rank_in_job(columns: Columns, value: Floats) -> Ints:
    """The place of each column among those of its job, the least first."""
    order, rank = np.lexsort((value, columns.job)), np.zeros(len(value), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(columns.job, columns.job[order])
    return rank


def _drawn(columns: Columns, near: Bools, regret: Floats, draw: Floats) -> Bools:
    """As many jobs as one program may have, drawn by what they cost more than they might."""
    weight = regret + regret.mean() + TOLERANCE
    order = np.argsort(-(draw ** (1.0 / weight)), kind="stable")
    each = np.bincount(columns.job, near, len(draw))
    free = np.zeros(len(draw), dtype=bool)
    free[order[np.cumsum(each[order]) <= MOST]] = True
    return free


def _replanned(
    columns: Columns, some: Bools, free: Bools, best: list[int], until: float
) -> tuple[list[int], bool]:
    """The best plan of the free jobs on some columns, next to the others; whether it is proven."""
    left, stay = columns.limit.copy(), [c for c in best if not free[columns.job[c]]]
    for column in stay:
        columns.take(left, column)
    some[[c for c in best if free[columns.job[c]]]] = True
    model = _model(columns, some, left, free, whole=True)
    solution = solve(model, max(until - process_time(), 1.0), gap=0.0)
    if not solution.values:
        return best, False
    found = [c for c in np.flatnonzero(some).tolist() if solution.values[f"x{c}"] > 0.5]
    better = min(best, sorted([*stay, *found]), key=partial(fleet_usd, columns))
    return better, solution.status == "optimal"


def _model(columns: Columns, some: Bools, left: Floats, free: Bools, whole: bool = False) -> Model:
    """The program of some columns of the free jobs, with what is left of the rows."""
    model = Model("fleet", whole=whole)
    run: dict[int, dict[str, float]] = {j: {f"z{j}": 1.0} for j in np.flatnonzero(free).tolist()}
    for j in run:
        model.variable(f"z{j}", 1.0)
        model.objective[f"z{j}"] = columns.fleet.jobs[j].worth
    for c in np.flatnonzero(some).tolist():
        model.variable(f"x{c}", 1.0)
        model.objective[f"x{c}"] = float(columns.usd[c])
        run[int(columns.job[c])][f"x{c}"] = 1.0
    for j, terms in run.items():
        model.row(f"job{j}", terms, "=", 1.0)
    mine, rows = some[columns.at], dict[int, dict[str, float]]()
    entries = (columns.row[mine], columns.at[mine], columns.factor[mine])
    for row, column, factor in zip(*(each.tolist() for each in entries), strict=True):
        rows.setdefault(row, {})[f"x{column}"] = factor
    for row, terms in rows.items():
        model.row(f"r{row}", terms, "<=", float(left[row]))
    return model
