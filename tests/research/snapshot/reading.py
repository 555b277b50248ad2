"""Reads the reference tables: CSV, some gzipped, empty cells for what is unknown."""

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

HAND = Path(__file__).parent / "hand"

Cells = dict[str, str]
Key = tuple[str, str]  # instance type, region


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


_SAME_PRICE = 0.0005  # newer lists state four decimals: what rounds to them is the same price


def with_newer(
    old: Mapping[Key, Cells], new: Mapping[Key, Cells], family: Callable[[str], str], prices: str
) -> dict[Key, Cells]:
    """Rows by (instance type, region) with those of a newer list, whole families of a region each.

    Sizes of a family are priced in proportion, which rows of two dates would not be. Of a price
    that has not moved the older list has more digits.
    """
    sizes, newer = defaultdict(set), defaultdict(set)
    for rows, found in ((old, sizes), (new, newer)):
        for name, region in rows:
            found[family(name), region].add(name)
    whole = {place for place in newer if newer[place] >= sizes[place]}
    renewed = {key: row for key, row in new.items() if (family(key[0]), key[1]) in whole}
    return {**old, **{key: _exact(old.get(key, {}), row, prices) for key, row in renewed.items()}}


def _exact(old: Cells, new: Cells, prices: str) -> Cells:
    """The newer row, with the older digits of prices that have not moved."""
    digits = {
        name: old[name]
        for name in prices.split()
        if old.get(name) and new.get(name)
        and abs(float(new[name]) / float(old[name]) - 1.0) < _SAME_PRICE
    }  # fmt: skip
    return {**old, **new, **digits}
