"""`recommend [plan]`: reads the question, asks the planner, shows the answer."""

from dataclasses import replace
from pathlib import Path

import typer

from recommender.catalogs.store import default_root
from recommender.cli import planner_inputs
from recommender.cli.auto_update import renew_if_due
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import INFEASIBLE
from recommender.cli.flags import Words, argument
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import warn
from recommender.cli.options import (
    AnswerFlags,
    OutputFlags,
    WriteFlags,
    changed_settings,
    with_settings,
)
from recommender.cli.output import form_of, show_page, shown_of
from recommender.cli.planner_inputs import PlannerFlags
from recommender.cli.strict import PlanCommand, call_problems, complete_job
from recommender.cli.written_files import write_export, write_report
from recommender.errors import no_plan
from recommender.export.start import TARGETS
from recommender.inputs import units
from recommender.plan.answer import Answer
from recommender.report.answer_frame import PlanRequest
from recommender.report.answer_page import answer_page

JOB = argument(
    "[JOB]", "A job that comes with the tool, or a job file (recommend.yaml).", None, complete_job
)


def plan(
    ctx: typer.Context,
    question: PlannerFlags,
    answers: AnswerFlags,
    output: OutputFlags,
    files: WriteFlags,
    job: Words = JOB,
) -> None:
    """Find the cloud GPUs to rent for a training job, with the chance to finish in time.

    With a deadline: the cheapest plans that meet it. With a budget or a price per hour: the
    fastest plans within it. Without any limit: the whole cost-time curve.

    \b
    recommend --deadline 24h resnet50-imagenet
    recommend --budget 200 --no-spot ./recommend.yaml
    """
    errors = ErrorCollector(call_problems(ctx))
    settings = changed_settings(errors)
    form = form_of(with_settings(output, settings), errors)
    shown, top = shown_of(output, answers, errors)
    typed = with_settings(answers, settings).currency
    currency = errors.parse(typed, "--currency", units.parse_currency, None)
    target = errors.choose(files.to, "--to", TARGETS, "") or None
    if target and files.write is None:
        errors.problems.append("--to says what runs the files; name their folder: --write DIR")
    ready = planner_inputs.read_inputs(question.over(settings, job), top, errors)
    if settings.get("auto_update") == "daily" and question.search.catalog is None:
        renew_if_due(Path(), default_root())
    options = replace(
        ready.options,
        explain=0 if form.kind == "json" else shown.explain,
        program=form.kind == "json",
        worth=form.kind == "json",
        report=files.report is not None,
    )
    answer = planner_inputs.run_planner(replace(ready, options=options))
    request = replace(
        ready.request, folder=files.write or "", target=target or "", currency=currency
    )
    show_page(answer_page(answer, request, shown), form)
    if form.kind == "csv":  # which has no place for them
        warn(answer.warnings)
    if files.report is not None:
        write_report(answer, request, files.report, question.search.catalog)
    if answer.status != "ok":
        raise typer.Exit(INFEASIBLE)
    if files.write is not None:
        _write(answer, shown.explain or answer.lead, request)


def _write(answer: Answer, number: int, request: PlanRequest) -> None:
    """The files that run a plan of the answer."""
    from recommender.report.launch import run_of

    if number > len(answer.plans):
        raise no_plan("--explain", number, len(answer.plans))
    run = run_of(answer.plans[number - 1], request, f"plan {number}")
    write_export(run, request.target or None, request.folder)


command = command_app("plan", plan, PlanCommand)
