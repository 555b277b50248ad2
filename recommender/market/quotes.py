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
from functools import cache
from pathlib import Path


def median(values: list[float]) -> float:
    """The median; importing `statistics` for it takes 4 ms."""
    values, half = sorted(values), len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2.0


@cache
def _points(provider: str) -> tuple[tuple[float, float], ...]:
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
    before = (0.0, 1.0)
    for point in points:
        if age_days <= point[0]:
            share = (age_days - before[0]) / (point[0] - before[0])
            return before[1] + (point[1] - before[1]) * share
        before = point
    return last


def expected_quote(usd: float, level_usd: float, left: float) -> float:
    """The expected current price of a quote, given the level of its type."""
    return usd if usd >= level_usd else level_usd * (usd / level_usd) ** left
