"""What old spot quotes are worth: the cheapest of many is cheap by luck in part, and luck passes.

A quote below the level of its type is planned at

    level · (quote / level)^w(age),

the level being the median of the type's quotes at its provider and w the share of
ln(quote / level) that was still there after so many days, of the plans that jobs would pick
(docs/research/quotes.md).
More quotes make a deeper minimum, and it is brought back by as much more; a type's only quote is
its own level. Quotes above the level stay: nobody picks them for being cheap.
"""

import csv
from functools import cache
from pathlib import Path


def median(values: list[float]) -> float:
    """The middle value; the module `statistics` takes 4 ms to import."""
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
    """Share of ln(quote / level) that is left of a cheap quote of that age; 1 where unknown.

    Linear between the ages that were looked at; beyond them it falls on as on the way there.
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
    """The price to expect of a place that was quoted so, where its type stands at that level."""
    return usd if usd >= level_usd else level_usd * (usd / level_usd) ** left
