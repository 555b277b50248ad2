"""Reads the reference tables: CSV, some gzipped, empty cells for what is unknown."""

import csv
import gzip
import re
from pathlib import Path

HAND = Path(__file__).parent / "hand"

Cells = dict[str, str]


def read_table(path: Path) -> list[Cells]:
    """Read a CSV file, or the gzipped one of the same name."""
    packed = path.with_name(path.name + ".gz")
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_hand(name: str) -> list[Cells]:
    """Read a table that is kept by hand next to this module."""
    return read_table(HAND / f"{name}.csv")


def number(text: str) -> float | None:
    """Read a number; an empty cell is unknown."""
    return float(text) if text else None


def iso_date(text: str) -> str:
    """Write the first date in a text as a whole day, the first one it can mean."""
    found = re.search(r"(20\d\d)(?:-(\d\d))?(?:-(\d\d))?", text)
    if not found:
        raise ValueError(f"no date in {text!r}")
    year, month, day = found.groups()
    return f"{year}-{month or '01'}-{day or '01'}"
