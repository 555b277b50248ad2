"""The figures that studies carry with them: CSV files beside this module."""

import csv
from functools import cache
from importlib.resources import files
from pathlib import Path

from recommender.errors import UsageError

RUNS = ("measured/training.csv.gz", "hardware/gpus.csv")  # of published training runs
SPOT = ("spot/traces.csv", "spot/availability.csv.gz")


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Every row of `data/NAME.csv`, as text."""
    text = files("recommender.accuracy").joinpath("data", f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def reference_folder(reference: Path | None, *needed: str) -> Path:
    """The folder of large tables that a study was given; `needed` are files that must be in it.

    Raises `UsageError` where there is none, or one without such a file. (`Study.finding` skips
    studies where no folder is given.)
    """
    gone = () if reference is None else tuple(n for n in needed if not (reference / n).is_file())
    if reference is None or gone:
        where = "no folder given" if reference is None else f"{gone[0]} is not in {reference}"
        raise UsageError(
            f"this study reads the reference tables: {where}; name the folder that holds them "
            "with --reference DIR"
        )
    return reference
