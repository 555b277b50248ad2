"""The build as a whole: sources, dates, and that what ships is what it makes."""

import gzip
import json
import os
from pathlib import Path

import pytest

from recommender.catalogs.load import SNAPSHOT
from recommender.catalogs.serialize import write_catalog
from tests.catalogs import small
from tests.research.snapshot.assemble import snapshot_tables
from tests.research.snapshot.reading import iso_date
from tests.research.snapshot.sources import SourceBook, cite, renumber

ROOT = Path(__file__).parents[2]
REFERENCE = Path(os.environ.get("RECOMMEND_REFERENCE_DATA", ROOT.parent / "shared" / "data"))


def test_sources_are_numbered_by_name_in_any_order_of_calls() -> None:
    books = SourceBook(), SourceBook()
    for book, names in zip(books, ("ab", "ba"), strict=True):
        for name in names:
            book.key(name, "MIT", "row", name)
    assert books[0].rows() == books[1].rows()
    assert books[1].final_keys() == {1: 2, 2: 1}


def test_rows_get_the_final_numbers() -> None:
    book = SourceBook()
    keys = [book.key(name, "MIT", "row", name) for name in "ba"]
    rows = renumber([small.offer(source=key) for key in keys], book.final_keys())
    assert [row.source for row in rows] == [2, 1]


def test_one_source_cannot_have_two_licences() -> None:
    book = SourceBook()
    book.key("a", "MIT", "row", "a")
    with pytest.raises(ValueError, match="different particulars"):
        book.key("a", "Apache-2.0", "row", "a")


def test_a_source_must_say_what_was_taken() -> None:
    with pytest.raises(ValueError, match="figure, fit or row"):
        SourceBook().key("a", "MIT", "everything", "a")


def test_an_unknown_source_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown source"):
        cite(SourceBook(), "a friend of a friend")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-07-30", "2026-07-30"),
        ("2022-09", "2022-09-01"),
        ("2024 (v1.0 docs)", "2024-01-01"),
        ("2025..2026", "2025-01-01"),
    ],
)
def test_rough_dates_become_the_first_day_they_can_mean(text: str, day: str) -> None:
    assert iso_date(text) == day


@pytest.mark.reference
@pytest.mark.skipif(
    not (REFERENCE / "prices").is_dir(),
    reason=f"no reference tables in {REFERENCE}: set RECOMMEND_REFERENCE_DATA to their folder",
)
def test_a_rebuild_from_the_reference_tables_is_what_ships(tmp_path: Path) -> None:
    write_catalog(tmp_path, snapshot_tables(REFERENCE))
    built, shipped = (
        json.loads((folder / "manifest.json").read_text()) for folder in (tmp_path, SNAPSHOT)
    )
    for name, entry in built["tables"].items():
        # Packed bytes depend on the version of zlib; what they hold must not.
        new, old = ((folder / entry["file"]).read_bytes() for folder in (tmp_path, SNAPSHOT))
        packed = entry["file"].endswith(".gz")
        same = gzip.decompress(new) == gzip.decompress(old) if packed else new == old
        assert same, name
        assert entry["rows"] == shipped["tables"][name]["rows"]
    assert (built["prices"], built["sources"]) == (shipped["prices"], shipped["sources"])
