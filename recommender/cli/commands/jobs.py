"""`recommend jobs`: the jobs that come with the tool, and how to write one's own."""

from typing import Annotated

import typer

from recommender.cli.flags import PageFlags
from recommender.cli.flat import flat
from recommender.cli.group import Careful, Helpful
from recommender.cli.later import together
from recommender.cli.pager import put_json, show_page
from recommender.cli.screen import put

group = together("jobs", "The jobs that come with the tool, and how to write your own.", Helpful)


def _job_names(incomplete: str) -> list[str]:
    from recommender.jobfile import presets

    return [name for name in presets() if name.startswith(incomplete)]


_NAME = typer.Argument(
    help="Name of a job that comes with the tool, or a job file.",
    metavar="JOB",
    autocompletion=_job_names,
)


def list_jobs(flags: PageFlags) -> None:
    """The jobs that come with the tool.

    \b
    recommend jobs list
    """
    from recommender.jobfile import find_job, presets
    from recommender.report.jobview import job_list

    show_page(job_list([find_job(name) for name in presets()]), flags)


def show_job(flags: PageFlags, name: Annotated[str, _NAME]) -> None:
    """A job with everything that was derived, and what that was.

    \b
    recommend jobs show llama3-8b-lora
    """
    from recommender.jobfile import find_job
    from recommender.report.jobview import job_page

    show_page(job_page(find_job(name)), flags)


def new_job(
    like: Annotated[
        str,
        typer.Option(help="The job to start from.", metavar="JOB", autocompletion=_job_names),
    ] = "llama3-8b-sft",
) -> None:
    """A job file to start from, on standard output.

    \b
    recommend jobs new --like llama3-8b-sft > recommend.yaml
    """
    from recommender.jobfile import template

    put(template(like))


def job_schema() -> None:
    """The JSON Schema of a job file, for editors.

    \b
    recommend jobs schema > job.schema.json
    """
    from recommender.jobfile import json_schema

    put_json(json_schema())


group.command("list", cls=Careful)(flat(list_jobs))
group.command("show", cls=Careful)(flat(show_job))
group.command("new", cls=Careful)(new_job)
group.command("schema", cls=Careful)(job_schema)
