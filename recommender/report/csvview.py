"""The plans as CSV (RFC 4180), safe to open in a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from recommender.plan import Answer
from recommender.report.flatview import COLUMNS, rows

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?")


def render(answer: Answer) -> str:
    """One header line and one line per plan, ended by CRLF."""
    return table(COLUMNS, rows(answer))


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A header and rows as CSV."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([safe(cell) for cell in row] for row in body)
    return made.getvalue()


def safe(cell: str) -> str:
    """A cell that a spreadsheet would run as a formula gets an apostrophe in front."""
    formula = cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell
