"""`recommend frontier`: the curve of cost and time, as a table, a plot, a picture, or figures."""

from dataclasses import replace
from typing import Annotated

import typer

from recommender.cli import planner_inputs
from recommender.cli.commands.plan import JobWord
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import INFEASIBLE
from recommender.cli.groups import command_app
from recommender.cli.options import (
    JobFlags,
    LimitFlags,
    OfferFlags,
    OwnFlags,
    SearchFlags,
    SheetFlags,
    Word,
    changed_settings,
)
from recommender.cli.output import put_json, sheet_format
from recommender.cli.screen import screen, write_blocks, write_text
from recommender.cli.strict import PlanCommand, call_problems
from recommender.cli.written_files import draw, picture_path
from recommender.plan.answer import Answer
from recommender.plan.frontier import Frontier, frontier_of
from recommender.report.answer_frame import PlanRequest

_NONE = "No simulated plan meets the limits; recommend JOB explains why.\n"


def frontier(
    ctx: typer.Context,
    limits: LimitFlags,
    offers: OfferFlags,
    own: OwnFlags,
    job_flags: JobFlags,
    search: SearchFlags,
    shown: SheetFlags,
    job: JobWord = None,
    plot: Annotated[
        Word,
        typer.Option(
            help="Draw it into a file (.svg, .png); needs the extra `plot`.",
            metavar="FILE",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
) -> None:
    """The plans that no other plan beats in both cost and time, with a plot.

    \b
    recommend frontier resnet50-imagenet
    recommend frontier --deadline 24h resnet50-imagenet --plot frontier.svg
    """
    errors = ErrorCollector(call_problems(ctx))
    picture = errors.attempt(lambda: picture_path(plot), None)
    settings = changed_settings(errors)
    call = planner_inputs.PlannerFlags(
        tuple(job or ()), limits, offers, own, job_flags, search
    ).over(settings)
    ready = planner_inputs.read_inputs(call, 5, errors)
    options = replace(ready.options, simulated_plans=True)
    answer = planner_inputs.run_planner(replace(ready, options=options))
    simulated = () if answer.report is None else answer.report.simulated_plans
    found = frontier_of(simulated, ready.request.limits)
    if picture is not None:
        from recommender.report.html.picture import frontier_spec

        draw(picture, frontier_spec(answer, ready.request))
    _show(found, answer, ready.request, shown)
    if not found.points:
        raise typer.Exit(INFEASIBLE)


def _show(found: Frontier, answer: Answer, request: PlanRequest, flags: SheetFlags) -> None:
    """Print it in the requested format."""
    from recommender.report import frontier as view

    form = sheet_format(flags)
    if form == "json":
        put_json(view.document(found, answer, request))
    elif form == "csv":
        write_text(view.render_csv(found))
    elif not found.points:
        write_text(_NONE)
    else:
        on = screen(flags.color or "auto")
        page = view.frontier_page(found, answer, request)
        write_blocks(view.blocks(page, found, answer, request, on.width), on)


command = command_app("frontier", frontier, PlanCommand)
