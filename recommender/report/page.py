"""What a command shows, in any format (`formats.py`): a page."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from recommender.catalogs.frozen import dataclass

Block: TypeAlias = Any  # of rich (layout.py), which few formats need
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a page: its header and alignment."""

    title: str
    right: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """Words and a table for people, facts for programs, exact figures for spreadsheets."""

    title: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()  # a cell may hold several lines
    flexible: int = 0  # the column that wraps
    below: tuple[str, ...] = ()
    facts: Any = field(default_factory=dict)  # as JSON, or what makes them
    above: tuple[str, ...] = ()  # between the title and the table
    labels: tuple[tuple[str, str], ...] = ()  # sentences at the end, each after its label
    sheet: Callable[[], Rows] | None = None  # a header and rows; else the table
    then: tuple["Page", ...] = ()  # tables that follow
    view: Callable[[int], Sequence[Block]] | None = None  # how a terminal of a width shows it
    plain: Callable[[], "Page"] | None = None  # what other formats show of it


def headings(*titles: str) -> tuple[Column, ...]:
    """Columns of figures, and of words where a title ends in a colon: `headings("GPU:", "USD")`."""
    return tuple(Column(each.removesuffix(":"), not each.endswith(":")) for each in titles)


def cells_of(page: Page) -> Rows:
    """The page as a header and rows."""
    if page.sheet is not None:
        return page.sheet()
    shown = next((each for each in (page, *page.then) if each.columns), page)
    rows = (["; ".join(cell.split("\n")) for cell in row] for row in shown.rows)
    return [[column.title for column in shown.columns], *rows]
