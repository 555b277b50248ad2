"""Studies, fits and the build of the shipped snapshot: for developers, not installed."""

from pathlib import Path

SOURCES = (
    Path(__file__).parents[2] / "recommender"
)  # of this clone: where shipped tables are written
