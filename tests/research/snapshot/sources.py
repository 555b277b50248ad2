"""Where figures come from: one number per named source, the same in every build."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from recommender.catalogs.schema import Source
from tests.research.snapshot.reading import read_hand

RowT = TypeVar("RowT")


class SourceBook:
    """Collects the sources that rows name, and numbers them by name at the end.

    Numbers given out while building depend on the order of the calls; `final_keys` maps
    them to those of `rows`, which depend on the names only.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}

    def key(self, name: str, licence: str, taken: str, attribution: str) -> int:
        """Give the number of a source; the same name must come with the same licence.

        `taken` is "figure" (single cited numbers), "fit" (constants computed from it) or
        "row" (facts carried over row by row).
        """
        if taken not in ("figure", "fit", "row"):
            raise ValueError(f"source {name!r}: taken must be figure, fit or row, not {taken!r}")
        new = Source(len(self._sources) + 1, name, licence, taken, attribution)
        known = self._sources.setdefault(name, new)
        if replace(new, source=known.source) != known:
            raise ValueError(f"source {name!r} is given twice with different particulars")
        return known.source

    def rows(self) -> list[Source]:
        """List the sources by name, numbered from 1."""
        ordered = sorted(self._sources.values(), key=lambda s: s.name)
        return [replace(s, source=number) for number, s in enumerate(ordered, start=1)]

    def final_keys(self) -> dict[int, int]:
        """Map the numbers given out while building to the final ones."""
        return {self._sources[row.name].source: row.source for row in self.rows()}


def renumber(rows: Iterable[RowT], keys: Mapping[int, int]) -> list[RowT]:
    """Put the final numbers of their sources into rows."""
    return [replace(row, source=keys[row.source]) for row in rows]  # type: ignore[type-var,attr-defined]


def cite(book: SourceBook, words: str) -> int:
    """Give the number of the hand-kept source whose name the words of a table begin with."""
    for row in read_hand("sources"):
        if words.startswith(row["starts_with"]):
            return book.key(row["name"], row["licence"], row["taken"], row["attribution"])
    raise ValueError(f"unknown source {words!r}: add it to hand/sources.csv")
