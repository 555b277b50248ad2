"""Simulates one plan of an answer, or machines that the user names."""

from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, no_plan
from recommender.inputs.units import Comparison
from recommender.optimize.watch import Watch
from recommender.plan.answer import Answer
from recommender.plan.simulation import Simulation
from recommender.plan.version import __version__
from recommender.planner.current_setup import current_setup
from recommender.planner.options import AnswerOptions
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import Evaluated
from recommender.planner.problem import Problem
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
    problem: Problem,
    which: int | Comparison | None,
    order: SimulationOptions,
    options: AnswerOptions = AnswerOptions(),  # noqa: B008 (frozen)
    *,
    tick: ProgressCallback | None = None,
    watch: Watch | None = None,
) -> PlanSimulation:
    """Simulate a plan by its number (None: the leading one), or machines that the user names.

    The plan is that of an answer with these `options`; only the paths use the order's seed. Raises
    `UsageError` if there is no such plan.
    """
    if isinstance(which, Comparison):
        return _simulated(problem, current_setup(problem, which, NAMED), 0, order, tick)
    options = replace(options, top=max(options.top, which or 1))
    pipeline = Pipeline(problem, options, watch or Watch())
    plans = pipeline.table
    if not plans:
        return PlanSimulation(None, pipeline.answer())
    number = which or pipeline.lead
    if number > len(plans):
        raise no_plan("--plan", number, len(plans))
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
    # Only `--policy-table` needs it.
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
