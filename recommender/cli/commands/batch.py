"""`recommend batch`: many jobs, each under many deadlines, on all cores or a Dask cluster."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import PARTIAL
from recommender.cli.flags import Word, argument, flag, switch
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import warn
from recommender.cli.options import (
    CATALOG,
    LimitFlags,
    OfferFlags,
    OwnFlags,
    PageFlags,
    WorkerFlags,
)
from recommender.cli.output import show_page
from recommender.cli.planner_inputs import parse_seed, read_offers
from recommender.cli.request import choice_of, limits_of, workers_of
from recommender.cli.screen import progress, write_text
from recommender.cli.strict import PlanCommand, call_problems
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.inputs.limits import parse_limit
from recommender.inputs.units.times import now
from recommender.plan.limits import DEADLINE, Limits
from recommender.text import shown_path

if TYPE_CHECKING:
    from recommender.api.batch import JobEntry, Question, Row

_MOST = 20  # plans of an answer


@dataclass(frozen=True, slots=True)
class QuestionFlags:
    """What all jobs of a call have in common besides limits and offers."""

    quota: Word = flag(
        "FILE", "File of your account's quotas (others: 0), or default-new or granted."
    )
    catalog: Word = CATALOG
    seed: Word = flag("N", "Seed of the simulated runs (7).")


def batch(
    ctx: typer.Context,
    limits: LimitFlags,
    offers: OfferFlags,
    asked: QuestionFlags,
    worker: WorkerFlags,
    jobs: list[str] = argument(
        "JOBS...", "Folders of job files, job files, or jobs that come with the tool."
    ),
    deadlines: Word = flag("TIMES", "Plan every job for each of these: 6h,24h,3d."),
    top: Word = flag("N", "Plans of each answer, of different kinds (1)."),
    out: Word = flag("FILE", "Write the plans there: .parquet (a folder) or .jsonl.", "-o"),
    json: bool = switch("Print them as JSON lines."),
) -> None:
    """Plan many jobs, each for many deadlines; a run that was stopped is continued by the next.

    \b
    recommend batch jobs/ --deadlines 6h,24h,3d --quota quotas.csv -o plans.parquet
    recommend batch resnet50-imagenet llama3-8b-lora --deadlines 12h,24h
    """
    from recommender.api.batch import read_jobs
    from recommender.report import batch as view

    errors = ErrorCollector(call_problems(ctx))
    of_each = errors.attempt(lambda: _limits(limits, deadlines, errors), ())
    kinds = errors.parse(top, "--top", units.whole_of("3", most=_MOST), 1)
    target = None if out is None else Path(out)
    if target is not None:
        errors.attempt(lambda: view.check_target(target), None)
    entries: list[JobEntry] = errors.attempt(lambda: read_jobs(jobs), [])
    question = replace(question_of(of_each, offers, asked, errors), top=kinds)
    rows = planned(entries, question, worker, target)
    if target is not None:
        view.write(rows, target)
        write_text(f"wrote {shown_path(target)}: {len(rows):,} rows\n")
    elif json:
        write_text(view.json_lines(rows))
    else:
        show_page(view.batch_page(rows, question.catalog.version), PageFlags())
    if warn_of_broken(rows):
        raise typer.Exit(PARTIAL)


def _limits(flags: LimitFlags, deadlines: str | None, errors: ErrorCollector) -> tuple[Limits, ...]:
    """The limits of each answer: the same but for their deadlines."""
    base = limits_of(flags, errors)
    if deadlines is None:
        if base.goal == "frontier":
            raise UsageError("a batch needs a limit for every job; write --deadlines 6h,24h,3d")
        return (base,)
    if flags.deadline is not None:
        raise UsageError("--deadline and --deadlines contradict each other; keep one")
    words = [word for word in deadlines.split(",") if word.strip()]
    seconds = errors.parse_all(words, "--deadlines", parse_limit(DEADLINE))
    return tuple(base.with_value(DEADLINE, each) for each in sorted(set(seconds)))


def question_of(
    limits: Sequence[Limits], offers: OfferFlags, asked: QuestionFlags, errors: ErrorCollector
) -> "Question":
    """What is asked of every job; raises all mistakes of the call together."""
    from recommender.api.batch import Question
    from recommender.risk.random_numbers import SEED

    own = OwnFlags(quota=asked.quota)
    seed = errors.parse(asked.seed, "--seed", parse_seed, SEED)
    catalog, choice = read_offers(asked.catalog, choice_of(offers, own, errors), own, errors)
    errors.raise_all()
    return Question(tuple(limits), choice, catalog, now(), seed=seed)


def planned(
    entries: "Sequence[JobEntry]", question: "Question", worker: WorkerFlags, target: Path | None
) -> "list[Row]":
    """The rows of a batch, whose progress is shown; what is done is kept next to the target."""
    from recommender.api.batch import plan_batch

    errors = ErrorCollector()
    where = workers_of(worker, os.cpu_count() or 1, errors)
    errors.raise_all()
    journal = None if target is None else target.with_name(f"{target.name}.done")
    with progress("plan", len(entries)) as tick:
        return plan_batch(entries, question, where, journal, tick)


def warn_of_broken(rows: "Sequence[Row]") -> bool:
    """Say which jobs cannot be planned, and why; whether there are any."""
    broken = [row for row in rows if row["status"] == "error"]
    warn(tuple(_placed(row["file"], row["message"]) for row in broken))
    return bool(broken)


def _placed(file: str, message: str) -> str:
    """A problem after the path of its file, which it may begin with by name."""
    begins = message.startswith(name := Path(file).name)
    return f"{file}{message.removeprefix(name)}" if begins else f"{file}: {message}"


command = command_app("batch", batch, PlanCommand)
