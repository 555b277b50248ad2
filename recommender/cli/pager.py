"""Writes a page as a table or as JSON."""

from typing import Any

from recommender.cli.flags import PageFlags, SheetFlags
from recommender.cli.reader import Reader
from recommender.cli.screen import put, screen, show
from recommender.cli.show import COLOURS
from recommender.report.pages import Page, render


def show_page(page: Page, flags: PageFlags) -> None:
    """Print a page in the form that was asked for."""
    if as_json(flags):
        put_json(page.facts)
        return
    on = screen(flags.color or "auto")
    show(render(page, on.width), on)


def as_json(flags: PageFlags) -> bool:
    """Tell whether JSON was asked for; refuse forms that a list does not have."""
    read = Reader()
    form = read.choice(flags.output, "--output", ("table", "json"), "table")
    read.choice(flags.color, "--color", COLOURS, "auto")
    read.stop()
    return flags.json or form == "json"


def sheet_form(flags: SheetFlags) -> str:
    """The form of a list that is a table of figures as well: table, json or csv."""
    read = Reader()
    form: str = read.choice(flags.output, "--output", ("table", "json", "csv"), "table")
    if flags.json and flags.output is not None and form != "json":
        read.problems.append(f"--json contradicts --output {form}; keep one")
    read.stop()
    return "json" if flags.json else form


def put_json(facts: Any) -> None:
    """Print facts as JSON."""
    from recommender.report.jsonview import dumps

    put(dumps(facts))
