"""`recommend explain MACHINE [JOB]`: why not this one, and what would make it win."""

from dataclasses import replace
from typing import Annotated

import typer

from recommender.cli import planner_inputs
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.groups import command_app
from recommender.cli.options import (
    JobFlags,
    LimitFlags,
    OfferFlags,
    OwnFlags,
    PageFlags,
    SearchFlags,
    changed_settings,
)
from recommender.cli.output import show_page
from recommender.cli.search_progress import watched
from recommender.cli.strict import PlanCommand, call_problems, complete_job


def explain(
    ctx: typer.Context,
    limits: LimitFlags,
    offers: OfferFlags,
    own: OwnFlags,
    job_flags: JobFlags,
    search: SearchFlags,
    output: PageFlags,
    machine: Annotated[
        str, typer.Argument(metavar="MACHINE", help="An instance type: p5.48xlarge.")
    ],
    job: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB]",
            help="The job, as for recommend itself.",
            autocompletion=complete_job,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Why a machine is not recommended: what it lacks, its rank, what price or speed it would need.

    --region is the region of the machine; the plans it is compared with may be in any region.

    \b
    recommend explain p5.48xlarge --region us-east-1 llama3-8b-lora --deadline 24h
    """
    errors = ErrorCollector(call_problems(ctx))
    settings = changed_settings(errors)
    call = planner_inputs.PlannerFlags(
        tuple(job or ()), limits, offers, own, job_flags, search
    ).over({name: value for name, value in settings.items() if name != "regions"})
    ready = planner_inputs.read_inputs(call, 1, errors)
    from recommender.optimize.watch import Watch
    from recommender.planner.standing import standing
    from recommender.report.standing import standing_page

    request, watch = ready.request, Watch()
    anywhere = replace(request, choice=replace(request.choice, regions=()))
    problem = planner_inputs.problem_of(replace(ready, request=anywhere))
    with watched(watch, request.limits.goal, False):
        found = standing(machine, problem, request.choice.regions, watch)
    show_page(standing_page(found, request), output)


command = command_app("explain", explain, PlanCommand)
