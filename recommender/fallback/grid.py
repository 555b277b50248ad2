"""What a policy table says at points of time left and work left: costs to go and the choice."""

from dataclasses import dataclass

import numpy as np

from recommender.fallback.availability import Chain
from recommender.fallback.evaluate import SAFETY_NET, rule_usd
from recommender.fallback.ofplan import problem_of, unfit
from recommender.fallback.policy import expected_usd
from recommender.fallback.table import NEVER, Table
from recommender.fallback.thresholds import TwoThresholds
from recommender.plan import Fallback, PolicyFacts
from recommender.replay.state import NONE, ON_DEMAND, SPOT, Floats, Task
from recommender.risk.plans import Journeys

NAMES = ("wait", "spot", "on-demand")
ROWS, COLUMNS = 8, 5  # of the grid shown: time left (squares of eighths), work left
LATE_USD = 0.5 * float(NEVER)  # a cost to go above it is that of a deadline missed


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
        if usd < min(found.usd, LATE_USD):
            found = Point(NAMES[int(new)], usd)
    return found


def beliefs(law: Chain) -> tuple[Floats, Floats]:
    """What is known at a random moment of an outage, and of a run: (states,) each."""
    away, there = np.where(law.up, 0.0, law.usual), np.where(law.up, law.usual, 0.0)
    return away / away.sum(), there / there.sum()


def rule_of(fallback: Fallback | None) -> TwoThresholds | None:
    """The shipped two-threshold rule that a plan carries."""
    if fallback is None or fallback.wait_above is None or fallback.back_above is None:
        return None
    return TwoThresholds(fallback.wait_above, fallback.back_above)


def policy_facts(j: Journeys, deadline_s: float | None, rule: TwoThresholds | None) -> PolicyFacts:
    """The policy of a plan (one row), what it costs beside simpler rules, and a coarse grid."""
    why = unfit(j, deadline_s)
    if why is not None:
        return PolicyFacts(why_not=why)
    problem = problem_of(j, deadline_s)
    law, task = problem.chain, problem.task
    table = problem.table()
    times = tuple(task.deadline_s * (k / ROWS) ** 2 for k in range(ROWS, 1, -1))
    works = tuple(task.work_s * k / COLUMNS for k in range(COLUMNS, 0, -1))
    away, there = beliefs(law)

    def cells(up: bool, belief: Floats) -> tuple[tuple[str | None, ...], ...]:
        lefts = [round(time_s / problem.tick_s) for time_s in times]
        return tuple(
            tuple(choice_at(table, task, left, w, int(NONE), up, belief).choice for w in works)
            for left in lefts
        )

    def usd(followed: TwoThresholds) -> float:
        spent = rule_usd(followed, law, task, problem.prices, problem.tick_s)
        return problem.fixed_usd + spent

    return PolicyFacts(
        net_usd=usd(SAFETY_NET),
        rule_usd=None if rule is None else usd(rule),
        full_usd=problem.fixed_usd + expected_usd(table, law, task),
        tick_s=problem.tick_s,
        time_left_s=times,
        work_left_s=works,
        spot_up=cells(True, there),
        spot_away=cells(False, away),
    )
