"""The first answers to every preset, and what a practitioner would object to."""

import csv
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog
from recommender.inputs.limits import parse_limit
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.job.preset_files import presets
from recommender.plan.answer import Answer
from recommender.plan.limits import LIMITS, Limits
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


OWN = "Own jobs"  # the section of those that come with no preset


@dataclass(frozen=True, slots=True)
class Question:
    """A job under some limits, and where it stands on the page."""

    section: str  # a preset, or `OWN`
    name: str
    job: Job
    limits: Limits


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """One question, and what it was answered."""

    question: Question
    answer: Answer


def questions(only: tuple[str, ...] = ()) -> Iterator[Question]:
    """Every preset under four limits and thirty jobs of one's own; or some sections only."""
    for preset in presets():
        for name, limits in QUESTIONS.items():
            if not only or preset in only:
                yield Question(preset, name, find_job(preset), limits)
    if not only or OWN in only:
        yield from own_questions()


def own_questions() -> Iterator[Question]:
    """The rows of own_jobs.csv, each as on the command line."""
    text = files("tests.research.first_answers").joinpath("own_jobs.csv").read_text("utf-8")
    for row in csv.DictReader(text.splitlines()):
        job = find_job(None, flags=JobFlags(**_flags(row["job"])))
        limits = Limits()
        for flag, word in _flags(row["limit"]).items():
            if flag == "max_machines":
                limits = replace(limits, max_machines=int(word))
                continue
            limit = next(each for each in LIMITS if each.field == _FIELDS[flag])
            limits = limits.with_value(limit, parse_limit(limit)(word, flag))
        asked = f", `{row['limit']}`" if row["limit"] else ""
        yield Question(OWN, f"{row['name']}{asked}", job, limits)


_FIELDS = {"deadline": "deadline_s", "budget": "budget_usd", "hourly": "hourly_usd"}


def _flags(words: str) -> dict[str, str]:
    """Flags as on the command line, by their names."""
    parts = shlex.split(words)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {flag.removeprefix("--").replace("-", "_"): word for flag, word in pairs}


def first_answers(catalog: Catalog, only: tuple[str, ...] = ()) -> Iterator[FirstAnswer]:
    """The answer to every question, or to those of some sections."""
    for each in questions(only):
        yield FirstAnswer(each, ask(each, catalog))


def ask(question: Question, catalog: Catalog) -> Answer:
    """The answer to one question."""
    return recommend(question.job, question.limits, catalog=catalog, now=NOW)


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


def words(plan: Plan) -> str:
    """A plan as one says it aloud."""
    rented = " + ".join(
        f"{m.count}× {m.instance_type} ({m.count * m.gpus} {m.gpu}) {m.market.replace('_', ' ')}"
        for m in plan.machines
    )
    cost, time_h = plan.estimate.cost.mean, plan.estimate.time.p50 / 3600.0
    usd = f"{cost:,.0f}" if cost >= 10.0 else f"{cost:.2g}"
    return f"{rented}: {usd} USD, {time_h:,.1f} h"
