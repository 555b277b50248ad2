"""The cheapest plan when the whole trace is known: the bound that no policy can beat.

Exact dynamic programme over tick × mode × time lost. Of the time up to the deadline

    lost = tick·(idle ticks) + changeover·(starts) <= deadline - work

must hold, whatever the order; so the state is the time lost so far, in the greatest common
divisor of tick, changeover and work, and the value the money spent so far.
"""

from math import gcd

import numpy as np

from recommender.errors import UsageError
from recommender.replay.engine import Ints
from recommender.replay.state import Bools, Floats, Prices, Task

_BATCH_CELLS = 1 << 15  # windows × levels per batch: three modes of them stay in the cache
_MOST_LEVELS = 200_000


def optimum(available: Bools, tick_s: float, starts: Ints, task: Task, prices: Prices) -> Floats:
    """Least cost in USD with the trace known, per start tick; inf where nothing is in time.

    Work counts as minus one changeover at each start of a machine, ticks are paid in full and
    waiting at `prices.idle`. Windows must lie inside the series.
    """
    ticks = int(np.floor(task.deadline_s / tick_s + 1e-9))
    if len(starts) and int(starts.max()) + ticks > len(available):
        raise UsageError(f"the window at tick {int(starts.max())} ends after the series")
    tick, changeover, most = _levels(tick_s, task, ticks)
    if most < changeover:
        return np.full(len(starts), np.inf)
    size = max(1, _BATCH_CELLS // (most + 1))
    costs = np.empty(len(starts))
    usd = prices.by_mode * tick_s / 3600.0
    for begin in range(0, len(starts), size):
        rows = starts[begin : begin + size]
        seen = available[rows[:, None] + np.arange(ticks)[None]]
        costs[begin : begin + size] = _cheapest(seen, tick, changeover, most, usd)
    return costs


def _levels(tick_s: float, task: Task, ticks: int) -> tuple[int, int, int]:
    """Tick, changeover and the most time that may be lost, in units of their divisor."""
    scale = 1000
    tick, changeover = round(tick_s * scale), round(task.changeover_s * scale)
    unit = gcd(tick, changeover)
    most = (ticks * tick - round(task.work_s * scale)) // unit
    if most > _MOST_LEVELS:
        raise UsageError(
            f"tick {tick_s} s and changeover {task.changeover_s} s have no common divisor that "
            "is coarse enough for the exact optimum; round them to whole seconds"
        )
    return tick // unit, changeover // unit, most


def _cheapest(seen: Bools, tick: int, changeover: int, most: int, usd: Floats) -> Floats:
    """Least cost of windows × ticks of known availability.

    Idle ticks after the end are lost time like those before it and cost nothing. Where waiting
    costs money, the job may therefore end at any tick by which the work can be done.
    """
    windows, ticks = seen.shape
    best = np.full(windows, np.inf)
    cost = np.full((3, windows, most + 1), np.inf)
    cost[0, :, 0] = 0.0
    for now in range(ticks):
        idle, spot, on_demand = cost
        begun = np.full((2, windows, most + 1), np.inf)
        begun[0, :, changeover:] = np.minimum(idle, on_demand)[:, : most + 1 - changeover]
        begun[1, :, changeover:] = np.minimum(idle, spot)[:, : most + 1 - changeover]
        after = np.full_like(cost, np.inf)
        after[0, :, tick:] = cost.min(axis=0)[:, : most + 1 - tick] + usd[0]
        after[1] = np.where(seen[:, now, None], np.minimum(spot, begun[0]) + usd[1], np.inf)
        after[2] = np.minimum(on_demand, begun[1]) + usd[2]
        cost = after
        in_time = most - (ticks - 1 - now) * tick  # what may be lost to be done by now
        if in_time >= 0 and (usd[0] > 0.0 or now == ticks - 1):
            best = np.minimum(best, cost[:, :, : in_time + 1].min(axis=(0, 2)))
    return best
