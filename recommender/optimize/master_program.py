"""The master program: the share of the job's work of each configuration.

A column c is a cluster (an offer or a failover list × machines) with a checkpoint path, alone or
with a fallback, rated as if it did the whole job (`columns.py`); y_c is the share of the work done
on it.

    min  Σ usd_c·y_c                      or, if time is the goal, Σ hours_c·y_c
    work       Σ y_c = 1
    deadline   Σ T_c·y_c <= D             T_c: hours, quantile at the confidence
    budget     Σ K_c·y_c <= B             K_c: USD, quantile at the confidence
    overhead   Σ o_c·y_c <= ω             o_c: overhead per useful work
    hourly     Σ p_c·y_c <= H             p_c: maximum USD per hour
    quota_q    Σ u_qc·y_c <= Q_q          u_qc: use of quota q by its machines
    0 <= y_c <= 1

Hourly and quota rows never bind: a cluster that exceeds one of them cannot be started, so it is no
column. The program only ranks, because renewal rates are not bounds: its solution selects the plans
that the Monte Carlo evaluates first, and the exact search proves or improves. An answer reports it
with simulated rates (`planner/reported_program.py`).
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import Cluster, Columns, rated_columns
from recommender.optimize.linear_program import Model, Solution, solve
from recommender.optimize.mixed_columns import mixed_clusters
from recommender.optimize.space import Space
from recommender.performance.checkpoint import CHECKPOINT_PATHS

MAX_COLUMNS = 120  # kept of those that no other beats, best estimates first
MAX_NAME = 100  # characters of a name that PuLP writes into an .lp file
HOUR_S = 3600.0
DEADLINE, BUDGET, OVERHEAD, HOURLY, WORK = "deadline", "budget", "overhead", "hourly", "work"


@dataclass(frozen=True)
class MasterProgram:
    """The program of one question, its columns and its solution."""

    model: Model
    names: tuple[str, ...]  # of the columns
    columns: Columns
    solution: Solution
    space: Space
    clusters: tuple[Cluster, ...]  # all that were estimated
    estimates: Columns  # of these, without fallbacks
    first: tuple[Cluster, ...]  # in the order in which they are simulated

    @property
    def share(self) -> Floats:
        """Share of the work of each column; zeros without a solution."""
        return np.array([self.solution.values.get(name, 0.0) for name in self.names])

    @property
    def spot_share(self) -> float:
        """Share of the work done on clusters with spot machines."""
        parts = self.work(self.share).items()
        return sum((part for (_, spot), part in parts if spot), 0.0)

    def work(self, share: Floats) -> dict[tuple[str, bool], float]:
        """Shares of the work by machines in words and whether some are spot, fallbacks apart."""
        found: dict[tuple[str, bool], float] = {}
        c = self.columns
        for row in np.flatnonzero(share > 0.0).tolist():
            cluster, fallback = self.clusters[c.cluster[row]], int(c.fallback[row])
            late = float(share[row] * c.fallback_share[row])
            mine = configuration(self.space, cluster), bool(c.spot[row])
            found[mine] = found.get(mine, 0.0) + float(share[row]) - late
            if late > 0.0:
                other = fallback_words(self.space, cluster.site, fallback), False
                found[other] = found.get(other, 0.0) + late
        return found

    def solved_again(self, columns: Columns, clusters: Sequence[Cluster]) -> "MasterProgram":
        """The program of other columns, made of these clusters."""
        model, names, solution = _solved(self.space, clusters, columns)
        return replace(
            self, model=model, names=names, columns=columns, solution=solution,
            clusters=tuple(clusters),
        )  # fmt: skip

    def conflict(self) -> tuple[str, ...]:
        """An irreducible set of rows that cannot be met together; () if all can."""
        if self.solution.status != "infeasible":
            return ()
        rows = [name for name in self.model.rows if name != WORK]
        for name in list(rows):
            fewer = [other for other in rows if other != name]
            if solve(_with_rows(self.model, fewer)).status == "infeasible":
                rows = fewer
        return tuple(rows)


def _with_rows(model: Model, names: Sequence[str]) -> Model:
    kept = {name: row for name, row in model.rows.items() if name in names or name == WORK}
    return Model(model.name, model.objective, model.variables, kept)


def master_program(space: Space, clusters: Sequence[Cluster]) -> MasterProgram | None:
    """Build and solve the program of the columns that no other dominates; None without columns.

    It also contains mixes of markets around the best clusters.
    """
    found, with_fallback = rated_columns(space, clusters) if clusters else (None, None)
    if found is None or with_fallback is None or not len(found):
        return None
    mixes = mixed_clusters(space, clusters, found)
    if mixes:
        more, more_with_fallback = rated_columns(space, mixes)
        found = found.with_more(more, len(clusters))
        with_fallback = with_fallback.with_more(more_with_fallback, len(clusters))
        clusters = [*clusters, *mixes]
    both = Columns.joined([found, with_fallback])
    both = both.take(np.argsort(both.goal_value, kind="stable"))
    kept = both.take(_undominated(space, both))
    kept = kept.take(np.argsort(kept.goal_value, kind="stable")[:MAX_COLUMNS])
    model, names, solution = _solved(space, clusters, kept)
    order = _order(found, kept, [solution.values.get(name, 0.0) for name in names])
    first = tuple(clusters[i] for i in order)
    return MasterProgram(
        model, names, kept, solution, space, tuple(clusters), estimates=found, first=first
    )


def _solved(
    space: Space, clusters: Sequence[Cluster], c: Columns
) -> tuple[Model, tuple[str, ...], Solution]:
    words = [_words(space, clusters[c.cluster[row]], int(c.fallback[row])) for row in range(len(c))]
    names = tuple(map(_name, range(1, len(words) + 1), words, c.checkpoint_path.tolist()))
    model = _model(space, clusters, c, names)
    return model, names, solve(model)


def _words(space: Space, cluster: Cluster, fallback: int) -> str:
    words = configuration(space, cluster)
    if fallback < 0:
        return words
    return f"{words} then {fallback_words(space, cluster.site, fallback)}"


def fallback_words(space: Space, site: int, row: int) -> str:
    """A fallback in words: "2x p4d.24xlarge on-demand"."""
    fall = space.sites[site].fallbacks
    return f"{fall.count[row]}x {_type_name(space, int(fall.kind[row]))} on-demand"


def _type_name(space: Space, kind: int) -> str:
    return space.columns.names[kind].split("/")[-1]


def _order(found: Columns, kept: Columns, share: Sequence[float]) -> list[int]:
    """Clusters in the order in which they are simulated: of the solution, then by their estimates.

    The estimate of a cluster is that of its own small program, itself and the fallbacks it
    may have: a reduced cost says little of plans that use their spot machines for no time.
    """
    basic = sorted((-y, c) for y, c in zip(share, kept.cluster.tolist(), strict=True) if y > 1e-9)
    by_goal = np.argsort(found.goal_value, kind="stable")
    near = found.cluster[by_goal[np.isfinite(found.goal_value[by_goal])]]
    return list(dict.fromkeys([*(cluster for _, cluster in basic), *near.tolist()]))


def _undominated(space: Space, c: Columns) -> Bools:
    """Columns that no other equals or beats in the objective and in every row that can bind."""
    limits = space.limits
    figures = [c.time_s if limits.goal == "time" else c.usd]
    figures += [] if limits.deadline_s is None else [c.time_quantile_s]
    figures += [] if limits.budget_usd is None else [c.usd_quantile]
    figures += [] if limits.max_overhead is None else [c.overhead]
    order = np.lexsort(tuple(reversed(figures)))
    table = np.stack(figures)[:, order]
    beaten = np.zeros(len(c), dtype=bool)
    for i in range(len(c)):
        if not beaten[i]:
            worse = (table[:, i + 1 :] >= table[:, i : i + 1]).all(axis=0)
            beaten[i + 1 :] |= worse
    kept = np.zeros(len(c), dtype=bool)
    kept[order[~beaten]] = True
    return kept


def _name(number: int, words: str, path: int) -> str:
    """A readable name: "y003_2x_p4d_24xlarge_od_object_store"; cut, but unique."""
    short = words.replace("Standard_", "").replace("on-demand", "od")
    name = re.sub(r"\W+", "_", f"y{number:03} {short} {CHECKPOINT_PATHS[path]}")
    return name[:MAX_NAME]


def configuration(space: Space, cluster: Cluster) -> str:
    """A cluster in words: "2x p4d.24xlarge spot in 4 zones"."""
    e = space.sites[cluster.site].entries
    words = []
    for entry, count in zip(cluster.entries, cluster.counts, strict=True):
        zones = int(e.zone_count[entry])
        listed = f"spot in {zones} zone{'s' if zones > 1 else ''}"
        name = _type_name(space, int(e.kind[entry]))
        words.append(f"{count}x {name} {listed if e.spot[entry] else 'on-demand'}")
    return " + ".join(words)


def _model(space: Space, clusters: Sequence[Cluster], c: Columns, names: Sequence[str]) -> Model:
    limits = space.limits
    model = Model("which_share_of_the_work_goes_where")
    for name in names:
        model.variable(name, 1.0)

    def terms(values: Floats) -> Mapping[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    by_time = limits.goal == "time"
    model.objective = dict(terms(c.time_s / HOUR_S if by_time else c.usd))
    model.row(WORK, dict.fromkeys(names, 1.0), "=", 1.0)
    if limits.deadline_s is not None:
        model.row(DEADLINE, terms(c.time_quantile_s / HOUR_S), "<=", limits.deadline_s / HOUR_S)
    if limits.budget_usd is not None:
        model.row(BUDGET, terms(c.usd_quantile), "<=", limits.budget_usd)
    if limits.max_overhead is not None:
        model.row(OVERHEAD, terms(c.overhead), "<=", limits.max_overhead)
    mine = [clusters[number] for number in c.cluster.tolist()]
    if limits.hourly_usd is not None:
        prices = np.array([_machines(each) @ _prices(space, each) for each in mine])
        prices = np.maximum(
            prices,
            [_fallback_price(space, *pair) for pair in zip(mine, c.fallback.tolist(), strict=True)],
        )
        model.row(HOURLY, terms(prices), "<=", limits.hourly_usd)
    for site, row, quota in _quotas(space):
        use = np.array([_use(space, each, row) if each.site == site else 0.0 for each in mine])
        if use.any():
            model.row(_quota_name(space, site, row, model.rows), terms(use), "<=", quota)
    return model


def _machines(cluster: Cluster) -> Floats:
    return np.array(cluster.counts, dtype=np.float64)


def _prices(space: Space, cluster: Cluster) -> Floats:
    return space.sites[cluster.site].entries.max_usd_per_hour[list(cluster.entries)]


def _fallback_price(space: Space, cluster: Cluster, fallback: int) -> float:
    """USD per hour; 0 without a fallback."""
    return (
        float(space.sites[cluster.site].fallbacks.usd_per_hour[fallback]) if fallback >= 0 else 0.0
    )


def _quotas(space: Space) -> list[tuple[int, int, float]]:
    return [
        (index, row, float(quota))
        for index, site in enumerate(space.sites)
        for row, quota in enumerate(site.quota)
        if np.isfinite(quota)
    ]


def _quota_name(space: Space, site: int, row: int, taken: Container[str]) -> str:
    """A readable name: "quota_aws_P_on_demand_us_east_1"; with its numbers where that is taken."""
    names, numbers = space.sites[site].quota_names, f"{site}_{row}"
    name = "quota_" + (re.sub(r"\W+", "_", names[row]) if names else numbers)
    return f"{name}_{numbers}" if name in taken else name


def _use(space: Space, cluster: Cluster, row: int) -> float:
    use = space.sites[cluster.site].quota_use[row, list(cluster.entries)]
    return float(use @ _machines(cluster))
