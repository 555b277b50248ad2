"""The linear program: which clusters are simulated, and how a job's work is divided among them.

A column c is a cluster (an offer or a failover list × machines) with a checkpoint path, rated as if
it did the whole job (`rating.py`); y_c is the share of the work done on it.

    min  Σ usd_c·y_c                      or, if time is the goal, Σ hours_c·y_c
    work       Σ y_c = 1
    deadline   Σ T_c·y_c <= D             T_c: hours
    budget     Σ K_c·y_c <= B             K_c: USD, quantile at the confidence
    overhead   Σ o_c·y_c <= ω             o_c: overhead per useful work
    hourly     Σ p_c·y_c <= H             p_c: maximum USD per hour
    quota_q    Σ u_qc·y_c <= Q_q          u_qc: use of quota q by its machines
    0 <= y_c <= 1

A basic solution has one or two columns. Two are spot machines and on-demand machines that follow
them: a plan with a fallback. All pairs are worked out at once in closed form, once with T_c a
standard deviation above its mean (`RatedPlans.planned_usd`), once scenario by scenario with the
fallback where the plan's policy starts it (`goal_value`). `order` takes from both in turn: what is
simulated follows the program, and what is printed follows the simulation. The program of an answer
is solved by HiGHS with simulated rates: its shares and the worth of its rows are what the answer
shows and saves.

Hourly and quota rows never bind: a cluster that exceeds one of them cannot be started, so it is no
column.
"""

import re
from collections.abc import Container, Mapping, Sequence

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Candidate, Cluster
from recommender.optimize.fallback_choices import undominated
from recommender.optimize.linear_program import Model, Solution, solve
from recommender.optimize.rating import RatedPlans
from recommender.optimize.space import Space
from recommender.performance.checkpoint import CHECKPOINT_PATHS
from recommender.plan.limits import Limits

# Scenarios are few: a plan whose estimated chance is short by less than `BLUR` counts as one that
# meets the limits, and one that is short by less than `SHORT` comes after all that seem to.
BLUR, SHORT = 0.03, 0.12
HOPELESS = 12  # plans simulated where none may meet the limits: columns of the answer's program
MAX_COLUMNS = 120  # of an answer's program, of those that no other beats the best
MAX_NAME = 100  # characters of a name that PuLP writes into an .lp file
HOUR_S = 3600.0
DEADLINE, BUDGET, OVERHEAD, HOURLY, WORK = "deadline", "budget", "overhead", "hourly", "work"


def order(limits: Limits, plans: RatedPlans) -> Ints:
    """Rated plans in the order in which they are simulated: those of both programs in turn."""
    sure = plans.chance >= limits.confidence - BLUR
    by_scenarios = _by_goal(plans, sure)
    if limits.deadline_s is None or limits.goal == "time":
        return by_scenarios
    by_means = np.argsort(plans.planned_usd, kind="stable")
    by_means = by_means[: int(np.isfinite(plans.planned_usd).sum())]
    turns = np.full((max(len(by_scenarios), len(by_means)), 2), -1)
    turns[: len(by_scenarios), 0], turns[: len(by_means), 1] = by_scenarios, by_means
    taken = turns.ravel()
    return np.asarray(taken[taken >= 0])


def better(limits: Limits, plans: RatedPlans, goal: float) -> Ints:
    """Plans rated better than a goal that may meet the limits after all, the best first."""
    likely = plans.chance >= limits.confidence - SHORT
    return _by_goal(plans, likely & (plans.goal_value < goal))


def surest(limits: Limits, plans: RatedPlans) -> Ints:
    """Plans by the chance that they meet the limits; of equal ones the best first.

    On demand a rated chance is about the simulated one (of 1,300 plans none was a tenth off), on
    spot none at all is none; but 0 may also stand for an overhead, which an early switch lowers.
    """
    spot = 0.0 if limits.max_overhead is None else -1.0
    least = np.where(plans.places > 0.0, spot, limits.confidence - SHORT)
    ranked = np.lexsort((plans.goal_value, -np.round(plans.chance, 2)))
    hopeful = ranked[plans.chance[ranked] > least[ranked]]
    return hopeful if len(hopeful) else ranked[:HOPELESS]


def _by_goal(plans: RatedPlans, some: Bools) -> Ints:
    rows = np.flatnonzero(some)
    return np.asarray(rows[np.argsort(plans.goal_value[rows], kind="stable")])


