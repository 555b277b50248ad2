"""Jobs as people look at them: a list, and one with all that was derived."""

from collections.abc import Sequence
from dataclasses import asdict

from recommender.job import Job
from recommender.report import text
from recommender.report.lines import Column
from recommender.report.pages import Page


def job_list(jobs: Sequence[Job]) -> Page:
    """Name, what it is, and how much work."""
    columns = (
        Column("job", right=False),
        Column("what it trains", right=False),
        Column("FLOP"),
    )
    rows = tuple((j.name, text.clean(j.title), text.scientific(j.total_flop)) for j in jobs)
    facts = [{"name": j.name, "title": j.title, "flop": j.total_flop} for j in jobs]
    below = ("your own: recommend jobs new --like llama3-8b-sft > recommend.yaml",)
    return Page("", columns, rows, 1, below, facts)


def job_page(job: Job) -> Page:
    """Every field that a model of the planner reads."""
    derived = set(job.assumed)
    columns = (
        Column("field", right=False),
        Column("value", right=False),
        Column("origin", right=False),
    )
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
    title = f"{text.clean(job.name)}: {text.clean(job.title)}"
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
    return text.clean(str(value)) if value not in (None, "") else "not said"
