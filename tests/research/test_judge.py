"""The judge's table as it was written last holds what is asked of it."""

import csv

from tests.research.judge import COLUMNS, FILE


def test_what_is_told_of_real_plans_is_what_the_second_simulator_finds() -> None:
    """Many runs of what is told, so that neither side's sampling error decides."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    slower = [row for row in rows if 0.0 < float(row["fallback_speed"]) < 1.0]
    assert len(rows) >= 60
    assert len(slower) >= 25
    for row in rows:
        fresh, events = (
            [float(row[f"{of}_{name}"]) for name in ("usd", "chance", "lost")]
            for of in ("fresh", "events")
        )
        assert abs(events[0] / fresh[0] - 1.0) <= 0.02
        assert abs(events[1] - fresh[1]) <= 0.005
        assert abs(events[2] - fresh[2]) <= 0.005