@dataclass(frozen=True, slots=True)
class Columns(Table):
    """Simulated plans as columns of the program; shape (columns,)."""

    plans: tuple[Candidate, ...]
    usd: Floats  # expected bill if it does all of the job
    usd_quantile: Floats  # the same at the requested chance
    time_s: Floats  # trimmed mean
    time_quantile_s: Floats
    overhead: Floats
    max_usd_per_hour: Floats

    def undominated(self, limits: Limits) -> "Columns":
        """Columns that no other equals or beats in the objective and in every row that can bind."""
        figures = [self.time_s if limits.goal == "time" else self.usd]
        figures += [] if limits.deadline_s is None else [self.time_quantile_s]
        figures += [] if limits.budget_usd is None else [self.usd_quantile]
        figures += [] if limits.max_overhead is None else [self.overhead]
        rows = undominated(*figures)
        ranked = np.lexsort([each[rows] for each in reversed(figures)])
        return self.take(rows[ranked[:MAX_COLUMNS]])

    def with_others(self, others: "Columns") -> "Columns":
        """These columns and others, those of the same plan left out."""
        own = self.take(np.flatnonzero([plan not in others.plans for plan in self.plans]))
        both = ([getattr(part, name) for part in (own, others)] for name in self.__slots__[1:])
        return Columns((*own.plans, *others.plans), *map(np.concatenate, both))


@dataclass(frozen=True)
class MasterProgram:
    """The program of one question, its columns and its solution."""

    model: Model
    names: tuple[str, ...]  # of the columns
    columns: Columns
    solution: Solution
    space: Space

    @property
    def share(self) -> Floats:
        """Share of the work of each column; zeros without a solution."""
        return np.array([self.solution.values.get(name, 0.0) for name in self.names])

    def work(self, share: Floats, late: Mapping[Candidate, float]) -> dict[tuple[str, bool], float]:
        """Shares of the work by machines in words and whether some are spot, fallbacks apart.

        `late`: what share of the work of a plan its fallback does.
        """
        found: dict[tuple[str, bool], float] = {}
        for row in np.flatnonzero(share > 0.0).tolist():
            plan, part = self.columns.plans[row], float(share[row])
            entries = self.space.sites[plan.site].entries
            spot = bool(entries.spot[list(plan.entries)].any())
            parts = [((configuration(self.space, plan.cluster), spot), 1.0 - late.get(plan, 0.0))]
            if plan.fallback >= 0:
                words = fallback_words(self.space, plan.site, plan.fallback)
                parts.append(((words, False), late.get(plan, 0.0)))
            for key, of_plan in parts:
                found[key] = found.get(key, 0.0) + part * of_plan
        return {key: value for key, value in found.items() if value > 0.0}

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


def master_program(space: Space, columns: Columns, answer: Columns | None) -> MasterProgram:
    """Build and solve the program of the columns that no other dominates, and of an answer's."""
    kept = columns.undominated(space.limits)
    kept = kept if answer is None else kept.with_others(answer)
    words = [_words(space, each) for each in kept.plans]
    paths = [each.checkpoint_path for each in kept.plans]
    names = tuple(map(_name, range(1, len(words) + 1), words, paths))
    model = _model(space, kept, names)
    return MasterProgram(model, names, kept, solve(model), space)


def _words(space: Space, plan: Candidate) -> str:
    words = configuration(space, plan.cluster)
    if plan.fallback < 0:
        return words
    return f"{words} then {fallback_words(space, plan.site, plan.fallback)}"


def fallback_words(space: Space, site: int, row: int) -> str:
    """A fallback in words: "2x p4d.24xlarge on-demand"."""
    fall = space.sites[site].fallbacks
    return f"{fall.count[row]}x {_type_name(space, int(fall.kind[row]))} on-demand"


def _type_name(space: Space, kind: int) -> str:
    return space.columns.names[kind].split("/")[-1]


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


def _model(space: Space, c: Columns, names: Sequence[str]) -> Model:
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
    if limits.hourly_usd is not None:
        model.row(HOURLY, terms(c.max_usd_per_hour), "<=", limits.hourly_usd)
    for site, row, quota in _quotas(space):
        use = np.array([_use(space, each, row) if each.site == site else 0.0 for each in c.plans])
        if use.any():
            model.row(_quota_name(space, site, row, model.rows), terms(use), "<=", quota)
    return model


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


def _use(space: Space, plan: Candidate, row: int) -> float:
    use = space.sites[plan.site].quota_use[row, list(plan.entries)]
    return float(use @ np.array(plan.counts, dtype=np.float64))
