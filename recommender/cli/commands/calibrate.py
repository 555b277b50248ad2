"""`recommend calibrate`: a job's speed constants from its own timed runs."""

from pathlib import Path
from typing import Annotated

import typer

from recommender.cli.files import load_catalog
from recommender.cli.flags import PageFlags, Word
from recommender.cli.group import Careful
from recommender.cli.later import alone
from recommender.cli.pager import as_json, put_json, show_page


def calibrate(
    flags: PageFlags,
    job: Annotated[
        str,
        typer.Argument(
            help="Name of a job that comes with the tool, or a job file.", metavar="JOB"
        ),
    ],
    timings: Annotated[
        str,
        typer.Argument(
            help="CSV file of your runs: machines; instance or gpu; step_s or samples_per_s; "
            "gpus, batch, data (synthetic, cached, cold) where they apply.",
            metavar="TIMINGS.csv",
        ),
    ],
    to: Annotated[
        Word,
        typer.Option(
            help="Job file to write; else the job's own file, or recommend.yaml for a preset.",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the calibration of a file that exists.")
    ] = False,
) -> None:
    """Fit a job's speed to a handful of your own runs, and keep it in its job file.

    \b
    recommend calibrate llama3-8b-sft timings.csv
    recommend calibrate my.yaml timings.csv --to calibrated.yaml
    """
    from recommender.calibrating import calibrate_file
    from recommender.clock import now
    from recommender.report import calibrationview

    json = as_json(flags)
    found = calibrate_file(
        job,
        Path(timings),
        Path(to) if to else None,
        force,
        load_catalog(None),
        now().date().isoformat(),
    )
    own, written = found.calibration, str(found.written)
    if json:
        put_json(calibrationview.calibration_facts(own, found.runs, found.predicted_s, written))
        return
    show_page(calibrationview.runs_page(found.runs, found.predicted_s), flags)
    show_page(calibrationview.constants_page(own, found.efficiency, found.tensor_s, written), flags)


command = alone("calibrate", calibrate, Careful)
