"""Parses durations (`24h`, `1d12h`, `PT36H`) and moments with a zone; gives the current time."""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime

from recommender.inputs.units.quantities import NUMBER, refusal, refuse_sign, refuse_size
from recommender.text import shown

INSTEAD = "write 24h, 90m or 1d12h"
DEADLINE_INSTEAD = "write 24h, 1d12h, tomorrow 08:00 or 2026-12-01T08:00Z"
MAX_S = 10 * 365 * 86400.0  # ten years
SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}

_NAMES = {
    "week": "w", "weeks": "w", "wk": "w", "day": "d", "days": "d",
    "hour": "h", "hours": "h", "hr": "h", "hrs": "h",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
}  # fmt: skip
# Compiled when first used: most calls read one or two of these forms.
_PART = rf"({NUMBER})\s*([A-Za-z]+)\s*"
_ISO = rf"P(?:({NUMBER})W)?(?:({NUMBER})D)?(?:T(?:({NUMBER})H)?(?:({NUMBER})M)?(?:({NUMBER})S)?)?"
# 1-12:00:00, 2-00, 36:00:00
SLURM = r"(?:(\d{1,3})-(?=\d{1,2}(?::|$)))?(\d{1,3})(?:(?<=-\d{2})|:(\d{2}):(\d{2}))"
_UTC = r"(UTC|GMT)$"


def parse_duration(
    text: str,
    name: str = "duration",
    *,
    most_s: float = MAX_S,
    zero: bool = False,
    instead: str = INSTEAD,
) -> float:
    """Read a duration such as `24h`, `1d12h`, `90m`, `1.5h`, `2w`, `PT36H`; in seconds."""
    refuse_sign(name, text, instead)
    bare = text.strip()
    if re.fullmatch(NUMBER, bare):
        raise refusal(name, bare, "has no unit", instead)
    slurm = re.fullmatch(SLURM, bare)
    if slurm:
        parts = [(float(n), u) for n, u in zip(slurm.groups(), "dhms", strict=True) if n]
    else:
        parts = _iso_parts(bare) if bare[:1] in ("P", "p") else _parts(bare, name, instead)
    if not parts:
        raise refusal(name, text, "is not a duration", instead)
    seconds = sum(number * SECONDS[unit] for number, unit in parts)
    if seconds == 0 and zero:
        return seconds
    return sized(name, text, seconds, instead, most_s)


def duration_of(*examples: str, most_s: float = MAX_S) -> Callable[[str, str], float]:
    """Make a parser of one quantity's durations, with its examples and largest value."""
    instead = f"write {' or '.join(examples)}"
    return lambda text, name: parse_duration(text, name, most_s=most_s, instead=instead)


def sized(name: str, text: str, seconds: float, instead: str, most_s: float = MAX_S) -> float:
    """Refuse a time that is absurdly long or zero; return other values."""
    if seconds > most_s:
        most = format_duration(most_s)
        raise refusal(name, text, f"is absurdly long (above {most})", instead)
    return refuse_size(name, text, seconds, instead)


def _iso_parts(text: str) -> list[tuple[float, str]]:
    found = re.fullmatch(_ISO, text.upper())
    if not found:
        return []
    return [(float(n), u) for n, u in zip(found.groups(), "wdhms", strict=True) if n]


def _parts(text: str, name: str, instead: str) -> list[tuple[float, str]]:
    part = re.compile(_PART)
    parts, at = [], 0
    while found := part.match(text, at):
        parts.append((float(found[1]), _unit(found[2], text, name, instead)))
        at = found.end()
    units = [unit for _, unit in parts]
    if len(set(units)) < len(units):
        raise refusal(name, text, "names a unit twice", instead)
    return parts if at == len(text) else []


def _unit(word: str, text: str, name: str, instead: str) -> str:
    if word == "M":
        raise refusal(name, text, "could mean minutes or months", instead)
    unit = _NAMES.get(word.lower(), word.lower())
    if unit not in SECONDS:
        raise refusal(name, text, f"has the unknown unit '{shown(word)}'", instead)
    return unit


def format_duration(seconds: float) -> str:
    """Write a duration so that `parse_duration` reads exactly the same value: 1d12h, 90s."""
    if seconds != int(seconds):
        return f"{seconds!r}s"
    left, parts = int(seconds), []
    for unit in "dhms":
        number, left = divmod(left, SECONDS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def brief_duration(seconds: float) -> str:
    """Write a duration for reading, rounded to its two leading units: 9h40m, 2d3h, 45s."""
    for big, small in (("d", "h"), ("h", "m"), ("m", "s")):
        if seconds >= SECONDS[big] * (2 if big == "d" else 1):
            number, rest = divmod(round(seconds / SECONDS[small]), SECONDS[big] // SECONDS[small])
            return f"{number}{big}{rest}{small}" if rest else f"{number}{big}"
    return f"{seconds:.3g}s"


def parse_instant(text: str, name: str = "time") -> datetime:
    """Read a moment such as `2026-12-01T08:00Z`; the zone is required."""
    instead = "write it like 2026-12-01T08:00Z or 2026-12-01T08:00+01:00"
    stem = text.strip()
    if zone := re.search(_UTC, stem, re.IGNORECASE):
        stem = f"{stem[: zone.start()].rstrip()}Z"
    try:
        moment = datetime.fromisoformat(stem)
    except ValueError:
        raise refusal(name, text, "is not a date and time", instead) from None
    if moment.tzinfo is None:
        raise refusal(name, text, "has no time zone", instead)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise refusal(name, text, "is out of range", instead) from None


def format_instant(moment: datetime) -> str:
    """Write a moment in UTC so that `parse_instant` reads exactly the same value."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def now() -> datetime:
    """The present moment, or the one of RECOMMEND_NOW."""
    fixed = os.environ.get("RECOMMEND_NOW", "")
    return parse_instant(fixed, "RECOMMEND_NOW") if fixed else datetime.now(UTC)
