"""`recommend [plan]`: reads the question, asks the planner, shows the answer."""

from typing import Annotated

import typer

from recommender.cli import planner_inputs
from recommender.cli.edge import INFEASIBLE
from recommender.cli.error_collector import Reader
from recommender.cli.lazy import alone
from recommender.cli.options import (
    AnswerFlags,
    JobFlags,
    LimitFlags,
    OfferFlags,
    OutputFlags,
    OwnFlags,
    SearchFlags,
    settings,
    under,
)
from recommender.cli.output import form_of, show_answer
from recommender.cli.strict import PlanCommand, job_words, problems_of

JobWord = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JOB]",
        help="A job that comes with the tool, or a job file; recommend.yaml if left out.",
        autocompletion=job_words,
        show_default=False,
    ),
]


def plan(
    ctx: typer.Context,
    limits: LimitFlags,
    offers: OfferFlags,
    own: OwnFlags,
    job_flags: JobFlags,
    search: SearchFlags,
    shown: AnswerFlags,
    output: OutputFlags,
    job: JobWord = None,
) -> None:
    """Which cloud GPUs to rent for a training job, with the chance that it ends in time.

    With a deadline: the cheapest plans in time. With a budget or a price per hour: the
    fastest plans for it. Without any limit: the whole curve of cost and time.

    \b
    recommend --deadline 24h resnet50-imagenet
    recommend --budget 200 --no-spot ./recommend.yaml
    """
    read = Reader(problems_of(ctx))
    kept = settings(read)
    form = form_of(under(output, kept), shown, read)
    call = planner_inputs.Call(tuple(job or ()), limits, offers, own, job_flags, search).over(kept)
    ready = planner_inputs.read(call, form.top, read)
    answer = planner_inputs.answer(ready, form.explain if form.kind == "table" else 0)
    show_answer(answer, ready.asked, form)
    if answer.status == "infeasible":
        raise typer.Exit(INFEASIBLE)


command = alone("plan", plan, PlanCommand)
