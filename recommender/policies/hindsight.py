"""The least cost of a job with the traces known: what no policy can beat.

Exact dynamic programme over tick × mode × place of the checkpoint × time lost. Of the time up to
the deadline

    lost = tick·(idle ticks) + changeover·(starts) <= deadline - work

must hold, whatever the order; so the state is the time lost so far, in the greatest common
divisor of tick, changeover and work, and the value the money spent so far.
"""

from math import gcd

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.errors import UsageError
from recommender.policies.replay import RecordedZones
from recommender.policies.state import Offers, Task

_BATCH_CELLS = 1 << 15  # windows × zones × levels per batch: three modes of them stay in the cache
_MAX_LEVELS = 200_000


def optimum(recorded: RecordedZones, starts: Ints, task: Task) -> Floats:
    """Least cost in USD with the traces known, per start tick; inf where nothing is in time.

    Work counts as minus one changeover at each start of a machine, ticks are paid in full.
    Windows must lie inside the series.
    """
    offers = recorded.offers
    ticks = int(np.floor(task.deadline_s / offers.tick_s + 1e-9))
    if len(starts) and int(starts.max()) + ticks > recorded.ticks:
        raise UsageError(f"the window at tick {int(starts.max())} ends after the series")
    tick, changeover, most = _levels(offers.tick_s, task, ticks)
    if most < changeover:
        return np.full(len(starts), np.inf)
    size = max(1, _BATCH_CELLS // ((most + 1) * len(offers)))
    costs = np.empty(len(starts))
    for begin in range(0, len(starts), size):
        rows = starts[begin : begin + size]
        seen = recorded.available[:, rows[:, None] + np.arange(ticks)[None]]
        costs[begin : begin + size] = _cheapest(seen, offers, tick, changeover, most)
    return costs


def _levels(tick_s: float, task: Task, ticks: int) -> tuple[int, int, int]:
    """Tick, changeover and the most time that may be lost, in units of their divisor."""
    scale = 1000
    tick, changeover = round(tick_s * scale), round(task.changeover_s * scale)
    unit = gcd(tick, changeover)
    most = (ticks * tick - round(task.work_s * scale)) // unit
    if most > _MAX_LEVELS:
        raise UsageError(
            f"tick {tick_s} s and changeover {task.changeover_s} s have no common divisor that "
            "is coarse enough for the exact optimum; round them to whole seconds"
        )
    return tick // unit, changeover // unit, most


def _cheapest(seen: Bools, offers: Offers, tick: int, changeover: int, most: int) -> Floats:
    """Least cost of windows of known availability; `seen` is (zones, windows, ticks).

    Idle ticks after the end are lost time like those before it and cost nothing. Where waiting
    costs money, the job may therefore end at any tick by which the work can be done.
    """
    zones, windows, ticks = seen.shape
    paid = offers.usd_by_mode
    usd = paid[0], *paid[1:].reshape(2, zones, 1, 1)
    best = np.full(windows, np.inf)
    cost = np.full((3, zones, windows, most + 1), np.inf)
    cost[0, :, :, 0] = 0.0  # the first start is free of moves
    for now in range(ticks):
        stopped = cost.min(axis=0)
        begun = np.full_like(stopped, np.inf)
        kept = stopped[:, None, :, : most + 1 - changeover]
        begun[:, :, changeover:] = (kept + offers.move_usd[:, :, None, None]).min(axis=0)
        after = np.full_like(cost, np.inf)
        after[0, :, :, tick:] = stopped[:, :, : most + 1 - tick] + usd[0]
        there = seen[:, :, now, None]
        after[1] = np.where(there, np.minimum(cost[1], begun) + usd[1], np.inf)
        after[2] = np.minimum(cost[2], begun) + usd[2]
        cost = after
        in_time = most - (ticks - 1 - now) * tick  # what may be lost to be done by now
        if in_time >= 0 and (usd[0] > 0.0 or now == ticks - 1):
            best = np.minimum(best, cost[..., : in_time + 1].min(axis=(0, 1, 3)))
    return best
