"""How old a figure is, in whole days relative to now."""

from datetime import UTC, date, datetime

from recommender.clock import now


def age_days(as_of: str) -> int | None:
    """Whole days since `as_of`, never negative; `None` where it is not a date."""
    try:
        day = date.fromisoformat(as_of[:10])
    except ValueError:
        return None
    return max(0, (now().date() - day).days)


def age_hours(fetched_at: str) -> tuple[float, bool]:
    """Hours since a moment, never negative, and whether it lies in the future."""
    try:
        moment = datetime.fromisoformat(fetched_at)
    except ValueError:
        return 0.0, False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    hours = (now() - moment).total_seconds() / 3600
    return max(0.0, hours), hours < 0
