"""The page of first answers: every preset's answer, and a practitioner's remarks on it."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from recommender.catalogs.catalog import Catalog
from recommender.plan.answer import Answer
from recommender.plan.effort import doubted_cost_usd
from recommender.plan.plan import Plan
from tests.research.first_answers.answers import FirstAnswer, objections, questions, words
from tests.research.first_answers.published import (
    Estimated,
    PublishedRun,
    estimate_of,
    published_runs,
)

PAGE = Path(__file__).parents[3] / "docs" / "first-answers.md"
BEGIN = "<!-- begin: python -P tests/run.py tests.research.first_answers --write -->"
END = "<!-- end -->"
HERE = Path(__file__).parent
HEAD = (
    "| job | question | the first plan (mean cost, median time) | engineer, platform | why |\n"
    "|:--|:--|:--|:--|:--|\n"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One question: its first plan and what that rests on, as of the last computation."""

    section: str
    question: str
    first: str
    evidence: str
    surer: str  # the plan that a little more of a limit would allow, where the first is a doubt
    elsewhere: str  # what to rent where its cloud has none left


@dataclass(frozen=True, slots=True)
class Verdict:
    """What two readers say of a first answer: "yes", "almost" or "no", and the main reason."""

    section: str
    question: str
    engineer: str  # who pays for the GPUs
    platform: str  # who has to get them running
    why: str


def rows() -> list[Row]:
    """Every row of answers.csv."""
    return [Row(**row) for row in _table("answers.csv")]


def verdicts() -> dict[tuple[str, str], Verdict]:
    """Every row of verdicts.csv, by section and question."""
    found = (Verdict(**row) for row in _table("verdicts.csv"))
    return {(each.section, each.question): each for each in found}


def _table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((HERE / name).read_text("utf-8").splitlines()))


def keep(found: Sequence[FirstAnswer]) -> None:
    """Write answers.csv; what was not asked again stays as it is."""
    known = {(row.section, row.question): row for row in rows()}
    known |= {(each.question.section, each.question.name): row_of(each) for each in found}
    asked = [known.get((each.section, each.name)) for each in questions()]
    with (HERE / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__slots__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in asked if row is not None)


def row_of(first: FirstAnswer) -> Row:
    """An answer as the page has it."""
    asked, answer = first.question, first.answer
    place = asked.section, asked.name
    if answer.trio is None:
        none = "no plan (proven)" if answer.status == "infeasible" else "no plan found"
        return Row(*place, f"{none}; {_nearest(answer)}", "", "", "")
    lead, other = answer.plans[answer.lead - 1], answer.trio.elsewhere
    surer = (f"{s.change}: {words(s.plan)}" for s in answer.sensitivity if s.surer and s.plan)
    elsewhere = words(answer.plans[other - 1]) if other else ""
    return Row(*place, words(lead), _rests_on(lead), next(surer, ""), elsewhere)


def _nearest(answer: Answer) -> str:
    """The change that a refusal names first, and its plan."""
    why = answer.infeasible
    steps = [] if why is None else [(s.change, s.plan) for s in why.relaxed if s.plan is not None]
    if not steps:
        return "none is near"
    change, plan = min(steps, key=lambda each: doubted_cost_usd(each[1], answer.goal))
    return f"with {change} {words(plan)}"


def printed(row: Row, verdict: Verdict) -> str:
    """A row of the page."""
    surer = f"<br>*surer* with {row.surer}" if row.surer else ""
    return (
        f"| {row.section} | {row.question} | {row.first}{surer} "
        f"| {verdict.engineer}, {verdict.platform} | {verdict.why} |"
    )


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


def tables(catalog: Catalog) -> str:
    """The generated part of the page: the kept answers, and the published runs of today."""
    said = verdicts()
    answers = "\n".join(printed(row, said[row.section, row.question]) for row in rows())
    runs = "\n".join(run_row(run, estimate_of(run, catalog)) for run in published_runs())
    published = (
        "## Published runs\n\n| job | on | published | estimate for the same machine, on demand "
        f"| cheapest today | source |\n|:--|:--|:--|:--|:--|:--|\n{runs}"
    )
    return f"{HEAD}{answers}\n\n{published}"


def written(generated: str) -> str:
    """The page with other tables between its marks."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{generated}\n\n{END}{rest.partition(END)[2]}"
