"""`recommend fleet`: which job runs on what, where and when, under what all of them share."""

import os
from pathlib import Path

import typer

from recommender.cli.commands.batch import QuestionFlags, question_of
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import PARTIAL
from recommender.cli.flags import Word, argument, flag
from recommender.cli.groups import command_app
from recommender.cli.options import OfferFlags, PageFlags, WorkerFlags
from recommender.cli.output import show_page
from recommender.cli.request import workers_of
from recommender.cli.screen import progress
from recommender.cli.strict import PlanCommand, call_problems
from recommender.plan.limits import Limits


def fleet(
    ctx: typer.Context,
    offers: OfferFlags,
    asked: QuestionFlags,
    worker: WorkerFlags,
    output: PageFlags,
    file: str = argument("FLEET.yaml", "The fleet: jobs, deadlines, teams."),
    columns: Word = flag(
        "FILE", "Keep the plans of the jobs there, so that a later call plans only the others."
    ),
) -> None:
    """Plan a fleet: shared quotas, a budget per team and month, deadlines, priorities, orders.

    \b
    recommend fleet fleet.yaml --quota quotas.csv
    recommend fleet fleet.yaml --columns plans.done --json
    """
    from recommender.api.fleet import answer_fleet
    from recommender.inputs.fleet_file import read_fleet
    from recommender.report.fleet import fleet_page

    errors = ErrorCollector(call_problems(ctx))
    path = Path(file)
    stated = errors.attempt(lambda: read_fleet(path), None)
    where = workers_of(worker, os.cpu_count() or 1, errors)
    question = question_of([Limits()], offers, asked, errors)
    assert stated is not None  # else the reader has stopped
    kept = None if columns is None else Path(columns)
    with progress("plan", len(stated.jobs)) as tick:
        answer = answer_fleet(stated, path.parent, question, where, kept, tick)
    show_page(fleet_page(answer), output)
    if answer.left_out:
        raise typer.Exit(PARTIAL)


command = command_app("fleet", fleet, PlanCommand)
