"""Simulates one plan of an answer, or machines that the user names."""

from dataclasses import dataclass
from datetime import datetime

from catalogs.catalog import Catalog
from recommender.answering import Answering
from recommender.clock import now as clock_now
from recommender.errors import UsageError
from recommender.job import Job
from recommender.limits import Choice, Limits, Progress
from recommender.plan import Answer
from recommender.question import question_of
from recommender.risk.draws import SEED
from recommender.simulate.order import Order, simulation_of
from recommender.simulate.trial import Tick
from recommender.simulation import Simulation
from recommender.today import named
from recommender.units import Comparison

NAMED = "the machines to simulate"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A simulation, or the answer that says why there is no plan to simulate."""

    simulation: Simulation | None
    answer: Answer | None = None


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
    return Rehearsal(simulation_of(plan, number, journey, presenter.question.limits, order, tick))
