"""The commands of `recommend` and the group that holds them."""

from typing import Annotated

import typer

from recommender.cli.group import DefaultToPlan

_EPILOG = (
    "Exit codes: 0 an answer, 1 an internal error, 2 the call is wrong, 3 no plan keeps the "
    "limits, 4 the catalog cannot be used, 130 interrupted; catalog refresh: 5 a part renewed, "
    "6 nothing published."
)

app = typer.Typer(
    name="recommend",
    cls=DefaultToPlan,
    invoke_without_command=True,
    subcommand_metavar="[JOB] | COMMAND ...",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
    from recommender.cli.landing import page

    page(version)
    raise typer.Exit()
