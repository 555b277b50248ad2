"""Where the user's benchmark records lie, and the two short tables that plans read.

Apart from the store, so that an answer without own measurements loads nothing of the benchmarks.
"""

import os
from pathlib import Path

SPEEDS = "speeds.csv"
LINKS = "links.csv"


def folder() -> Path:
    """Where imported records are kept: RECOMMEND_BENCH, else the user's data folder."""
    named = os.environ.get("RECOMMEND_BENCH", "")
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("recommend", appauthor=False) / "bench"


def holds_tables(place: Path) -> bool:
    """Whether plans have figures of the user's own to read: most users keep none."""
    return any((place / name).is_file() for name in (SPEEDS, LINKS))
