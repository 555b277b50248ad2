"""Deadlines as people say them, in the zone of the machine or in one that is named."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from recommender.inputs.units import deadline_moment, moment_in_words, parse_deadline

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "hours", "said"),
    [
        ("tomorrow 08:00", 19, "Sat 2026-11-21 08:00 CET (UTC+01:00)"),
        ("Tomorrow at 8am", 19, "Sat 2026-11-21 08:00 CET (UTC+01:00)"),
        ("today 18:30", 5.5, "Fri 2026-11-20 18:30 CET (UTC+01:00)"),
        ("18:00", 5, "Fri 2026-11-20 18:00 CET (UTC+01:00)"),
        ("9:00", 20, "Sat 2026-11-21 09:00 CET (UTC+01:00)"),  # nine has gone by today
        ("monday 9am", 68, "Mon 2026-11-23 09:00 CET (UTC+01:00)"),
        ("fri 12:00", 167, "Fri 2026-11-27 12:00 CET (UTC+01:00)"),
        ("2026-11-21 08:00", 19, "Sat 2026-11-21 08:00 CET (UTC+01:00)"),
        ("2026-11-21T08:00", 19, "Sat 2026-11-21 08:00 CET (UTC+01:00)"),
        ("2026-11-21 08:00 America/New_York", 25, "Sat 2026-11-21 08:00 EST (UTC-05:00)"),
        ("tomorrow 08:00 UTC", 20, "Sat 2026-11-21 08:00 UTC"),
        ("2026-11-21T08:00Z", 20, "Sat 2026-11-21 08:00 UTC"),
        ("2026-11-21T08:00+05:30", 14.5, "Sat 2026-11-21 08:00 UTC+05:30"),
    ],
)
def test_a_moment_is_so_many_hours_away_and_is_reported_with_its_zone(
    text: str, hours: float, said: str
) -> None:
    moment = deadline_moment(text, NOON)
    assert moment is not None
    assert moment_in_words(moment) == said
    assert parse_deadline(text, NOON) == hours * 3600


@pytest.mark.usefixtures("berlin")
def test_clocks_that_change_are_those_of_the_day_meant() -> None:
    """From 29 March 2026 on Berlin is two hours ahead."""
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert parse_deadline("tomorrow 08:00", before) == 18 * 3600


@pytest.mark.parametrize("text", ["24h", "1d12h", "90 m", "PT36H", "2w", "1.5h"])
def test_durations_are_no_moments(text: str) -> None:
    assert deadline_moment(text, NOON) is None
