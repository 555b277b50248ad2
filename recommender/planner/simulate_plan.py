"""Simulates one plan of an answer, or machines that the user names."""

from datetime import datetime

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.units import Comparison
from recommender.inputs.units.times import now as clock_now
from recommender.job.job import Job
from recommender.optimize.search_state import Watch
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.simulation import Simulation
from recommender.plan.version import __version__
from recommender.planner.current_setup import current_setup
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import Problem, planning_problem
from recommender.risk.random_numbers import SEED
from recommender.simulation.paths import ProgressCallback
from recommender.simulation.simulate import SimulationOptions, simulation_of

NAMED = "the machines"


@dataclass(frozen=True, slots=True)
class PlanSimulation:
    """A simulation, or the answer that says why there is no plan to simulate."""

    simulation: Simulation | None
    answer: Answer | None = None
    policy: str | None = None  # the policy table as CSV, if requested


def simulate_plan(
    job: Job,
    limits: Limits,
    choice: Choice,
    *,
    catalog: Catalog,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    number: int | None = None,
    machines: Comparison | None = None,
    order: SimulationOptions = SimulationOptions(),  # noqa: B008 (frozen)
    tick: ProgressCallback | None = None,
    top: int = 5,
    prove: bool = False,
    now: datetime | None = None,
    watch: Watch | None = None,
) -> PlanSimulation:
    """Simulate plan `number` under the limits (default: the leading one), or the named machines.

    The plan is that of `recommend` under the same limits; only the paths use the order's seed.
    Raises `UsageError` if there is no such plan.
    """
    moment = clock_now() if now is None else now
    problem = planning_problem(job, limits, choice, catalog, progress, moment, SEED)
    if machines is not None:
        return _simulated(problem, current_setup(problem, machines, NAMED), 0, order, tick)
    pipeline = Pipeline(problem, max(top, number or 1), prove=prove, watch=watch or Watch())
    plans = pipeline.table
    if not plans:
        return PlanSimulation(None, pipeline.answer())
    number = number or pipeline.lead
    if number > len(plans):
        raise UsageError(f"--plan {number}: there are {len(plans)} plans")
    return _simulated(problem, plans[number - 1], number, order, tick)


def _simulated(
    problem: Problem,
    evaluated: Evaluated,
    number: int,
    order: SimulationOptions,
    tick: ProgressCallback | None,
) -> PlanSimulation:
    policy = _policy_csv(problem, evaluated, order) if order.policy_table else None
    simulation = simulation_of(
        evaluated.plan, number, evaluated.inputs, problem.limits, order, tick
    )
    return PlanSimulation(simulation, policy=policy)


def _policy_csv(problem: Problem, evaluated: Evaluated, order: SimulationOptions) -> str:
    from recommender.policies.plan_policy import policy_csv, problem_of, why_no_policy, words_of

    plan, deadline_s = evaluated.plan, problem.limits.deadline_s
    why = why_no_policy(evaluated.inputs, deadline_s)
    if why is not None:
        raise UsageError(f"--policy-table: {why}; choose another --plan or leave it out")
    programme = problem_of(evaluated.inputs, deadline_s)
    rented = ", ".join(
        f"{m.count}x {m.instance_type} {m.market} {m.region}"
        for m in (*plan.machines, *(plan.fallback.machines if plan.fallback else ()))
    )
    law = "" if plan.spot is None else f"{plan.spot.name} ({plan.spot.basis}, {plan.spot.as_of})"
    return policy_csv(
        programme,
        f"recommend {__version__}; catalog {problem.catalog.version}; seed {order.seed}; {rented}; "
        f"{words_of(programme)}; spot class {law}",
    )
