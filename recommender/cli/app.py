"""The commands of `recommend` and the group that holds them."""

from typing import Annotated

import typer

from recommender.cli.commands import (
    about,
    accuracy,
    bench,
    calibrate,
    catalog,
    config,
    jobs,
    trace,
)
from recommender.cli.commands.backtest import backtest
from recommender.cli.commands.simulate import simulate
from recommender.cli.flat import flat
from recommender.cli.group import Careful, DefaultToPlan, PlanCommand
from recommender.cli.plan import plan

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


app.command(cls=PlanCommand)(flat(plan))
app.command(cls=PlanCommand)(flat(simulate))
for _group in (jobs.group, catalog.group, trace.group, bench.group, config.group):
    app.add_typer(_group)
app.command(cls=Careful)(flat(backtest))
app.command(cls=Careful)(flat(calibrate.calibrate))
app.command(cls=Careful)(flat(accuracy.accuracy))
app.command(cls=Careful)(flat(catalog.sources))
app.command(cls=Careful)(flat(about.doctor))
app.command(cls=Careful)(about.schema)
