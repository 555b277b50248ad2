"""The formats of every page: text, JSON, CSV (RFC 4180) and Markdown. A new one is a line here."""

import csv
import io
import re
from collections.abc import Callable

from recommender.report.json_output import dumps
from recommender.report.page import Page, cells_of

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?")


def as_text(page: Page, width: int, colour: bool) -> str:
    """The page for a terminal."""
    from recommender.report.layout import drawn, render  # rich, for where something is drawn

    return drawn(render(page, width), width, colour)


def as_json(page: Page, width: int, colour: bool) -> str:
    """The facts of the page."""
    return dumps(page.facts() if callable(page.facts) else page.facts)


def as_csv(page: Page, width: int, colour: bool) -> str:
    """The figures of the page, safe to open in a spreadsheet."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerows([safe(cell) for cell in row] for row in cells_of(page))
    return made.getvalue()


def safe(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula."""
    formula = cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


def as_markdown(page: Page, width: int, colour: bool) -> str:
    """The page for issues and reports."""
    from recommender.report.markdown import markdown  # rich, too

    return markdown(page)


FORMATS: dict[str, Callable[[Page, int, bool], str]] = {
    "table": as_text,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}


def written(page: Page, form: str, width: int = 80, colour: bool = False) -> str:
    """The page in a format."""
    return FORMATS[form](page, width, colour)
