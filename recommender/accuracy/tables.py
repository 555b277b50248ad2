"""The figures that studies carry with them: CSV files beside this module."""

import csv
from functools import cache
from importlib.resources import files


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Every row of `data/NAME.csv`, as text."""
    text = files("recommender.accuracy").joinpath("data", f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))
