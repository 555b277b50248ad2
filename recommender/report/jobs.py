"""Jobs and settings as tables, with the origin of each value."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from recommender.job.job import Job
from recommender.report import formatting as fmt
from recommender.report.page import Page, headings


def job_list(jobs: Sequence[Job]) -> Page:
    """Name, description and amount of work."""
    columns = headings("job:", "what it trains:", "FLOP")
    rows = tuple((j.name, fmt.clean(j.title), fmt.scientific(j.total_flop)) for j in jobs)
    facts = [{"name": j.name, "title": j.title, "flop": j.total_flop} for j in jobs]
    below = ("your own: recommend jobs new --like llama3-8b-sft > recommend.yaml",)
    return Page("", columns, rows, 1, below, facts)


def job_page(job: Job) -> Page:
    """Every field of a job that the planner's models use."""
    derived = set(job.assumed)
    columns = headings("field:", "value:", "origin:")
    facts = asdict(job)
    rows = tuple(
        (name, _shown(value), "derived" if name in derived else "")
        for name, value in facts.items()
        if name not in ("assumed", "name", "title", "data")
    )
    data = tuple(
        (f"data.{name}", _shown(value), "derived" if f"data.{name}" in derived else "")
        for name, value in facts["data"].items()
    )
    title = f"{fmt.clean(job.name)}: {fmt.clean(job.title)}"
    return Page(title, columns, rows + data, 1, facts=facts)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:,.6g}".replace("e+", "e").replace("e0", "e")
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(each) for each in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(each)}" for key, each in value.items())
    return fmt.clean(str(value)) if value not in (None, "") else "not given"


class Setting(Protocol):
    """A value and where it comes from, as `recommender.inputs.settings` gives it."""

    @property
    def value(self) -> str | tuple[str, ...]:
        """The value as text."""

    @property
    def origin(self) -> str:
        """A flag, a variable, a file, or "default"."""


def settings_page(settings: Mapping[str, Setting], user_file: Path) -> Page:
    """One row per setting."""
    columns = headings("setting:", "value:", "from:")
    rows = tuple((key, _words(s.value) or "none", _words(s.origin)) for key, s in settings.items())
    facts = {key: {"value": s.value, "origin": s.origin} for key, s in settings.items()}
    below = (
        "Order: flag, RECOMMEND_* variable, recommend.toml of the project, your own file, default",
        f"your own file: {fmt.clean(str(user_file))}",
    )
    return Page("", columns, rows, 2, below, facts)


def _words(value: str | tuple[str, ...]) -> str:
    return fmt.clean(value if isinstance(value, str) else ", ".join(value))
