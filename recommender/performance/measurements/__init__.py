"""The folder of the user's benchmark records, and the two short tables that plans read.

It is separate from the store, so that an answer without own measurements loads no benchmark code.
"""

import os
from pathlib import Path

SPEEDS = "speeds.csv"
LINKS = "links.csv"


def folder() -> Path:
    """The folder of imported records: RECOMMEND_BENCH, or one in the user's data folder."""
    named = os.environ.get("RECOMMEND_BENCH", "")
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("recommend", appauthor=False) / "bench"


def holds_tables(place: Path) -> bool:
    """Whether there are tables of own measurements to read."""
    return any((place / name).is_file() for name in (SPEEDS, LINKS))
