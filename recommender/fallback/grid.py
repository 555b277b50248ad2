"""What a policy table says at points of time left and work left: costs to go and the choice."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from recommender.fallback.availability import Chain
from recommender.fallback.table import NEVER, Table
from recommender.replay.state import NONE, ON_DEMAND, SPOT, Floats, Task

NAMES = ("wait", "spot", "on-demand")
_LATE = 0.5 * float(NEVER)  # USD: a cost to go above it is that of a deadline missed


@dataclass(frozen=True, slots=True)
class Point:
    """The cheapest choice at one time left, work left and belief; None: cannot be in time."""

    choice: str | None
    usd: float  # cost to go


def choice_at(
    table: Table, task: Task, left: int, work_s: float, mode: int, up: bool, belief: Floats
) -> Point:
    """The choice with `left` ticks to go, by what runs before it and the belief (states,).

    Ties go to spot, then to waiting, as in the policy.
    """
    spare = left * table.tick_s - work_s
    found = Point(None, float("inf"))
    for new in (SPOT, NONE, ON_DEMAND):
        if new == SPOT and not up:
            continue
        pay = 0.0 if new in (NONE, mode) else task.changeover_s
        usd = float(table.at(left, new, belief[None], np.array([spare - pay]))[0])
        if usd < min(found.usd, _LATE):
            found = Point(NAMES[int(new)], usd)
    return found


def beliefs(law: Chain) -> tuple[Floats, Floats]:
    """What is known at a random moment of an outage, and of a run: (states,) each."""
    away, there = np.where(law.up, 0.0, law.usual), np.where(law.up, law.usual, 0.0)
    return away / away.sum(), there / there.sum()


def steps(whole: float, count: int) -> Iterator[float]:
    """`count` even steps down from the whole to a part of it above nothing."""
    return (whole * (count - place) / count for place in range(count))
