"""Settings with their origin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from recommender.report import text
from recommender.report.lines import Column
from recommender.report.pages import Page


class Setting(Protocol):
    """A value and where it comes from, as `recommender.settings` gives it."""

    @property
    def value(self) -> str | tuple[str, ...]:
        """The value as text."""

    @property
    def origin(self) -> str:
        """A flag, a variable, a file, or "default"."""


def settings_page(settings: Mapping[str, Setting], user_file: Path) -> Page:
    """One row per setting."""
    columns = (
        Column("setting", right=False),
        Column("value", right=False),
        Column("from", right=False),
    )
    rows = tuple((key, _words(s.value) or "none", _words(s.origin)) for key, s in settings.items())
    facts = {key: {"value": s.value, "origin": s.origin} for key, s in settings.items()}
    below = (
        "Order: flag, RECOMMEND_* variable, recommend.toml of the project, your own file, default",
        f"your own file: {text.clean(str(user_file))}",
    )
    return Page("", columns, rows, 2, below, facts)


def _words(value: str | tuple[str, ...]) -> str:
    return text.clean(value if isinstance(value, str) else ", ".join(value))
