"""Collects what a report contains besides the answer: promising plans with their simulated runs.

A page with adjustable limits also needs plans of other limits: the cheapest, the fastest, and the
cheapest under other deadlines, whose fallbacks start for these deadlines. Of all plans of the
pool's selections, those closest to the frontier of cost and time are kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Candidate
from recommender.performance.checkpoint import CHECKPOINT_PATHS
from recommender.plan.limits import Limits
from recommender.plan.report_data import PlanKind, ReportData, SimulatedPlan, Timeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_details import PlanDetails, spread_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import PRINTED
from recommender.planner.swings import swings
from recommender.planner.timeline import timelines
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import Outcomes

MAX_OTHER_PLANS = 150  # plans next to those of the table: 1.4 kB each in a page
MAX_TIMELINES = 12  # plans whose single runs are shown
MAX_SWINGS = 8  # plans that are compared if a figure is different
OTHER_DEADLINES = (0.5, 0.7, 1.5, 2.5)  # of the requested deadline
BETWEEN = 5  # deadlines between the fastest and the cheapest plan, if none is requested

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A candidate and the limits under which it was found."""

    candidate: Candidate
    limits: Limits

    @property
    def due_s(self) -> float | None:
        """The deadline that decides when its fallback starts; None without a fallback."""
        return None if self.candidate.fallback < 0 else self.limits.deadline_s

    @property
    def key(self) -> Key:
        """The key under which two of them are the same plan."""
        c = self.candidate
        return (c.site, c.entries, c.counts, c.checkpoint_path, c.fallback, self.due_s, c.early_s)


def report_data(
    pool: PlanPool,
    table: Sequence[Evaluated],
    baselines: Sequence[Evaluated],
    lead: int,
    with_runs: bool = True,
) -> ReportData:
    """The plans of the table, the baselines, and others near the frontier.

    `lead` is the number of the leading plan. Unless `with_runs`, single runs and break-evens are
    left out.
    """
    limits = pool.problem.limits
    _select_under_other_limits(pool)
    known = {_visible_key(pool, FoundPlan(each.candidate, limits)) for each in table}
    others = _distinct(pool, known)
    shown = [_shown(pool, each, "table", i) for i, each in enumerate(table, 1)]
    shown += [_shown(pool, each, "baseline", i) for i, each in enumerate(baselines, 1)]
    chosen = closest_to_frontier(others, MAX_OTHER_PLANS)
    simulated = _simulated_plans(pool, chosen)
    return ReportData(
        simulated_plans=(*shown, *simulated),
        timelines=_timelines(pool, table, shown) if with_runs else (),
        swings=swings(pool.problem, table[:MAX_SWINGS], lead)
        if with_runs and lead <= MAX_SWINGS
        else (),
        runs=PRINTED,
        seed=pool.problem.seed,
    )


def _timelines(
    pool: PlanPool, table: Sequence[Evaluated], shown: Sequence[SimulatedPlan]
) -> tuple[Timeline, ...]:
    """Single runs of the first plans of the table."""
    limits, seed = pool.problem.limits, pool.problem.seed
    return tuple(
        each
        for i, (evaluated, plan) in enumerate(zip(table[:MAX_TIMELINES], shown, strict=False), 1)
        for each in timelines(evaluated, i, limits.deadline_s, seed, np.array(plan.cost_usd))
    )


def _select_under_other_limits(pool: PlanPool) -> None:
    """Plans under limits that a reader may move to; the pool keeps what it selects."""
    limits = pool.problem.limits
    free = replace(limits, deadline_s=None, budget_usd=None)
    for aim in ("time", "cost"):
        pool.select(replace(free, objective=aim))
    for due_s in _other_deadlines(pool):
        pool.select(replace(free, deadline_s=due_s, objective="cost"))


def _other_deadlines(pool: PlanPool) -> list[float]:
    due_s = pool.problem.limits.deadline_s
    if due_s is not None:
        return [share * due_s for share in OTHER_DEADLINES]
    times = [found_plan.candidate.time_s for found_plan in _found_plans(pool)]
    if not times:
        return []
    rungs: list[float] = np.geomspace(min(times), max(times), BETWEEN + 2)[1:-1].tolist()
    return rungs


def _found_plans(pool: PlanPool) -> Iterator[FoundPlan]:
    """The best plans of all selections, each once."""
    found: dict[Key, FoundPlan] = {}
    for (limits, *_), selection in pool.pool.selections.items():
        for candidate in selection.plans[:MAX_OTHER_PLANS]:
            found_plan = FoundPlan(candidate, limits)
            found.setdefault(found_plan.key, found_plan)
    yield from found.values()


