"""`recommend jobs` and `recommend calibrate`: shipped jobs, own jobs, constants from timed runs."""

from pathlib import Path
from typing import Annotated

import typer

from recommender.cli.groups import add_command, command_app, group_app
from recommender.cli.open_catalog import load_catalog, with_own_machines
from recommender.cli.options import PageFlags, Word
from recommender.cli.output import as_json, put_json, show_page
from recommender.cli.screen import write_text

group = group_app("jobs", "The jobs that come with the tool, and how to write your own.")


def _job_names(incomplete: str) -> list[str]:
    from recommender.job.preset_files import presets

    return [name for name in presets() if name.startswith(incomplete)]


_NAME = typer.Argument(
    help="Name of a job that comes with the tool, or a job file.",
    metavar="JOB",
    autocompletion=_job_names,
)


def list_jobs(flags: PageFlags) -> None:
    """List the jobs that come with the tool.

    \b
    recommend jobs list
    """
    from recommender.job.jobfile import find_job
    from recommender.job.preset_files import presets
    from recommender.report.jobs import job_list

    show_page(job_list([find_job(name) for name in presets()]), flags)


def show_job(flags: PageFlags, name: Annotated[str, _NAME]) -> None:
    """Show all fields of a job; derived ones are marked.

    \b
    recommend jobs show llama3-8b-lora
    """
    from recommender.job.jobfile import find_job
    from recommender.report.jobs import job_page

    show_page(job_page(find_job(name)), flags)


def new_job(
    like: Annotated[
        str,
        typer.Option(help="Job to start from.", metavar="JOB", autocompletion=_job_names),
    ] = "llama3-8b-sft",
) -> None:
    """Print a job file to start from.

    \b
    recommend jobs new --like llama3-8b-sft > recommend.yaml
    """
    from recommender.job.jobfile import template

    write_text(template(like))


def job_schema() -> None:
    """Print the JSON Schema of a job file, for editors.

    \b
    recommend jobs schema > job.schema.json
    """
    from recommender.job.schema import json_schema

    put_json(json_schema())


add_command(group, "list", list_jobs)
add_command(group, "show", show_job)
add_command(group, "new", new_job)
add_command(group, "schema", job_schema)


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
            "gpus, batch or batch_per_gpu, data (synthetic, cached, cold), servers, as they apply.",
            metavar="TIMINGS.csv",
        ),
    ],
    to: Annotated[
        Word,
        typer.Option(
            help="Job file to write (the job's own file; recommend.yaml for a preset).",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the calibration in an existing file.")
    ] = False,
    offers: Annotated[
        Word, typer.Option(help="Your own machines that the runs used.", metavar="FILE")
    ] = None,
) -> None:
    """Fit a job's speed to a few of your own runs, and save it in its job file.

    \b
    recommend calibrate llama3-8b-sft timings.csv
    recommend calibrate my.yaml timings.csv --to calibrated.yaml
    """
    from recommender.inputs.units.times import now
    from recommender.planner.calibrate import calibrate_file
    from recommender.report import calibration

    json, catalog = as_json(flags), load_catalog(None)
    if offers is not None:
        catalog, _ = with_own_machines(catalog, offers)
    found = calibrate_file(
        job,
        Path(timings),
        Path(to) if to else None,
        force,
        catalog,
        now().date().isoformat(),
    )
    own, written = found.calibration, str(found.written)
    if json:
        put_json(calibration.calibration_facts(own, found.runs, found.predicted_s, written))
        return
    show_page(calibration.runs_page(found.runs, found.predicted_s), flags)
    show_page(calibration.constants_page(own, found.efficiency, found.tensor_s, written), flags)


calibrate_command = command_app("calibrate", calibrate)
