"""Parses dates and times: `tomorrow 08:00`, `friday 6pm`, `2026-12-01 08:00 Europe/Berlin`.

Without a zone the local one is used; answers print the zone.
"""

import math
import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from recommender.inputs.units.quantities import refusal
from recommender.inputs.units.times import (
    DEADLINE_INSTEAD,
    SLURM,
    parse_duration,
    parse_instant,
    sized,
)
from recommender.text import shown

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s*(?P<half>am|pm)?"
_DATE = r"(?P<date>\d{4}-\d{2}-\d{2})"
_WORD = r"(?P<day>today|tomorrow|mon|tue|wed|thu|fri|sat|sun|" + "|".join(_DAYS) + ")"
_ZONE = r"(?:\s+(?P<zone>[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)*))?"
_MOMENT = rf"(?:(?:{_DATE}|{_WORD})(?:\s+at\s+|[T\s]+))?{_CLOCK}{_ZONE}"
_OWN_ZONE = r"\d{4}-\d{2}.*\d(?:Z|\s*UTC|\s*GMT|\s*[+-]\d{2}:?\d{2})"
_LOOKS = r"\d{4}-\d{2}|[a-z]{3,9}\s*(?:at\s)?\s*\d|\d{1,2}(?::\d{2}|\s*[ap]m)"


def deadline_moment(text: str, now: datetime, name: str = "--deadline") -> datetime | None:
    """Read a deadline that is a date and time, in its zone; None if it is a duration.

    Raises:
        UsageError: it looks like a date and is none, or has no time of day.
    """
    bare = " ".join(text.split())
    if re.fullmatch(SLURM, bare) or not re.match(_LOOKS, bare, re.IGNORECASE):
        return None
    if re.fullmatch(_OWN_ZONE, bare, re.IGNORECASE):
        parse_instant(bare, name)  # refuses what is no date
        return _as_written(bare)
    found = re.fullmatch(_MOMENT, bare, re.IGNORECASE)
    if found is None:
        why = "has no time of day" if re.fullmatch(_DATE, bare) else "is not a date and time"
        raise refusal(name, text, why, DEADLINE_INSTEAD)
    try:
        return _moment(found.groupdict(), now, text, name)
    except (ValueError, OverflowError):
        raise refusal(name, text, "is not a date and time", DEADLINE_INSTEAD) from None


def _as_written(bare: str) -> datetime:
    """A moment with its zone in figures, kept in that zone."""
    return datetime.fromisoformat(re.sub(r"(?<!\s)\s*+(UTC|GMT)$", "Z", bare, flags=re.IGNORECASE))


def _moment(parts: dict[str, str | None], now: datetime, text: str, name: str) -> datetime:
    zone = _zone(parts["zone"], text, name)
    today = now.astimezone(zone)
    clock = _clock(parts)
    if parts["date"]:
        return _at(datetime.fromisoformat(str(parts["date"])), clock, zone)
    word = (parts["day"] or "").lower()
    if not word:  # the next time that the clock shows it
        first = _at(today, clock, zone)
        return first if first > now else _at(today + timedelta(days=1), clock, zone)
    return _at(today + timedelta(days=_days_ahead(word, today)), clock, zone)


def _days_ahead(word: str, today: datetime) -> int:
    if word in ("today", "tomorrow"):
        return int(word == "tomorrow")
    wanted = next(i for i, day in enumerate(_DAYS) if day.startswith(word))
    return (wanted - today.weekday()) % 7 or 7


def _clock(parts: dict[str, str | None]) -> time:
    hour, half = int(parts["hour"] or 0), (parts["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        raise ValueError
    if half:
        hour = hour % 12 + 12 * (half == "pm")
    return time(hour, int(parts["minute"] or 0))


def _zone(word: str | None, text: str, name: str) -> tzinfo | None:
    """The zone that a name means; None: that of this machine."""
    if word is None:
        return None
    if word.upper() in ("Z", "UTC", "GMT"):
        return UTC
    from zoneinfo import ZoneInfo  # few deadlines name a zone

    try:
        return ZoneInfo(word)
    except (ValueError, OSError, KeyError):
        why = f"has the unknown time zone '{shown(word)}'"
        raise refusal(name, text, why, "write such as Europe/Berlin, or +01:00") from None


def _at(day: datetime, clock: time, zone: tzinfo | None) -> datetime:
    """A day's time in a zone; `astimezone` of a bare time takes the machine's, summer or winter."""
    bare = datetime.combine(day.date(), clock)
    return bare.astimezone() if zone is None else bare.replace(tzinfo=zone)


def parse_deadline(text: str, now: datetime, name: str = "--deadline") -> float:
    """Read a deadline, a duration or a date after `now`, as seconds from now."""
    moment = deadline_moment(text, now, name)
    if moment is None:
        return parse_duration(text, name, instead=DEADLINE_INSTEAD)
    seconds = (moment - now).total_seconds()
    if seconds <= 0:
        today = moment_in_words(now.astimezone(moment.tzinfo))
        raise refusal(name, text, f"is past (now is {today})", DEADLINE_INSTEAD)
    # Whole seconds, which a saved answer keeps (six digits).
    return sized(name, text, float(math.floor(seconds)) or seconds, DEADLINE_INSTEAD)


def moment_in_words(moment: datetime) -> str:
    """Write a date and time with its zone: Tue 2026-11-24 08:00 CET (UTC+01:00)."""
    offset = moment.strftime("%z")
    figures = f"UTC{offset[:3]}:{offset[3:5]}" if offset.strip("+-0") else "UTC"
    named = moment.tzname() or ""
    plain = f"{_DAYS[moment.weekday()][:3].title()} {moment:%Y-%m-%d %H:%M}"
    if named in ("", figures) or not named.isalpha():
        return f"{plain} {figures}"
    return f"{plain} {named} ({figures})" if named != "UTC" else f"{plain} UTC"