def _visible_key(pool: PlanPool, found_plan: FoundPlan) -> Key:
    """What distinguishes plans for a reader: machines and their first places, not later ones.

    Failover lists of several lengths are tried; of plans that look alike the cheapest is kept.
    """
    first = tuple(each.rows[0] for each in pool.builder.pools_of(found_plan.candidate))
    c = found_plan.candidate
    return (first, c.counts, c.checkpoint_path, c.fallback, found_plan.due_s)


def _distinct(pool: PlanPool, known: set[Key]) -> list[FoundPlan]:
    """The cheapest of each kind of plan that looks like no plan of the table."""
    found: dict[Key, FoundPlan] = {}
    for found_plan in sorted(
        _found_plans(pool), key=lambda found_plan: found_plan.candidate.cost_usd
    ):
        found.setdefault(_visible_key(pool, found_plan), found_plan)
    return [found_plan for looks, found_plan in found.items() if looks not in known]


def closest_to_frontier(plans: Sequence[FoundPlan], most: int) -> list[FoundPlan]:
    """Plans in layers: the frontier, then the frontier of the rest, and so on."""
    left = sorted(
        plans, key=lambda found_plan: (found_plan.candidate.cost_usd, found_plan.candidate.time_s)
    )
    kept: list[FoundPlan] = []
    while left and len(kept) < most:
        best_s = np.inf
        layer: list[FoundPlan] = []
        rest: list[FoundPlan] = []
        for found_plan in left:
            (layer if found_plan.candidate.time_s < best_s else rest).append(found_plan)
            best_s = min(best_s, found_plan.candidate.time_s)
        kept, left = kept + layer, rest
    return kept[:most]


def _shown(pool: PlanPool, each: Evaluated, kind: PlanKind, number: int) -> SimulatedPlan:
    """A plan of the answer on the paths behind its printed figures."""
    problem = pool.problem
    paths = simulate_paths(each.inputs, problem.limits.deadline_s, PRINTED, problem.seed)
    plan, fallback = each.plan, each.plan.fallback
    return SimulatedPlan(
        kind=kind,
        number=number,
        machines=plan.machines,
        fallback=() if fallback is None else fallback.machines,
        fallback_due_s=None if fallback is None else problem.limits.deadline_s,
        regions=len({site.region for site in plan.sites}),
        checkpoint_path=plan.checkpointing.path,
        usd_per_hour=plan.usd_per_hour,
        gpus=plan.gpus,
        cost=plan.estimate.cost,
        time=plan.estimate.time,
        max_usd_per_hour=plan.max_usd_per_hour,
        overhead=plan.estimate.overhead,
        cost_usd=tuple(paths.cost_usd[0].tolist()),
        time_s=tuple(paths.time_s[0].tolist()),
    )


def _simulated_plans(pool: PlanPool, chosen: Sequence[FoundPlan]) -> list[SimulatedPlan]:
    """Plans on the paths of a search; those of one deadline simulated at once."""
    details = [
        pool.builder.under(found_plan.limits).details(found_plan.candidate) for found_plan in chosen
    ]
    plans: dict[int, SimulatedPlan] = {}
    for due_s in dict.fromkeys(found_plan.due_s for found_plan in chosen):
        rows = [row for row, found_plan in enumerate(chosen) if found_plan.due_s == due_s]
        inputs = PathInputs.joined([details[row].inputs for row in rows])
        found = pool.problem.outcome_cache.outcomes(inputs, due_s)
        for place, row in enumerate(rows):
            plans[row] = _simulated_plan(chosen[row], details[row], found, place)
    return [plan for _, plan in sorted(plans.items())]


def _simulated_plan(
    found_plan: FoundPlan, details: PlanDetails, found: Outcomes, row: int
) -> SimulatedPlan:
    """A plan and one row of outcomes."""
    cost, time = found.cost_usd[row], found.time_s[row]
    return SimulatedPlan(
        kind="other",
        number=0,
        machines=details.machines,
        fallback=details.fallback_machines,
        fallback_due_s=found_plan.due_s,
        regions=_regions(details),
        checkpoint_path=CHECKPOINT_PATHS[found_plan.candidate.checkpoint_path],
        usd_per_hour=details.usd_per_hour,
        gpus=sum(m.count * m.gpus for m in details.machines),
        cost=spread_of(cost, float(found.expected_usd[row])),
        time=spread_of(time, float(time.mean())),
        max_usd_per_hour=details.max_usd_per_hour,
        overhead=float(found.overhead[row]),
        cost_usd=tuple(cost.tolist()),
        time_s=tuple(time.tolist()),
    )


def _regions(details: PlanDetails) -> int:
    return len({site.region for site in details.sites})
