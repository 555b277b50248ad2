"""Reads AWS spot price history, as `describe-spot-price-history` prints it."""

import csv
import io
import math
import re
from datetime import datetime
from pathlib import Path

import numpy as np

from recommender.errors import UsageError, refuse_all, refuse_many
from recommender.inputs.csv_text import refuse_bomb
from recommender.inputs.units import parse_instant
from recommender.text import shown
from recommender.traces.public_formats import place_of_zone, tree_of
from recommender.traces.trace import Trace, changes

_LINUX = ("linux/unix", "linux/unix (amazon vpc)")
_AWS_COLUMNS = ("availabilityzone", "instancetype", "productdescription", "spotprice", "timestamp")
AWS_TEXT = "SPOTPRICEHISTORY"


def aws_prices(text: str, path: Path) -> tuple[Trace, ...]:
    """Price changes of Linux machines by zone and type, as describe-spot-price-history lists them.

    A series begins with its first change and is known to hold until the file's last one.
    """
    name = shown(path.name)
    rows = _aws_rows(text, name)
    problems: list[str] = []
    linux = [r for r in rows if r.get("productdescription", "linux/unix").lower() in _LINUX]
    if not linux:
        raise UsageError(f"{name}: holds no prices of Linux/UNIX machines")
    found: dict[tuple[str, str], dict[datetime, float]] = {}
    for number, row in enumerate(linux, 1):
        try:
            moment = parse_instant(row.get("timestamp", ""), f"{name}, price {number}: timestamp")
            usd = _usd(row.get("spotprice", ""), f"{name}, price {number}")
            key = (row.get("availabilityzone", ""), row.get("instancetype", ""))
            if not all(key):
                raise UsageError(f"{name}, price {number}: no zone or no instance type")
            found.setdefault(key, {})[moment] = usd
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
    refuse_all(problems)
    last = max(moment for prices in found.values() for moment in prices)
    return tuple(_priced(key, prices, last, name) for key, prices in sorted(found.items()))


def _usd(word: str, where: str) -> float:
    try:
        usd = float(word)
    except ValueError:
        usd = math.nan
    if not (math.isfinite(usd) and usd > 0):
        raise UsageError(f"{where}: '{shown(word)}' is not a price in USD per hour")
    return usd


def _aws_rows(text: str, name: str) -> list[dict[str, str]]:
    if text.lstrip().startswith(("{", "[")):
        tree = tree_of(text, name)
        items = tree.get("SpotPriceHistory") if isinstance(tree, dict) else tree
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UsageError(f"{name}: SpotPriceHistory is not a list of prices")
        return [{str(k).lower(): str(v) for k, v in item.items()} for item in items]
    refuse_bomb(text, name)
    lines = text.splitlines()
    if lines and lines[0].startswith(AWS_TEXT):
        cells = [line.split("\t")[1:6] for line in lines if line.startswith(AWS_TEXT)]
        return [dict(zip(_AWS_COLUMNS, row, strict=False)) for row in cells]
    header, *body = csv.reader(io.StringIO(text, newline=""))
    names = [plain(column) for column in header]
    needed = ("availabilityzone", "instancetype", "spotprice", "timestamp")
    missing = [column for column in needed if column not in names]
    refuse_all(f"{name}, line 1: column {column} is missing" for column in missing)
    return [dict(zip(names, row, strict=False)) for row in body if row]


def plain(column: str) -> str:
    """A column name without case, blanks and underscores."""
    return re.sub(r"[^a-z]", "", column.lower())


def _priced(
    key: tuple[str, str], prices: dict[datetime, float], last: datetime, name: str
) -> Trace:
    moments = sorted(prices)
    t_s = np.array([(m - moments[0]).total_seconds() for m in moments])
    usd = np.array([prices[m] for m in moments])
    keep = changes(t_s, usd)
    return Trace(
        name=" ".join(key),
        end_s=max((last - moments[0]).total_seconds(), 1.0),
        place=place_of_zone(key[0], instance_type=key[1]),
        start=moments[0],
        source=name,
        price_t_s=t_s[keep],
        usd_per_hour=usd[keep],
    )
