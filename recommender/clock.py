"""The time of day, which `RECOMMEND_NOW` can fix so that answers repeat byte for byte."""

import os
from datetime import UTC, datetime

from recommender.units import parse_instant


def now() -> datetime:
    """Tell the present moment, or the one that RECOMMEND_NOW names."""
    fixed = os.environ.get("RECOMMEND_NOW", "")
    return parse_instant(fixed, "RECOMMEND_NOW") if fixed else datetime.now(UTC)
