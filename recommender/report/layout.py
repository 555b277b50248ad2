"""Layout of pages: rich's texts, tables and bars, and their conversion to lines of text."""

from collections.abc import Iterable, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recommender.catalogs.frozen import dataclass
from recommender.plan.simulation import Histogram
from recommender.report import formatting as fmt
from recommender.report.formatting import GLUE, glued
from recommender.report.page import Column, Page

Block = RenderableType  # a paragraph, a table, a blank line: what a page is made of
BLANK = ""
STRONG, FAINT, WARNING = "bold", "dim", "yellow"
MARKETS = {
    "spot": "cyan",
    "on-demand": "magenta",
    "on demand": "magenta",
}  # distinguished by colour and by word
_ANY_WIDTH = 100_000  # a console as wide as any block needs
_LEAST = 10  # columns that are left for text next to a label, at least
_LABEL = 8  # characters of the longest usual label
_NARROW = 60
_LONGEST_BAR = 60


def drawn(blocks: Iterable[Block], width: int, colour: bool = False) -> str:
    """The blocks as text, no line wider than the screen unless a single word of it is."""
    console = _console(colour)
    for block in blocks:
        least = _min_width(block)
        shown = block if least <= width else _overflowing(block, width)
        console.print(shown, width=max(width, least), crop=False)
    text = console.file.getvalue().replace(GLUE, " ")  # type: ignore[attr-defined]
    return text if colour else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _console(colour: bool = False) -> Console:
    return Console(
        file=StringIO(),
        width=_ANY_WIDTH,
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=False,  # cli/screen.py has read the environment
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _min_width(block: Block) -> int:
    """Columns without which a word is cut; rich's own measure draws everything once more for it."""
    if isinstance(block, Text):
        return max(map(len, block.plain.split()), default=0)
    if isinstance(block, Padding):
        return block.left + _min_width(block.renderable)
    if isinstance(block, Table):
        gap = block.padding[1] + (block.box is not None)
        widths = [column.width or column.min_width or 0 for column in block.columns]
        return sum(widths) + gap * (len(widths) - 1)
    return _min_width(block.block) + 4 if isinstance(block, Framed) else 0


def _overflowing(block: Block, width: int) -> Block:
    """Text with a word longer than the screen, such as a link: only that word exceeds the width."""
    indent = block.left if isinstance(block, Padding) else 0
    inside = block.renderable if isinstance(block, Padding) else block
    if isinstance(inside, Text):
        return inset(Text(_wrapped(inside.plain, width - indent), inside.style), indent)
    if isinstance(inside, Table) and inside.box is None and len(inside.columns) == 2:
        return inset(_narrowed(inside, width - indent), indent)
    return block


def _wrapped(words: str, width: int) -> str:
    import textwrap

    wrapped = (
        textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        for line in words.split("\n")
    )
    return "\n".join(each for lines in wrapped for each in lines)


def _narrowed(table: Table, width: int) -> Table:
    """Two columns, of which the second has its lines broken for this width beforehand."""
    first, second = table.columns
    left = (first.width or first.min_width or 0) + table.padding[1]
    made = Table.grid(padding=table.padding)
    made.add_column(min_width=first.min_width, width=first.width, justify=first.justify)
    made.add_column(no_wrap=True)
    for label, words in zip(first.cells, second.cells, strict=True):
        made.add_row(label, _wrapped(str(words), max(width - left, _LEAST)))
    return made


def fits(block: Block, width: int) -> bool:
    """Whether a block can be drawn at this width without cutting a word."""
    return _min_width(block) <= width


def text(words: str, style: str = "") -> Text:
    """A paragraph; numbers stay with their units."""
    return Text(glued(words), style)


def marked(words: str, style: str = "") -> Text:
    """A text that names machines, with highlighted markets."""
    made = text(words, style)
    for market, colour in MARKETS.items():
        if market in words:
            made.highlight_words((market,), colour)
    return made


def inset(block: Block, indent: int = 2) -> Padding:
    """A block with an indent."""
    return Padding.indent(block, indent)


def grid(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: int = 2) -> Table:
    """Rows in columns without a header; those of `right` are right-aligned and uncut."""
    table = Table.grid(padding=(0, gap))
    for i, cells in enumerate(zip(*rows, strict=True)):
        words = [word for cell in cells for word in glued(cell).split()]
        table.add_column(min_width=max(map(len, words), default=1))
        if i in right:
            table.columns[i].justify = "right"
            table.columns[i].width = max(map(len, cells))
    for row in rows:
        table.add_row(*map(text, row))
    return table


@dataclass(frozen=True, slots=True)
class Framed:
    """A highlighted block on a terminal; without colours, for a pipe or a file, the block alone."""

    block: Block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The block in a panel where there are colours."""
        yield self._shown(console)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As wide as what is shown."""
        inside = Measurement.get(console, options, self.block)
        frame = 0 if console.color_system is None else 4
        return Measurement(inside.minimum + frame, inside.maximum + frame)

    def _shown(self, console: Console) -> Block:
        if console.color_system is None:
            return self.block
        from rich.panel import Panel

        return Panel(self.block, expand=False, border_style=FAINT)


def labelled(parts: Sequence[tuple[str, str]], indent: int = 2) -> Padding:
    """Paragraphs with hanging labels, as in the lines below a plan."""
    table = grid(parts, gap=1)
    if table.columns:
        table.columns[0].min_width = max(_LABEL, table.columns[0].min_width or 0)
    return inset(table, indent)


def sheet(columns: Sequence[Column], flexible: int) -> Table:
    """An empty table in which one column wraps and the others are as wide as their cells."""
    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    made.header_style = made.border_style = FAINT
    for i, column in enumerate(columns):
        justify = "right" if column.right else "left"
        made.add_column(column.title, justify=justify, no_wrap=i != flexible)  # type: ignore[arg-type]
    return made


def add_row(table: Table, cells: Sequence[Sequence[str]], first: str = "") -> None:
    """A row of cells with several lines, of which the first may be highlighted."""
    made = []
    for column, lines in zip(table.columns, cells, strict=True):
        head, rest = "\n".join(lines[:1]), "".join(f"\n{each}" for each in lines[1:])
        if column.no_wrap:  # its width is that of its cells: rich would measure every word
            least = max(column.width or 0, column.min_width or 0, len(str(column.header)))
            column.width = max(least, *map(len, lines))
            made.append(Text().append(head, first).append(rest, FAINT))
        else:
            column.min_width = max(column.min_width or 0, _min_width(text(head + rest)))
            made.append(Text().append_text(marked(head, first)).append_text(text(rest, FAINT)))
    table.add_row(*made)


def render(page: Page, width: int) -> list[Block]:
    """The page as blocks for a terminal."""
    if page.view is None:
        return plain_blocks(page, width)
    return [*page.view(width), *(block for each in page.then for block in render(each, width))]


def plain_blocks(page: Page, width: int) -> list[Block]:
    """The page as blocks; narrow terminals get one row below the other."""
    title = [text(page.title, STRONG)] if page.title else []
    rows = _table(page, width) if page.rows else []
    below: list[Block] = [text(words) for words in page.below]
    above = [text(each, WARNING if each.startswith("warning:") else "") for each in page.above]
    labels = [labelled(page.labels, indent=0)] if page.labels else []
    parts: list[Sequence[Block]] = [[*title, *above], rows, below, labels]
    more = [block for each in page.then for block in render(each, width)]
    return [*_spaced(parts), *more]


def _spaced(parts: Iterable[Sequence[Block]]) -> list[Block]:
    """The parts with a blank line between two."""
    filled = [part for part in parts if part]
    return [b for i, part in enumerate(filled) for b in (*([BLANK] if i else []), *part)]


def _table(page: Page, width: int) -> list[Block]:
    """The rows in columns where these fit, else one below the other."""
    table = sheet(page.columns, page.flexible)
    for row in page.rows:
        add_row(table, [cell.split("\n") for cell in row])
    if width >= _NARROW and fits(table, width):
        return [table]
    return [block for row in page.rows for block in _stacked(page.columns, row)]


def _stacked(columns: Sequence[Column], row: Sequence[str]) -> list[Block]:
    named = [
        f"{column.title} {cell}".replace("\n", " · ")
        for column, cell in zip(columns[1:], row[1:], strict=True)
        if cell
    ]
    return [text(row[0]), inset(text(" · ".join(named)))]


def bars(rows: Sequence[tuple[str, float]]) -> Padding:
    """One bar per row between its label and its share in per cent."""
    from rich.bar import Bar

    longest = max(share for _, share in rows) or 1.0
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(max_width=_LONGEST_BAR)
    table.add_column(justify="right", no_wrap=True)
    for name, share in rows:
        table.add_row(text(name), Bar(longest, 0.0, share), text(fmt.percent(share)))
    return inset(table)


def histogram(given: Histogram, unit: float) -> Padding:
    """One bar per bin; the outer bins contain the tails, and say so."""
    places = edge_places([edge / unit for edge in given.edges])
    edges = [f"{edge / unit:,.{places}f}" for edge in given.edges]
    names = [f"{low}-{high}" for low, high in zip(edges, edges[1:], strict=False)]
    if len(names) > 1:
        names = [f"up to {edges[1]}", *names[1:-1], f"from {edges[-2]}"]
    return bars(list(zip(names, given.shares, strict=True)))


def edge_places(edges: Sequence[float]) -> int:
    """The smallest number of decimals that writes every edge exactly."""
    for places in range(6):
        if all(abs(round(e, places) - e) < 1e-9 * max(abs(e), 1.0) for e in edges):
            return places
    return 6
