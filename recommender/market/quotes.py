"""Corrects old cheap spot quotes, which are partly cheap by luck (selection bias).

A quote below the level of its type is planned at

    level · (quote / level)^w(age),

where the level is the median of the type's quotes at its provider, and w is the share of ln(quote /
level) that remained after so many days, for the plans that jobs would select
(docs/research/quotes.md). With more quotes the minimum is lower and is corrected by more; a type's
only quote is its own level. Quotes above the level are unchanged, because they are not selected for
their price.
"""

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path

Point = tuple[float, float]


def median(values: list[float]) -> float:
    """The median; importing `statistics` for it takes 4 ms."""
    values, half = sorted(values), len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2.0


@cache
def _points(provider: str) -> tuple[Point, ...]:
    """Age in days and what was left, for one provider; empty where nothing is known."""
    text = Path(__file__).with_name("quote_persistence.csv").read_text(encoding="utf-8")
    rows = (row for row in csv.DictReader(text.splitlines()) if row["provider"] == provider)
    return tuple((float(row["age_days"]), float(row["persistence"])) for row in rows)


@cache
def persistence(provider: str, age_days: float) -> float:
    """Share of ln(quote / level) that remains of a cheap quote of that age; 1 if unknown.

    Linear between the measured ages; beyond them it continues to fall at the last slope.
    """
    points = _points(provider)
    if not points or age_days <= 0.0:
        return 1.0
    last_age, last = points[-1]
    if age_days >= last_age:
        return float(last ** (age_days / last_age))
    return interpolated(points, age_days, (0.0, 1.0))


def interpolated(points: Iterable[Point], at: float, before: Point) -> float:
    """Piecewise linear from `before` through sorted points; the last value beyond them."""
    for point in points:
        if at <= point[0]:
            width = point[0] - before[0]
            return before[1] + (point[1] - before[1]) * (at - before[0]) / width
        before = point
    return before[1]


def expected_quote(usd: float, level_usd: float, left: float) -> float:
    """The expected current price of a quote, given the level of its type."""
    return usd if usd >= level_usd else level_usd * (usd / level_usd) ** left
