"""Reads users' small CSV files by column, and writes cells that no spreadsheet would execute."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from recommender.catalogs.bounds import check_table
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, refuse_all, refuse_many
from recommender.inputs.files import read_text
from recommender.text import has_control, shown, unknown

MAX_BYTES = 10 * 2**20
MAX_ROWS = 100_000
MAX_COLUMNS = 100
MAX_CELL = 1000  # characters

T = TypeVar("T")

_SIGNED = re.compile(r"[+-][0-9.]+(e[+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row of text; empty cells are left out."""

    place: str  # "offers.csv, line 3"
    cells: Mapping[str, str]

    def where(self, column: str) -> str:
        """Name a cell for an error message."""
        return f"{self.place}, column {column}:"


@dataclass(frozen=True, slots=True)
class CsvTable:
    """The rows of a CSV file as columns of text; "" for empty or missing cells."""

    name: str  # "offers.csv"
    lines: Sequence[int]  # the line of each row
    columns: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> CsvRow:
        cells = {column: cells[index] for column, cells in self.columns.items() if cells[index]}
        return CsvRow(f"{self.name}, line {self.lines[index]}", cells)

    def __iter__(self) -> Iterator[CsvRow]:
        return map(self.__getitem__, range(len(self)))

    def column(self, name: str) -> Sequence[str]:
        """The cells of a column; all empty if the file lacks it."""
        return self.columns.get(name) or ("",) * len(self)

    def read(self, columns: Iterable[str], read: Callable[[CsvRow], T]) -> list[T]:
        """Apply `read` to some columns of each row, once for rows with equal cells.

        Raises the `UsageError` of the first row that cannot be read.
        """
        cells = list(zip(*map(self.column, columns), strict=True))
        values: dict[tuple[str, ...], T] = {}
        for index, words in enumerate(cells):
            if words not in values:
                values[words] = read(self[index])
        return [values[words] for words in cells]


def read_csv(
    path: Path, required: Iterable[str], optional: Iterable[str], synonyms: Mapping[str, str]
) -> CsvTable:
    """Read a CSV file whose header names known columns; every problem is reported at once."""
    return parse_csv(read_text(path, MAX_BYTES), shown(path.name), required, optional, synonyms)


def parse_csv(
    text: str,
    name: str,
    required: Iterable[str],
    optional: Iterable[str],
    synonyms: Mapping[str, str],
    most_rows: int = MAX_ROWS,
) -> CsvTable:
    """Read CSV text whose header names known columns; `name` prefixes each problem.

    Empty lines and lines that begin with # are ignored.
    """
    refuse_bomb(text, name)
    mark = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
    rows: list[list[str]] = []
    lines: list[int] = []
    header: list[str] = []
    try:
        for cells in filter(_has_text, reader):
            place = f"{name}, line {reader.line_num}"
            if not header:
                header = _header(cells, place, tuple(required), tuple(optional), synonyms)
                continue
            if len(cells) > len(header):
                raise UsageError(f"{place}: {len(cells)} cells under {len(header)} columns")
            rows.append(cells if mark == "," else list(map(_with_point, cells)))
            lines.append(reader.line_num)
            if len(rows) > most_rows:
                raise UsageError(f"{name}: more than {most_rows} rows; is it the right file?")
    except csv.Error as error:
        raise UsageError(f"{name}, line {reader.line_num}: not CSV ({shown(error)})") from None
    if not header:
        _header([], f"{name}, line 1", tuple(required), tuple(optional), synonyms)
    if not rows:
        raise UsageError(f"{name}: holds no rows")
    filled = zip_longest(*rows, fillvalue="")
    table = CsvTable(
        name, lines, {c: [*map(str.strip, cells)] for c, cells in zip(header, filled, strict=False)}
    )
    if not _is_plain(text):
        refuse_all(problem for row in table for problem in _problems(row))
    return table


def _delimiter(text: str) -> str:
    """What is between columns: commas, or the semicolons or tabs of other languages' tables."""
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#")
    header = next(lines, "")
    return next((mark for mark in ";\t" if mark in header and "," not in header), ",")


def _with_point(cell: str) -> str:
    """A number with a decimal comma, 1.024,50, as it is read here."""
    bare = cell.strip()
    is_number = re.fullmatch(r"[+-]?\d{1,3}(?:\.?\d{3})*,\d+|[+-]?\d+,\d+", bare)
    return bare.replace(".", "").replace(",", ".") if is_number else cell


def refuse_bomb(text: str, name: str) -> None:
    """Refuse a table that would exhaust memory, before it is split."""
    try:
        check_table(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}; is it the right file?") from None


def _is_plain(text: str) -> bool:
    """Whether no cell can be odd: looking at each takes as long as the rest of the reading."""
    lines = text.replace("\r", "\n").replace(" ", "")
    begins = (f"{before}{sign}" for before in ",\n" for sign in "=@+-")
    return (
        '"' not in text  # quoted cells may hold line breaks and commas
        and lines.replace("\n", "").isprintable()
        and not any(begin in lines for begin in begins)
        and lines[:1] not in tuple("=@+-")
        and max(map(len, text.split("\n"))) <= MAX_CELL
    )


def _has_text(cells: list[str]) -> bool:
    first = cells[0].lstrip() if cells else ""
    return first[0] != "#" if first else any(map(str.strip, cells))


def read_each(rows: Iterable[CsvRow], read: Callable[[CsvRow], T]) -> tuple[T, ...]:
    """Read every row; all problems are reported at once."""
    values: list[T] = []
    problems: list[str] = []
    for row in rows:
        try:
            values.append(read(row))
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
    refuse_all(problems)
    return tuple(values)


def needed_cell(row: CsvRow, column: str) -> str:
    """Return a cell that must not be empty."""
    if column not in row.cells:
        raise UsageError(f"{row.where(column)} is empty")
    return row.cells[column]


def chosen_cell(row: CsvRow, column: str, choices: Mapping[str, T], default: str) -> T:
    """Look up the value of a cell's word among a few choices."""
    word = row.cells.get(column, default)
    if word.lower() not in choices:
        raise UsageError(f"{row.where(column)} {unknown('value', word, tuple(choices))}")
    return choices[word.lower()]


def _header(
    cells: list[str],
    place: str,
    required: tuple[str, ...],
    optional: tuple[str, ...],
    synonyms: Mapping[str, str],
) -> list[str]:
    if len(cells) > MAX_COLUMNS:
        raise UsageError(f"{place}: {len(cells)} columns; is it the right file?")
    plain = [cell.strip().lower().replace(" ", "_") for cell in cells]
    columns = [synonyms.get(cell, cell) for cell in plain]
    known = (*required, *optional)
    problems = [
        f"{place}: {unknown('column', column, known)}" for column in columns if column not in known
    ]
    problems += [f"{place}: column {c} is missing" for c in required if c not in columns]
    if len(set(columns)) < len(columns):
        problems.append(f"{place}: a column occurs twice")
    refuse_all(problems)
    return columns


def _problems(row: CsvRow) -> list[str]:
    found = []
    for column, cell in row.cells.items():
        if has_control(cell) or len(cell) > MAX_CELL:
            found.append(f"{row.where(column)} '{shown(cell)}' holds control characters")
        elif cell[0] in "=@+-" and not _SIGNED.fullmatch(cell):
            found.append(f"{row.where(column)} '{shown(cell)}' looks like a formula; write a value")
    return found
