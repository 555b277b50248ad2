"""The policy table of a plan as CSV: what to do at every point of a grid, and the cost to go."""

import csv
import io
from collections.abc import Iterator, Sequence

import numpy as np

from recommender.fallback.grid import LATE_USD, NAMES
from recommender.fallback.ofplan import Problem
from recommender.fallback.table import Table
from recommender.replay.state import NONE, ON_DEMAND, SPOT, Bools, Floats

COLUMNS = (
    "time_left_h",
    "work_left_h",
    "running",  # what runs before the choice: none, spot, on-demand
    "spot",  # up, away
    "zone",  # 1 is the poorest kind of zone of the class
    "age_from_h",  # of the run or outage
    "age_to_h",  # empty: no end
    "decision",  # wait, spot, on-demand
    "usd_to_go",
)
STEPS = 24  # of time left, and of work left
_RUNNING = ("none", "spot", "on-demand")


def policy_csv(problem: Problem, said: str) -> str:
    """The table as text, a comment with what it holds for first; lines end in LF.

    Points from which the deadline cannot be kept are left out.
    """
    made = io.StringIO(newline="")
    made.write(f"# {' '.join(said.split())}\n")
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_rows(problem))
    return made.getvalue()


def words_of(problem: Problem) -> str:
    """What the programme was asked, in words."""
    task, prices = problem.task, problem.prices
    return (
        f"work {task.work_s / 3600.0:.6g} h; deadline {task.deadline_s / 3600.0:.6g} h, reserve "
        f"taken off; a start {task.changeover_s / 3600.0:.4g} h; USD/h: spot {prices.spot:.6g}, "
        f"on-demand {prices.on_demand:.6g}, waiting {prices.idle:.6g}; "
        f"steps of {problem.tick_s:.6g} s"
    )


def _rows(problem: Problem) -> Iterator[Sequence[str]]:
    law, task = problem.chain, problem.task
    table = problem.table()
    states = list(_states(problem))
    met = law.usual > 0.0  # ages below a tick never occur
    for left in sorted({round(table.ticks * k / STEPS) for k in range(1, STEPS + 1)}, reverse=True):
        for k in range(STEPS, 0, -1):
            work_s = task.work_s * k / STEPS
            time_h, work_h = left * problem.tick_s / 3600.0, work_s / 3600.0
            for mode in (NONE, SPOT, ON_DEMAND):
                decision, usd = _choices(table, left, int(mode), work_s, task.changeover_s, law.up)
                for place, state in enumerate(states):
                    if met[place] and usd[place] < LATE_USD and (law.up[place] or mode != SPOT):
                        yield (
                            f"{time_h:.6g}", f"{work_h:.6g}", _RUNNING[int(mode)], *state,
                            NAMES[decision[place]], f"{usd[place]:.6g}",
                        )  # fmt: skip


def _choices(
    table: Table, left: int, mode: int, work_s: float, changeover_s: float, up: Bools
) -> tuple[list[int], Floats]:
    """The cheapest choice in every state, and its cost; ties go to spot, then to waiting."""
    spare = left * table.tick_s - work_s
    every, order = np.eye(len(up)), (SPOT, NONE, ON_DEMAND)
    usd = np.empty((len(order), len(up)))
    for place, new in enumerate(order):
        slack = spare - (0.0 if new in (NONE, mode) else changeover_s)
        usd[place] = table.at(left, new, every, np.full(len(up), slack))
    usd[0] = np.where(up, usd[0], np.inf)
    best = usd.argmin(axis=0)
    return [int(order[place]) for place in best], usd.min(axis=0)


def _states(problem: Problem) -> Iterator[tuple[str, str, str, str]]:
    """Side, kind of zone and age of every state, in the order of the chain."""
    edges = [0.0, *problem.law.edges_h]
    ends = [*(f"{edge:g}" for edge in problem.law.edges_h), ""]
    for regime in range(len(problem.law.exits_per_hour)):
        for side in ("away", "up"):
            for begin, end in zip(edges, ends, strict=True):
                yield side, str(regime + 1), f"{begin:g}", end
