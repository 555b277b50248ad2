"""`recommend jobs` and `recommend calibrate`: shipped jobs, own jobs, constants from timed runs."""

from pathlib import Path

from recommender.cli.flags import Word, argument, flag, switch
from recommender.cli.groups import add_command, command_app, group_app
from recommender.cli.open_catalog import load_catalog, with_own_machines
from recommender.cli.options import PageFlags
from recommender.cli.output import form_of, show_page
from recommender.cli.screen import write_text
from recommender.inputs.units.times import now
from recommender.job.jobfile import find_job, template
from recommender.job.preset_files import presets
from recommender.job.schema import json_schema
from recommender.report.jobs import job_list, job_page
from recommender.report.json_output import dumps

group = group_app("jobs", "The jobs that come with the tool, and how to write your own.")


def _job_names(incomplete: str) -> list[str]:
    return [name for name in presets() if name.startswith(incomplete)]


_NAME = argument(
    "JOB", "Name of a job that comes with the tool, or a job file.", autocompletion=_job_names
)


def list_jobs(flags: PageFlags) -> None:
    """List the jobs that come with the tool.

    \b
    recommend jobs list
    """

    show_page(job_list([find_job(name) for name in presets()]), flags)


def show_job(flags: PageFlags, name: str = _NAME) -> None:
    """Show all fields of a job; derived ones are marked.

    \b
    recommend jobs show llama3-8b-lora
    """

    show_page(job_page(find_job(name)), flags)


def new_job(
    like: str = flag(
        "JOB", "Job to start from.", autocompletion=_job_names, default="llama3-8b-sft"
    ),
) -> None:
    """Print a job file to start from.

    \b
    recommend jobs new --like llama3-8b-sft > recommend.yaml
    """

    write_text(template(like))


def job_schema() -> None:
    """Print the JSON Schema of a job file, for editors.

    \b
    recommend jobs schema > job.schema.json
    """

    write_text(dumps(json_schema()))


add_command(group, "list", list_jobs)
add_command(group, "show", show_job)
add_command(group, "new", new_job)
add_command(group, "schema", job_schema)


def calibrate(
    flags: PageFlags,
    job: str = _NAME,
    timings: str = argument(
        "TIMINGS.csv",
        "CSV file of your runs: machines; instance or gpu; step_s or samples_per_s; "
        "gpus, batch or batch_per_gpu, data (synthetic, cached, cold), servers, as they apply.",
    ),
    to: Word = flag("FILE", "Job file to write (the job's own file; recommend.yaml for a preset)."),
    force: bool = switch("Overwrite the calibration in an existing file."),
    offers: Word = flag("FILE", "Your own machines that the runs used."),
) -> None:
    """Fit a job's speed to a few of your own runs, and save it in its job file.

    \b
    recommend calibrate llama3-8b-sft timings.csv
    recommend calibrate my.yaml timings.csv --to calibrated.yaml
    """
    from recommender.planner.calibrate import calibrate_file
    from recommender.report import calibration

    form, catalog = form_of(flags), load_catalog(None)
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
    made = (found.efficiency, found.tensor_s, found.runs, found.predicted_s, written)
    show_page(calibration.calibration_page(own, *made), form)


calibrate_command = command_app("calibrate", calibrate)
