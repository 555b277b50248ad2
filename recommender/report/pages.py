"""Simple pages: a title, a table of words, some lines below."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from recommender.report.lines import (
    Column,
    Line,
    Row,
    grid,
    inset,
    overflow,
    paragraph,
    wrapped,
)

_NARROW = 60


@dataclass(frozen=True, slots=True)
class Page:
    """A table with words above and below, and the same facts for programs."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]  # a cell may hold several lines
    flexible: int  # the column that wraps
    below: tuple[str, ...] = ()
    facts: Any = field(default_factory=dict)  # as JSON


def render(page: Page, width: int) -> list[Line]:
    """The page as lines; narrow terminals get one row below the other."""
    lines = [*paragraph(page.title, width, "title"), Line("")] if page.title else []
    if page.rows:
        lines += _table(page, width)
    return lines + [line for words in page.below for line in inset(words, width)]


def _table(page: Page, width: int) -> list[Line]:
    """The rows in columns where these fit, else one below the other."""
    stacked = [line for row in page.rows for line in _stacked(page.columns, row, width)]
    if width < _NARROW:
        return stacked
    rows = [Row(tuple(tuple(cell.split("\n")) for cell in row)) for row in page.rows]
    table = grid(page.columns, rows, width, page.flexible)
    return stacked if overflow(stacked, width) < overflow(table, width) else table


def _stacked(columns: Sequence[Column], row: Sequence[str], width: int) -> list[Line]:
    named = [
        f"{column.title} {cell}".replace("\n", " · ")
        for column, cell in zip(columns[1:], row[1:], strict=True)
        if cell
    ]
    first = [line for words in row[0].split("\n") for line in inset(words, width)]
    return [*first, *(Line(each) for each in wrapped(" · ".join(named), width, "   "))]
