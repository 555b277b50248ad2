"""Simulates one plan of an answer, or machines that the user names."""

from dataclasses import dataclass
from datetime import datetime

from recommender.catalogs.catalog import Catalog
from recommender.errors import UsageError
from recommender.inputs.units import Comparison
from recommender.inputs.units.times import now as clock_now
from recommender.job.job import Job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Answer, Plan
from recommender.plan.simulation import Simulation
from recommender.planner.current_setup import named
from recommender.planner.pipeline import Answering
from recommender.planner.problem import question_of
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import SEED
from recommender.simulate.paths import Tick
from recommender.simulate.simulate import Order, simulation_of
from recommender.version import __version__

NAMED = "the machines to simulate"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A simulation, or the answer that says why there is no plan to simulate."""

    simulation: Simulation | None
    answer: Answer | None = None
    policy: str | None = None  # the policy table as CSV, where it was asked for


def rehearse(
    job: Job,
    limits: Limits,
    choice: Choice,
    *,
    catalog: Catalog,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    number: int = 1,
    machines: Comparison | None = None,
    order: Order = Order(),  # noqa: B008 (frozen)
    tick: Tick | None = None,
    top: int = 5,
    prove: bool = False,
    now: datetime | None = None,
) -> Rehearsal:
    """Simulate plan `number` under the limits, or the machines named.

    The plan is that of `recommend` under the same limits; only the histories are of the order's
    seed. Raises `UsageError` for a plan that is not there.
    """
    moment = clock_now() if now is None else now
    question = question_of(job, limits, choice, catalog, progress, moment, SEED)
    if machines is not None:
        presenter, candidate = named(question, machines, NAMED)
        plan, number = presenter.plan(candidate, ("today",)), 0
    else:
        asked = Answering(question, max(top, number), None, prove, None)
        plans = asked.plans()
        if not plans:
            return Rehearsal(None, asked.answer())
        if number > len(plans):
            raise UsageError(f"--plan {number}: there are {len(plans)} plans")
        presenter, plan = asked.presenter, plans[number - 1]
        candidate = presenter.candidate_of(plan)
    journey = presenter.journey(candidate)
    limits = presenter.question.limits
    table = _table(journey, limits, plan, catalog, order) if order.policy_table else None
    return Rehearsal(simulation_of(plan, number, journey, limits, order, tick), policy=table)


def _table(journey: PathInputs, limits: Limits, plan: Plan, catalog: Catalog, order: Order) -> str:
    from recommender.policies.plan_policy import policy_csv, problem_of, unfit, words_of

    why = unfit(journey, limits.deadline_s)
    if why is not None:
        raise UsageError(f"--policy-table: {why}; choose another --plan or leave it out")
    problem = problem_of(journey, limits.deadline_s)
    rented = ", ".join(
        f"{m.count}x {m.instance_type} {m.market} {m.region}"
        for m in (*plan.machines, *(plan.fallback.machines if plan.fallback else ()))
    )
    law = "" if plan.spot is None else f"{plan.spot.name} ({plan.spot.basis}, {plan.spot.as_of})"
    return policy_csv(
        problem,
        f"recommend {__version__}; catalog {catalog.version}; seed {order.seed}; {rented}; "
        f"{words_of(problem)}; spot class {law}",
    )
