"""How old a figure is, in whole days relative to now."""

from datetime import date

from recommender.clock import now


def age_days(as_of: str) -> int | None:
    """Whole days since `as_of`, never negative; `None` where it is not a date."""
    try:
        day = date.fromisoformat(as_of[:10])
    except ValueError:
        return None
    return max(0, (now().date() - day).days)
