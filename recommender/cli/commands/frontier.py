"""`recommend frontier`: the curve of cost and time, as a table, a plot, a picture, or figures."""

from dataclasses import replace

import typer

from recommender.cli import planner_inputs
from recommender.cli.commands.plan import JOB
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import INFEASIBLE
from recommender.cli.flags import Word, Words, flag
from recommender.cli.groups import command_app
from recommender.cli.options import PageFlags, changed_settings
from recommender.cli.output import show_page
from recommender.cli.planner_inputs import PlannerFlags
from recommender.cli.strict import PlanCommand, call_problems
from recommender.cli.written_files import draw, picture_path
from recommender.plan.frontier import frontier_of
from recommender.report.frontier import frontier_page


def frontier(
    ctx: typer.Context,
    question: PlannerFlags,
    shown: PageFlags,
    job: Words = JOB,
    plot: Word = flag("FILE", "Draw it into a file (.svg, .png); needs the extra `plot`."),
) -> None:
    """The plans that no other plan beats in both cost and time, with a plot.

    \b
    recommend frontier resnet50-imagenet
    recommend frontier --deadline 24h resnet50-imagenet --plot frontier.svg
    """
    errors = ErrorCollector(call_problems(ctx))
    picture = errors.attempt(lambda: picture_path(plot), None)
    settings = changed_settings(errors)
    ready = planner_inputs.read_inputs(question.over(settings, job), 5, errors)
    options = replace(ready.options, simulated_plans=True)
    answer = planner_inputs.run_planner(replace(ready, options=options))
    simulated = () if answer.report is None else answer.report.simulated_plans
    found = frontier_of(simulated, ready.request.limits)
    if picture is not None:
        from recommender.report.html.picture import frontier_spec

        draw(picture, frontier_spec(answer, ready.request))

    show_page(frontier_page(found, answer, ready.request), shown)
    if not found.points:
        raise typer.Exit(INFEASIBLE)


command = command_app("frontier", frontier, PlanCommand)
