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
from recommender.optimize.pool import shape_of
from recommender.performance.checkpoint import CHECKPOINT_PATHS
from recommender.plan.frontier import chance_of, unbeaten
from recommender.plan.limits import Limits
from recommender.plan.report_data import PlanKind, ReportData, SimulatedPlan, Timeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_details import PlanDetails, spread_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import PRINTED
from recommender.planner.swings import swings
from recommender.planner.timeline import timelines
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import OutcomeCache, Outcomes

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
    kind: PlanKind = "other"
    number: int = 0

    @property
    def due_s(self) -> float | None:
        """The deadline that decides when its fallback starts; None without a fallback."""
        return None if self.candidate.fallback < 0 else self.limits.deadline_s


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
    problem = pool.problem
    _select_under_other_limits(pool)
    kinds: dict[PlanKind, Sequence[Evaluated]] = {"table": table, "baseline": baselines}
    named = [
        FoundPlan(each.candidate, problem.limits, kind, number)
        for kind, plans in kinds.items()
        for number, each in enumerate(plans, 1)
    ]
    known = {_visible_key(pool, each) for each in named if each.kind == "table"}
    others = closest_to_frontier(_distinct(pool, known), MAX_OTHER_PLANS)
    runs = _simulated_plans(pool, named, problem.printed_cache)
    printed = [each.plan.estimate.chance for plans in kinds.values() for each in plans]
    shown = [_weighted(*each, problem.limits) for each in zip(runs, printed, strict=True)]
    return ReportData(
        simulated_plans=(*shown, *_simulated_plans(pool, others, problem.outcome_cache)),
        timelines=_timelines(pool, table, shown) if with_runs else (),
        swings=swings(problem, table[:MAX_SWINGS], lead)
        if with_runs and lead <= MAX_SWINGS
        else (),
        runs=PRINTED,
        seed=problem.seed,
    )


def _weighted(plan: SimulatedPlan, chance: float, limits: Limits) -> SimulatedPlan:
    """A plan whose runs give its printed chance, which was counted on more of them."""
    counted = chance_of(plan, limits)
    return replace(plan, weight=plan.weight * chance / counted) if counted else plan


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
    times = [each.candidate.time_s for each in _found_plans(pool)]
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
            key = shape_of(candidate), found_plan.due_s, candidate.early_s
            found.setdefault(key, found_plan)
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
    for each in sorted(_found_plans(pool), key=lambda each: each.candidate.cost_usd):
        found.setdefault(_visible_key(pool, each), each)
    return [each for looks, each in found.items() if looks not in known]


def closest_to_frontier(plans: Sequence[FoundPlan], most: int) -> list[FoundPlan]:
    """Plans in layers: the frontier, then the frontier of the rest, and so on."""
    left, kept = dict(enumerate(plans)), list[FoundPlan]()
    while left and len(kept) < most:
        for row in list(unbeaten(left, lambda row: _cost_and_time(plans[row]))):
            kept.append(left.pop(row))
    return kept[:most]


def _cost_and_time(each: FoundPlan) -> tuple[float, float]:
    return each.candidate.cost_usd, each.candidate.time_s


def _simulated_plans(
    pool: PlanPool, plans: Sequence[FoundPlan], cache: OutcomeCache
) -> list[SimulatedPlan]:
    """Plans on the paths of a cache; those of one deadline simulated at once."""
    details = [pool.builder.under(each.limits).details(each.candidate) for each in plans]
    found: dict[int, SimulatedPlan] = {}
    for due_s in dict.fromkeys(each.due_s for each in plans):
        rows = [row for row, each in enumerate(plans) if each.due_s == due_s]
        inputs = PathInputs.joined([details[row].inputs for row in rows])
        outcomes = cache.outcomes(inputs, due_s)
        for place, row in enumerate(rows):
            found[row] = _simulated_plan(plans[row], details[row], outcomes, place)
    return [found[row] for row in range(len(plans))]


def _simulated_plan(
    plan: FoundPlan, details: PlanDetails, found: Outcomes, row: int
) -> SimulatedPlan:
    """A plan and one row of outcomes."""
    cost, time = found.cost_usd[row], found.time_s[row]
    return SimulatedPlan(
        kind=plan.kind,
        number=plan.number,
        machines=details.machines,
        fallback=details.fallback_machines,
        fallback_due_s=plan.due_s,
        regions=len({site.region for site in details.sites}),
        checkpoint_path=CHECKPOINT_PATHS[plan.candidate.checkpoint_path],
        usd_per_hour=details.usd_per_hour,
        gpus=sum(m.count * m.gpus for m in details.machines),
        cost=spread_of(cost, float(found.expected_usd[row])),
        time=spread_of(time, float(time.mean())),
        max_usd_per_hour=details.max_usd_per_hour,
        overhead=float(found.overhead[row]),
        cost_usd=tuple(cost.tolist()),
        time_s=tuple(time.tolist()),
        weight=float(details.inputs.fits[0]),
    )
