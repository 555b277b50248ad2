"""`recommend explain MACHINE [JOB]`: why not this one, and what would make it win."""

from dataclasses import replace

import typer

from recommender.cli import planner_inputs
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.flags import Words, argument
from recommender.cli.groups import command_app
from recommender.cli.options import (
    PageFlags,
    changed_settings,
)
from recommender.cli.output import show_page
from recommender.cli.planner_inputs import PlannerFlags
from recommender.cli.search_progress import watched
from recommender.cli.strict import PlanCommand, call_problems, complete_job
from recommender.report.standing import standing_page


def explain(
    ctx: typer.Context,
    question: PlannerFlags,
    output: PageFlags,
    machine: str = argument("MACHINE", "An instance type: p5.48xlarge."),
    job: Words = argument("[JOB]", "The job, as for recommend itself.", None, complete_job),
) -> None:
    """Why a machine is not recommended: what it lacks, its rank, what price or speed it would need.

    --region is the region of the machine; the plans it is compared with may be in any region.

    \b
    recommend explain p5.48xlarge --region us-east-1 llama3-8b-lora --deadline 24h
    """
    errors = ErrorCollector(call_problems(ctx))
    settings = {**changed_settings(errors)}
    settings.pop("regions", None)
    ready = planner_inputs.read_inputs(question.over(settings, job), 1, errors)
    from recommender.optimize.watch import Watch
    from recommender.planner.standing import standing

    request, watch = ready.request, Watch()
    anywhere = replace(request, choice=replace(request.choice, regions=()))
    problem = planner_inputs.problem_of(replace(ready, request=anywhere))
    with watched(watch, request.limits.goal, False):
        found = standing(machine, problem, request.choice.regions, watch)
    show_page(standing_page(found, request), output)


command = command_app("explain", explain, PlanCommand)
