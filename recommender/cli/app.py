"""The commands of `recommend` and the group that holds them."""

from typing import Annotated

import typer

from recommender.cli.groups import DefaultToPlan, LazyCommand
from recommender.cli.strict import HELP

_EPILOG = (
    "Exit codes: 0 an answer, 1 a system or internal error, 2 the call is wrong, 3 no plan meets "
    "the limits, 4 the catalog cannot be used, 130 interrupted; catalog refresh: 5 only some "
    "providers renewed, 6 nothing published; batch and fleet: 5 only some jobs planned; "
    "replan --changed-since: 7 moving pays or prices moved."
)

# Name, its line in the list, and where it is if not in the module of its name.
COMMANDS = tuple(
    LazyCommand(*row)
    for row in (
        ("plan", "Which cloud GPUs to rent for a job (the default)."),
        ("init", "Write a job file for your own training."),
        ("explain", "Why a machine is not recommended, and what would change it."),
        ("batch", "Plan many jobs under many deadlines."),
        ("fleet", "Which job runs on what and when: shared quotas, budgets."),
        ("frontier", "The cost-time frontier, with a plot."),
        ("export", "Write files that run a plan: SkyPilot, dstack, Slurm, …"),
        ("replan", "Whether a running job should move."),
        ("serve", "Answers and reports over HTTP."),
        ("simulate", "Simulate one plan in thousands of runs."),
        ("backtest", "Replay fallback policies on recorded spot markets."),
        ("calibrate", "Fit a job's speed to your own runs.", "jobs:calibrate_command"),
        ("accuracy", "Errors of the models on published measurements."),
        ("sources", "Sources of all figures, and their licences.", "catalog:sources_command"),
        ("doctor", "Check the installation.", "doctor:doctor_command"),
        ("schema", "The JSON Schema of answers and errors.", "doctor:schema_command"),
        ("jobs", "The jobs that come with the tool, and your own.", "jobs:group"),
        ("offers", "A file for machines you own or rent elsewhere.", "offers:group"),
        ("mcp", "Serve agents over the Model Context Protocol."),
        ("catalog", "Show and refresh offers and prices.", "catalog:group"),
        ("trace", "Recorded spot markets, and spot laws fitted to them.", "trace:group"),
        ("bench", "Measure machines, and plan with the results.", "bench:group"),
        ("config", "Your default settings.", "config:group"),
    )
)


class Recommend(DefaultToPlan):
    """`recommend` itself."""

    lazy_commands = COMMANDS


app = typer.Typer(
    name="recommend",
    cls=Recommend,
    invoke_without_command=True,
    subcommand_metavar="[JOB] | COMMAND ...",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP, "max_content_width": 100},
    epilog=_EPILOG,
)


@app.callback()
def recommend(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version, catalog dates and schema.")
    ] = False,
) -> None:
    """Cloud GPUs to rent for a training job, with the chance to finish in time.

    \b
    recommend --deadline 24h JOB    cheapest plans that finish in time
    recommend --budget 200 JOB      fastest plans within the budget
    recommend --hourly 30 JOB       fastest plans up to a price per hour
    recommend JOB                   the whole cost-time curve
    """
    if not version and ctx.invoked_subcommand is not None:
        return
    from recommender.cli.banner import show_banner

    show_banner(version)
    raise typer.Exit()
