"""The commands of `recommend` and the group that holds them."""

from typing import Annotated

import typer

from recommender.cli.groups import DefaultToPlan, LazyCommand
from recommender.cli.strict import HELP

_EPILOG = (
    "Exit codes: 0 an answer, 1 an internal error, 2 the call is wrong, 3 no plan keeps the "
    "limits, 4 the catalog cannot be used, 130 interrupted; catalog refresh: 5 a part renewed, "
    "6 nothing published; replan --changed-since: 7 moving pays or prices moved."
)

# Name, the module that holds it, its line in the list; those in it with --help-all only: False.
COMMANDS = tuple(
    LazyCommand(*row)
    for row in (
        ("plan", "plan:command", "Which cloud GPUs to rent for a job; the default."),
        ("init", "init:command", "A job file for your own training, in a minute."),
        ("explain", "explain:command", "Why not this machine, and what would make it win."),
        ("frontier", "frontier:command", "The curve of cost and time, with a plot."),
        ("export", "export:command", "Files that run a plan: SkyPilot, dstack, Slurm."),
        ("replan", "replan:command", "Stay or move, for a job that runs."),
        ("serve", "serve:command", "Answers and reports over HTTP, on this machine."),
        ("simulate", "simulate:command", "One plan, over thousands of simulated runs."),
        ("backtest", "backtest:command", "Fallback policies on recorded spot markets."),
        ("calibrate", "jobs:calibrate_command", "Fit a job's speed to runs of your own."),
        ("accuracy", "accuracy:command", "Errors of the models on published figures."),
        ("sources", "catalog:sources_command", "Where figures come from; licences.", False),
        ("doctor", "doctor:doctor_command", "Check that everything needed is there.", False),
        ("schema", "doctor:schema_command", "The JSON Schema of answers and errors.", False),
        ("jobs", "jobs:group", "The jobs that come with the tool, and your own."),
        ("offers", "offers:group", "Machines of your own, as a file that plans read."),
        ("mcp", "mcp:command", "Serve agents by the Model Context Protocol.", False),
        ("catalog", "catalog:group", "Offers, how old prices are, how to renew them."),
        ("trace", "trace:group", "Recorded spot markets, and laws kept for offers."),
        ("bench", "bench:group", "Measure machines; plan with what was measured."),
        ("config", "config:group", "Defaults that are kept, and where they are from.", False),
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
        bool, typer.Option("--version", help="Version, catalog dates and schema.", is_eager=True)
    ] = False,
) -> None:
    """Which cloud GPUs to rent for a training job, with the chance that it ends in time.

    \b
    recommend --deadline 24h JOB    cheapest plans in time
    recommend --budget 200 JOB      fastest plans for the money
    recommend --hourly 30 JOB       fastest plans under USD per hour
    recommend JOB                   the whole cost-time curve
    """
    if not version and ctx.invoked_subcommand is not None:
        return
    from recommender.cli.banner import show_banner

    show_banner(version)
    raise typer.Exit()
