"""Pages as Markdown, converted from the blocks that a wide terminal would show."""

from collections.abc import Iterator

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recommender.report.formatting import GLUE
from recommender.report.layout import STRONG, WARNING, Block, Framed, plain_blocks, render
from recommender.report.page import Page

_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"} | {GLUE: " "})
_WIDE = 1000  # columns of the page that Markdown is written from


def markdown(page: Page) -> str:
    """The page for issues and reports."""
    page = page if page.plain is None else page.plain()
    blocks = plain_blocks(page, _WIDE) if page.rows else render(page, _WIDE)
    return "\n\n".join(part for block in blocks for part in _markdown(block)) + "\n"


def _markdown(block: Block) -> Iterator[str]:
    """The parts that a block is in Markdown."""
    if isinstance(block, Padding):
        yield from _markdown(block.renderable)
    elif isinstance(block, Framed):
        yield from _markdown(block.block)
    elif isinstance(block, Group):
        for each in block.renderables:
            yield from _markdown(each)
    elif isinstance(block, Table):
        yield from filter(None, [_sheet(block) if block.show_header else _list(block)])
    elif isinstance(block, Text) and block.plain.strip():
        yield _paragraph(block)


def _paragraph(words: Text) -> str:
    if words.style == WARNING:
        return f"**Warning:** {_escape(words.plain.removeprefix('warning: '))}"
    said = "<br>".join(map(_escape, words.plain.split("\n")))
    return f"**{said}**" if words.style == STRONG else said


def _sheet(made: Table) -> str:
    """A table with its header; figures are right-aligned."""
    head = [_escape(str(column.header)) for column in made.columns]
    rule = ["--:" if column.justify == "right" else ":--" for column in made.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *_rows(made)))


def _list(made: Table) -> str:
    """Labels and their sentences, or rows of figures, as a list."""
    lines = ([cell for cell in row if cell] for row in _rows(made))
    return "\n".join(
        f"* **{row[0]}**: {' · '.join(row[1:])}" if len(row) > 1 else f"* {row[0]}"
        for row in lines
        if row
    )


def _rows(made: Table) -> Iterator[tuple[str, ...]]:
    return zip(*(map(_cell, column.cells) for column in made.columns), strict=True)


def _cell(cell: Block) -> str:
    """A cell begins no line, so that >99 % quotes nothing."""
    words = cell.plain if isinstance(cell, Text) else cell if isinstance(cell, str) else ""
    return "<br>".join(_escape(line).replace("\\>", ">") for line in words.split("\n"))


def _escape(foreign: str) -> str:
    return foreign.translate(_SPECIAL)
