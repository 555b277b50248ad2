"""Traces made for the tests: by hand, and drawn from a law that is then to be found again."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from recommender.traces.trace import Place, Trace

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = 3600.0


def trace(hours: list[float], machines: list[int], end_h: float, **more: Any) -> Trace:
    """A series from its change points, in hours."""
    facts: dict[str, Any] = {"name": "a", "capacity": max([*machines, 1]), "kind": "probe"}
    return Trace(
        end_s=end_h * HOUR,
        t_s=np.array(hours) * HOUR,
        machines=np.array(machines),
        **(facts | more),
    )


def alternating(
    runs: Any, outages: Any, machines: int = 1, name: str = "a", start: datetime | None = START
) -> Trace:
    """Runs and outages in turn, an outage first; hours."""
    lengths = np.stack([outages, runs], axis=1).ravel()
    ends = np.cumsum(lengths)
    return Trace(
        name=name,
        end_s=float(ends[-1]) * HOUR,
        t_s=np.concatenate([[0.0], ends[:-1]]) * HOUR,
        machines=np.tile([0, machines], len(lengths) // 2),
        capacity=machines,
        kind="probe",
        start=start,
        place=Place(provider="gcp", zone=name),
    )


def drawn(
    seed: int, run: tuple[float, float], outage: tuple[float, float], count: int, name: str = "a"
) -> Trace:
    """Lognormal runs and outages of given (mean hours, sigma)."""
    rng = np.random.default_rng(seed)
    made = [
        rng.lognormal(np.log(mean) - 0.5 * sigma**2, sigma, count) for mean, sigma in (run, outage)
    ]
    return alternating(*made, name=name)


def first(days: float, whole: Trace) -> Trace:
    """The beginning of a trace."""
    end_s = days * 24 * HOUR
    kept = whole.t_s < end_s
    return replace(whole, end_s=end_s, t_s=whole.t_s[kept], machines=whole.machines[kept])
