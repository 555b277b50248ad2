"""Asks one question as the command line does, and writes its answer as one row."""

import os
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from time import process_time
from unittest.mock import patch

from recommender.cli import main
from recommender.plan.answer import Answer
from recommender.plan.plan import Machines, Plan
from recommender.report.answer_frame import PlanRequest
from tests.research.contract.questions import FOLDER, Question

NOW = "2026-11-21T12:00Z"
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Row:
    """A question and its answer. Figures are those of the best plan by the goal.

    Where there is none they are those of the plan under the nearest limits.
    """

    kind: str
    words: str
    answer: str  # plan; refusal: proven that there is none; none: none found; error
    goal: str  # cost, time, frontier
    usd: str  # mean; of a frontier the least of all plans
    hours: str  # mean of the middle nine tenths; of a frontier the least of all plans
    usd_p95: str
    hours_p95: str
    asked: str  # the chance asked
    chance: str
    machines: str
    leads: str  # the machines described first, where those are others
    gap: str  # by which a plan of any kind may be better; "proven" where 0
    nearest: str  # limits under which there would be a plan


COLUMNS = tuple(each.name for each in fields(Row))


def alone() -> None:
    """Take settings, catalogs and traces of nobody from now on."""
    home = mkdtemp()
    for name in [name for name in os.environ if name.startswith(("RECOMMEND_", "XDG_"))]:
        del os.environ[name]
    os.environ.update(HOME=home, RECOMMEND_NOW=NOW, COLUMNS="80")
    os.chdir(FOLDER)


def ask(question: Question, also: str = "") -> tuple[Row, float]:
    """The row of a question, and processor seconds; `also` is typed too."""
    command = import_module("recommender.cli.commands.plan")
    shown: list[tuple[Answer, PlanRequest]] = []
    page, said, wrong = command.answer_page, StringIO(), StringIO()

    def keep(answer: Answer, request: PlanRequest, how: object) -> object:
        shown.append((answer, request))
        return page(answer, request, how)

    start = process_time()
    with patch.object(command, "answer_page", keep), redirect_stdout(said), redirect_stderr(wrong):
        main([*shlex.split(also), *shlex.split(question.words)])
    seconds = process_time() - start
    row = row_of(question, *shown[0]) if shown else _failed(question, wrong.getvalue())
    return row, seconds


def row_of(question: Question, answer: Answer, request: PlanRequest) -> Row:
    """An answer as a row."""
    best = answer.plans[answer.best - 1] if answer.plans else None
    leads = answer.plans[answer.lead - 1] if answer.plans else None
    steps = answer.infeasible.relaxed if answer.infeasible else ()
    nearest = best or next((step.plan for step in steps if step.plan), None)
    return Row(
        question.kind,
        question.words,
        {"ok": "plan", "infeasible": "refusal", "unknown": "none"}[answer.status],
        answer.goal,
        *_figures(answer, nearest),
        f"{request.limits.confidence:.6g}",
        f"{best.estimate.chance:.6g}" if best else "",
        words(best) if best else "",
        words(leads) if leads and leads != best else "",
        _gap(answer.proof.gap),
        "; ".join(step.change for step in steps),
    )


def _figures(answer: Answer, nearest: Plan | None) -> tuple[str, ...]:
    """Mean USD and hours, and those of 95 % of the runs."""
    if nearest is None:
        return ("",) * 4
    plans = answer.plans if answer.goal == "frontier" else (nearest,)
    figures = (
        min(plan.estimate.cost.mean for plan in plans),
        min(plan.estimate.time.trimmed_mean for plan in plans) / HOUR_S,
        nearest.estimate.cost.p95,
        nearest.estimate.time.p95 / HOUR_S,
    )
    return tuple(f"{figure:.6g}" for figure in figures)


def _gap(share: float) -> str:
    return "proven" if share == 0.0 else f"{share:.3g}"


def words(plan: Plan) -> str:
    """The machines of a plan: "2x p4d.24xlarge spot us-east-1a -> 1x p5.48xlarge on demand"."""
    places = [site.zone or site.region for site in plan.sites[:1]]
    said = " + ".join(_rented(m, places) for m in plan.machines)
    if plan.fallback is not None:
        said += " -> " + " + ".join(f"{m.count}x {m.instance_type}" for m in plan.fallback.machines)
    return said


def _rented(m: Machines, places: list[str]) -> str:
    at = places[0] if places else m.zone or m.region
    return f"{m.count}x {m.instance_type} {m.market.replace('_', ' ')} {at}"


def _failed(question: Question, reported: str) -> Row:
    said = (reported.strip().splitlines() or ["nothing was said"])[-1]
    others = ("",) * (len(COLUMNS) - 4)
    return Row(question.kind, question.words, "error", *others, said)


def file_beside(path: Path) -> Path:
    """Where the processor seconds of a file of rows are kept."""
    return path.with_suffix(".cpu.csv")
