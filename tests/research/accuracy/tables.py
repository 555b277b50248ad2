"""The figures that studies carry with them: CSV files next to this module."""

import csv
from functools import cache
from importlib.resources import files
from pathlib import Path

from recommender.errors import UsageError
from recommender.text import shown_path

RUNS = ("measured/training.csv.gz", "hardware/gpus.csv")  # of published training runs
SPOT = ("spot/traces.csv", "spot/availability.csv.gz")


class MissingTable(UsageError):
    """A reference table that a study reads is not at hand; the study is skipped."""


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Every row of `data/NAME.csv`, as text."""
    text = files("tests.research.accuracy").joinpath("data", f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def reference_folder(reference: Path | None, *needed: str) -> Path:
    """The folder of large tables that a study was given; `needed` are files that must be in it.

    Raises `MissingTable` where there is none, or one without such a file: `Study.finding` says so.
    """
    if reference is None:
        raise MissingTable(
            "needs the reference tables: --reference DIR or RECOMMEND_REFERENCE_DATA"
        )
    gone = [name for name in needed if not (reference / name).is_file()]
    if gone:
        raise MissingTable(f"{gone[0]} is not in {shown_path(reference)}")
    return reference
