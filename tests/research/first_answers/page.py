"""The page of first answers: every preset's answer, and a practitioner's remarks on it."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from recommender.catalogs.catalog import Catalog
from recommender.plan.answer import Trio
from recommender.plan.plan import Plan
from tests.research.first_answers.answers import FirstAnswer, objections, words
from tests.research.first_answers.published import (
    Estimated,
    PublishedRun,
    estimate_of,
    published_runs,
)

PAGE = Path(__file__).parents[3] / "docs" / "first-answers.md"
BEGIN = "<!-- begin: python -P tests/run.py tests.research.first_answers --write -->"
END = "<!-- end -->"
HEAD = (
    "| question | three plans (mean cost, median time) "
    "| evidence of the first | would one take it? |\n"
    "|:--|:--|:--|:--|\n"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A practitioner's opinion on a first answer, and what was answered before."""

    preset: str
    question: str
    before: str  # plan 1 of commit 12d7d4d where nobody would have taken it
    words: str  # "yes", "no" or "almost", and why; "not read again since" of an answer that changed


def verdicts() -> dict[tuple[str, str], Verdict]:
    """Every row of verdicts.csv, by preset and question."""
    text = files("tests.research.first_answers").joinpath("verdicts.csv").read_text("utf-8")
    found = (Verdict(**row) for row in csv.DictReader(text.splitlines()))
    return {(each.preset, each.question): each for each in found}


def answer_row(first: FirstAnswer) -> str:
    """One question: the three plans, the evidence of the leading one, and the verdict."""
    verdict = verdicts()[first.preset, first.question]
    trio = first.answer.trio
    none = "no plan (proven)" if first.answer.status == "infeasible" else "no plan found"
    plans = none if trio is None else _three(trio)
    rests = "" if trio is None else _rests_on(trio.picks[0].plan)
    before = f" Before: {verdict.before}." if verdict.before else ""
    return f"| {first.question} | {plans} | {rests} | {verdict.words}.{before} |"


def _three(trio: Trio) -> str:
    roles: dict[str, list[str]] = {}
    for pick in trio.picks:
        roles.setdefault(words(pick), []).append(pick.role)
    return "<br>".join(f"*{', '.join(names)}*: {plan}" for plan, names in roles.items())


def _rests_on(plan: Plan) -> str:
    known = plan.evidence
    if known is None:
        return ""
    grades = [f"speed {known.speed}", f"price {known.price}"]
    grades += [f"spot {known.spot}"] if known.spot else []
    return ", ".join((*grades, *objections(plan)))


def run_row(run: PublishedRun, found: Estimated) -> str:
    """One published run, the estimate for the same machine, and the current cheapest plan."""
    usd = f", {run.usd:,.0f} USD" if run.usd else ""
    span = f"{found.hours:.3g} h ({found.hours_p05:.3g}-{found.hours_p95:.3g})"
    cheap = found.cheapest
    rented = " + ".join(f"{m.count}× {m.instance_type}" for m in cheap.machines)
    return (
        f"| {run.job.removesuffix('.yaml')} | {run.gpus} | {run.hours:g} h{usd} "
        f"| {span}, {found.usd:,.0f} USD "
        f"| {rented}: {cheap.estimate.cost.mean:,.0f} USD, {cheap.estimate.time.p50 / 3600:,.0f} h "
        f"| {run.source}, {run.date} |"
    )


def tables(firsts: Iterable[FirstAnswer], catalog: Catalog) -> str:
    """The generated part of the page."""
    parts: dict[str, list[str]] = {}
    for first in firsts:
        parts.setdefault(first.preset, []).append(answer_row(first))
    answers = [f"### {name}\n\n{HEAD}" + "\n".join(rows) for name, rows in parts.items()]
    runs = "\n".join(run_row(run, estimate_of(run, catalog)) for run in published_runs())
    published = (
        "## Published runs\n\n| job | on | published | estimate for the same machine, on demand "
        f"| cheapest today | source |\n|:--|:--|:--|:--|:--|:--|\n{runs}"
    )
    return "\n\n".join((*answers, published))


def written(generated: str) -> str:
    """The page with other tables between its marks."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{generated}\n\n{END}{rest.partition(END)[2]}"
