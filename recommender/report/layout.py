"""Lines of output: their text and weight, set in columns, pages and bars."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.simulation import Histogram
from recommender.report import formatting as fmt
from recommender.report.formatting import glued

Style = Literal["", "title", "strong", "faint", "warning"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output and its weight on a terminal that shows colour."""

    text: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a grid: its header and how its cells stand."""

    title: str
    right: bool = True
    gap: int = 3  # blanks before it


Cell = tuple[str, ...]  # the lines of one cell


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one plan, and whether its first line stands out."""

    cells: tuple[Cell, ...]
    strong: bool = False


def plain(lines: Iterable[Line]) -> str:
    """The text alone, one line each."""
    return "".join(f"{line.text}\n" for line in lines)


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """A paragraph in lines of at most `width`; words and numbers are never cut."""
    after = " " * len(first) if rest is None else rest
    lines = textwrap.wrap(
        glued(text),
        max(width, len(first) + 20),
        initial_indent=first,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [first.rstrip()]


def paragraph(text: str, width: int, style: Style = "") -> list[Line]:
    """A paragraph as lines of one weight."""
    return [Line(each, style) for each in wrapped(text, width)]


def inset(text: str, width: int) -> list[Line]:
    """A paragraph that stands under a table, one blank in."""
    return [Line(each) for each in wrapped(text, width, " ")]


def labelled(label: str, text: str, width: int, indent: int = 2, hang: int = 9) -> list[Line]:
    """A paragraph behind its label, hanging: the form of the lines under a plan."""
    first = " " * indent + label.ljust(hang - 1) + " "
    if len(label) < hang or len(first) + len(text) <= width:
        return [Line(each) for each in wrapped(text, width, first)]
    above = wrapped(label, width, " " * indent)  # too long to stand before anything
    return [Line(each) for each in [*above, *wrapped(text, width, " " * (indent + 2))]]


def overflow(lines: Iterable[Line], width: int) -> int:
    """How many lines are longer than the terminal."""
    return sum(len(line.text) > width for line in lines)


def rule(width: int) -> Line:
    """The line above and below a table."""
    return Line(" " + "─" * (width - 4), "faint")


def grid(columns: Sequence[Column], rows: Sequence[Row], width: int, flexible: int) -> list[Line]:
    """Columns as wide as their cells; the flexible one takes what is left and wraps."""
    widths = [_natural(column, rows, i) for i, column in enumerate(columns)]
    fixed = sum(w for i, w in enumerate(widths) if i != flexible)
    room = width - 4 - fixed - sum(c.gap for c in columns[1:])
    widths[flexible] = max(room, 8)
    header = _join(columns, widths, [c.title for c in columns])
    body = [line for row in rows for line in _row(columns, widths, row, flexible)]
    return [Line(header, "faint"), rule(width), *body, rule(width)]


def _natural(column: Column, rows: Sequence[Row], index: int) -> int:
    cells = (line for row in rows for line in row.cells[index])
    return max([len(column.title), *map(len, cells)])


def _row(columns: Sequence[Column], widths: Sequence[int], row: Row, flexible: int) -> list[Line]:
    cells = list(row.cells)
    folded = [wrapped(line, widths[flexible]) for line in cells[flexible]]
    cells[flexible] = tuple(part for lines in folded for part in lines)
    first: Style = "strong" if row.strong else ""
    return [
        Line(_join(columns, widths, [c[i] if i < len(c) else "" for c in cells]), style)
        for i in range(max(map(len, cells)))
        for style in [first if i == 0 else "faint"]
    ]


def _join(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    line = " "
    for i, (column, width, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        gap = " " * column.gap if i else ""
        line += gap + (cell.rjust(width) if column.right else cell.ljust(width))
    return line.rstrip()


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


_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEAST = 8  # characters of the longest bar


def bar(share: float, longest: float, width: int) -> str:
    """A bar as long as its share of the longest, in eighths of a character."""
    eighths = round(8 * width * share / longest) if longest > 0 else 0
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def bars(rows: Sequence[tuple[str, float]], width: int) -> list[Line]:
    """One bar per row between its label and its share in per cent."""
    label = max(len(name) for name, _ in rows)
    longest = max(share for _, share in rows)
    parts = [fmt.percent(share) for _, share in rows]
    room = max(width - label - max(map(len, parts)) - 6, _LEAST)
    return [
        Line(f"  {name.rjust(label)}  {bar(share, longest, room)} {words}".rstrip())
        for (name, share), words in zip(rows, parts, strict=True)
    ]


def histogram(given: Histogram, unit: float, width: int) -> list[Line]:
    """A bar per bin; the outer bins hold the tails, and say so."""
    places = edge_places([edge / unit for edge in given.edges])
    edges = [f"{edge / unit:,.{places}f}" for edge in given.edges]
    names = [f"{low}-{high}" for low, high in zip(edges, edges[1:], strict=False)]
    if len(names) > 1:
        names = [f"up to {edges[1]}", *names[1:-1], f"from {edges[-2]}"]
    return bars(list(zip(names, given.shares, strict=True)), width)


def edge_places(edges: Sequence[float]) -> int:
    """Fewest decimals that write every edge exactly."""
    for places in range(6):
        if all(abs(round(e, places) - e) < 1e-9 * max(abs(e), 1.0) for e in edges):
            return places
    return 6
