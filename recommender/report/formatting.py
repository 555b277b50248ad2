"""Formats numbers and ages for people (three digits, a unit), and cleans foreign strings."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

from recommender.catalogs.registry import CLOUDS
from recommender.inputs.units.times import now
from recommender.text import duration as duration
from recommender.text import exact as exact
from recommender.text import number as number
from recommender.text import percent as percent
from recommender.text import share as share
from recommender.text import usd as usd

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_SPACES = re.compile(r"\s+")
_LARGE = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
# A blank at which no line is broken: rich breaks lines at U+00A0, too. Of private use, so that
# `clean` leaves it in no foreign text; report/layout.py writes it as a blank.
GLUE = "\ue000"
_UNITS = re.compile(
    r"(?<=\d) (?=(?:%|ms|s|min|h|d|USD|vCPU|GPUs?|[kMGT]?B|[kMT])\b|%)"
    r"|(?<=[≥≤±+×]) (?=\w)| (?=\+\d)"
)
_LONGEST = 400  # of a foreign string in a table
_LEVELS = "▁▂▃▄▅▆▇"


def clean(foreign: str) -> str:
    """A foreign string on one line, without escape, control or direction characters."""
    spaced = _SPACES.sub(" ", _ESCAPE.sub("", foreign))
    kept = "".join(c for c in spaced if c.isprintable())
    return kept.strip() if len(kept) <= _LONGEST else kept[:_LONGEST].strip() + "…"


def glued(sentence: str) -> str:
    """The sentence with non-breaking spaces between numbers and units."""
    return _UNITS.sub(GLUE, sentence)


def usd_span(low: float, high: float) -> str:
    """A span of money: "38-108"."""
    return f"{usd(low)}-{usd(high)}"


def large(x: float) -> str:
    """A count of things: 1.0 B, 115 M, 3.2 k."""
    for scale, name in _LARGE:
        if x >= 0.9995 * scale:
            return f"{_two(x / scale)} {name}"
    return number(x)


def size(n_bytes: float) -> str:
    """Bytes in decimal units: 112 GB."""
    for scale, name in _BYTES:
        if n_bytes >= 0.9995 * scale:
            return f"{_two(n_bytes / scale)} {name}"
    return f"{number(n_bytes)} B"


def _two(x: float) -> str:
    return f"{x:.1f}" if x < 10 else f"{x:.0f}"


def scientific(x: float) -> str:
    """A very large number: 5.1e19."""
    mantissa, _, exponent = f"{x:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def provider(name: str) -> str:
    """A provider's name in its own spelling."""
    info = CLOUDS.get(name)
    return info.label if info else clean(name)


_MARKETS = {
    "on_demand": "on-demand",
    "flex_start": "flex-start",
    "reserved_block": "reserved block",
    "committed": "one-year commitment",
}


def market(name: str) -> str:
    """A market in words."""
    return _MARKETS.get(name, clean(name))


def listing(words: Sequence[str], last: str = "and") -> str:
    """Words as a list: "a", "a and b", "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def plural(n: float, word: str) -> str:
    """A count and its noun: 1 run, 2 runs."""
    return f"{exact(n)} {word}" if n == 1 else f"{exact(n)} {word}s"


def age_days(as_of: str) -> int | None:
    """Whole days since `as_of`, never negative; `None` if it is not a date."""
    try:
        day = date.fromisoformat(as_of[:10])
    except ValueError:
        return None
    return max(0, (now().date() - day).days)


def age_hours(fetched_at: str) -> tuple[float, bool]:
    """Hours since a moment, never negative, and whether it is in the future."""
    try:
        moment = datetime.fromisoformat(fetched_at)
    except ValueError:
        return 0.0, False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    hours = (now() - moment).total_seconds() / 3600
    return max(0.0, hours), hours < 0


def sparkline(values: Sequence[float]) -> str:
    """One bar per value, scaled from the smallest to the largest: "▁▃▇"."""
    low, high = min(values), max(values)
    steps = (len(_LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(_LEVELS[round((value - low) * steps)] for value in values)
