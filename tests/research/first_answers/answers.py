"""The first answers to every preset, and what a practitioner would object to."""

from collections.abc import Iterator
from dataclasses import dataclass

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog
from recommender.job.jobfile import find_job
from recommender.job.preset_files import presets
from recommender.plan.answer import Answer, Pick
from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from tests.research.first_answers.published import NOW

QUESTIONS = {
    "24 h": Limits(deadline_s=24 * 3600.0),
    "200 USD": Limits(budget_usd=200.0),
    "30 USD/h": Limits(hourly_usd=30.0),
    "no limit": Limits(),
}
# What makes an engineer hesitate to rent a plan; shares of its time or runs (our own judgement).
MAX_START_UP = 0.4
MOST_OVERHEAD = 0.2
MAX_MACHINES = 8
MAX_DAYS = 30.0
MIN_CHANCE = 0.9


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """One question, and what it was answered."""

    preset: str
    question: str  # of QUESTIONS
    answer: Answer


def first_answers(catalog: Catalog, only: tuple[str, ...] = ()) -> Iterator[FirstAnswer]:
    """Every preset under every question, or some presets only."""
    for preset in only or presets():
        for question in QUESTIONS:
            yield FirstAnswer(preset, question, ask(preset, question, catalog))


def ask(preset: str, question: str, catalog: Catalog) -> Answer:
    """One preset under one of the questions."""
    return recommend(find_job(preset), QUESTIONS[question], catalog=catalog, now=NOW)


def objections(plan: Plan) -> tuple[str, ...]:
    """What a practitioner would say against a plan; empty where nothing."""
    estimate = plan.estimate
    start_up = estimate.split.start_up_s / estimate.time.p50
    machines = sum(m.count for m in plan.machines)
    days = estimate.time.p50 / 86400.0
    said = (
        (start_up > MAX_START_UP, f"start-up is {start_up:.0%} of the time"),
        (estimate.overhead > MOST_OVERHEAD, f"{estimate.overhead:.0%} overhead"),
        (machines > MAX_MACHINES, f"{machines} machines"),
        (days > MAX_DAYS, f"{days:.0f} days"),
        (estimate.chance < MIN_CHANCE, f"chance {estimate.chance:.0%}"),
        (_guessed(plan), "speed from a data sheet"),
    )
    return tuple(words for applies, words in said if applies)


def _guessed(plan: Plan) -> bool:
    return plan.evidence is not None and plan.evidence.speed == "guessed"


def words(pick: Pick) -> str:
    """A plan as one says it aloud."""
    plan = pick.plan
    rented = " + ".join(
        f"{m.count}× {m.instance_type} ({m.count * m.gpus} {m.gpu}) {m.market.replace('_', ' ')}"
        for m in plan.machines
    )
    cost, time_h = plan.estimate.cost.mean, plan.estimate.time.p50 / 3600.0
    usd = f"{cost:,.0f}" if cost >= 10.0 else f"{cost:.2g}"
    return f"{rented}: {usd} USD, {time_h:,.1f} h"
