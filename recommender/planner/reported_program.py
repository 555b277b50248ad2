"""The linear program that an answer shows and saves: with simulated rates where they count.

Closed-form rates select what is simulated first. After the search, the plan that it found is one of
the columns, and every column that the solution uses has the rates of its simulation.
"""

from dataclasses import replace

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import Cluster, Columns
from recommender.optimize.master_program import MasterProgram
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Space
from recommender.planner.plan_builder import Evaluated, PlanBuilder
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import trimmed_mean

ROUNDS = 20  # of solving, and of simulating what the solution uses; most programs need three
USED = 1e-6  # share of the work above which a column is part of the solution


@dataclass(frozen=True, slots=True)
class ReportedProgram:
    """The program of an answer, and the column of its best plan; -1: no plan was found."""

    program: MasterProgram
    row: int = -1

    @property
    def plan_share(self) -> float:
        """The share of the work that the program gives to the best plan."""
        return float(self.program.share[self.row])

    @property
    def plan_work(self) -> dict[tuple[str, bool], float]:
        """Shares of the work as the best plan divides it, as `MasterProgram.work` has them."""
        alone = np.zeros(len(self.program.names))
        alone[self.row] = 1.0
        return self.program.work(alone)

    @property
    def saving(self) -> float:
        """By which share the division of the work is better than the best plan alone."""
        name = self.program.names[self.row]
        whole = self.program.model.objective.get(name, 0.0)
        return max(1.0 - self.program.solution.objective / whole, 0.0) if whole > 0.0 else 0.0


def reported_program(
    program: MasterProgram, builder: PlanBuilder, best: Evaluated
) -> ReportedProgram:
    """The program with the best plan among its columns, and simulated rates of what it uses."""
    space = _space_of(builder, best.candidate)
    program, row = _with_plan(replace(program, space=space), best.candidate)
    columns = program.columns
    if best.plan.fallback is not None:
        columns = columns.with_figures(row, fallback_share=best.plan.fallback.work_share)
    new, simulated = {row: best.inputs}, {row}
    for _ in range(ROUNDS):
        for each, inputs in new.items():
            columns = _with_rates(space, columns, each, inputs)
        program = program.solved_again(columns, program.clusters)
        used = np.flatnonzero(program.share > USED).tolist()
        new = {
            r: builder.details(_candidate(program, r)).inputs for r in used if r not in simulated
        }
        if not new:
            break
        simulated |= set(new)
    return ReportedProgram(program, row)


def _space_of(builder: PlanBuilder, plan: Candidate) -> Space:
    """The space of the search; with all fallbacks of its site where a plan has another one."""
    space = builder.problem.space(builder.sites)
    if plan.fallback < len(space.sites[plan.site].fallbacks):
        return space
    sites = list(space.sites)
    sites[plan.site] = builder.with_all_fallbacks(plan.site).sites[0]
    return replace(space, sites=tuple(sites))


def _candidate(program: MasterProgram, row: int) -> Candidate:
    c = program.columns
    cluster = program.clusters[c.cluster[row]]
    path, fallback = int(c.checkpoint_path[row]), int(c.fallback[row])
    return Candidate(cluster.site, cluster.entries, cluster.counts, path, fallback)


def _with_plan(program: MasterProgram, plan: Candidate) -> tuple[MasterProgram, int]:
    """The program with a column of a plan, and its row: the last one if it had none."""
    c, clusters = program.columns, program.clusters
    cluster = Cluster(plan.site, plan.entries, plan.counts)
    same = (c.checkpoint_path == plan.checkpoint_path) & (c.fallback == plan.fallback)
    for row in np.flatnonzero(same).tolist():
        if clusters[c.cluster[row]] == cluster:
            return program, row
    spot = program.space.sites[plan.site].entries.spot[list(plan.entries)]
    one = replace(
        c.take(np.array([0])),
        cluster=np.array([len(clusters)]),
        spot=np.array([bool(spot.any())]),
        fallback_share=np.zeros(1),
        checkpoint_path=np.array([plan.checkpoint_path]),
        fallback=np.array([plan.fallback]),
    )
    more = replace(program, columns=Columns.joined([c, one]), clusters=(*clusters, cluster))
    return more, len(c)


def _with_rates(space: Space, columns: Columns, row: int, inputs: PathInputs) -> Columns:
    """The columns with simulated rates in one row; of a fallback's share the estimate remains."""
    cache, limits = space.on_printed_paths().cache, space.limits
    found = cache.outcomes(inputs, limits.deadline_s)
    rank = max(int(np.ceil(limits.confidence * cache.path_count)) - 1, 0)  # of the runs in order
    return columns.with_figures(
        row,
        usd=float(found.expected_usd[0]),
        usd_quantile=float(np.sort(found.cost_usd[0])[rank]),
        time_s=float(trimmed_mean(found.time_s)[0]),
        time_quantile_s=float(np.sort(found.time_s[0])[rank]),
        overhead=float(found.overhead[0]),
    )
