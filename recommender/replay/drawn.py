"""Replay of one policy on drawn markets: every window has its own series, by the same tick rules.

Beside what `engine.py` knows of a tick, a history may say that a machine was taken while others
are there at once (a failover list), that on-demand has to be queued for, how much is left to do,
and that an interruption before some age costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from recommender.replay.engine import Ints, Replays, Run
from recommender.replay.state import NONE, ON_DEMAND, SPOT, Bools, Floats, Policy, Prices, Task


@dataclass(frozen=True, slots=True)
class Market:
    """What each history meets; past the last tick there is no spot."""

    available: Bools  # (ticks, windows) can spot be had in this tick?
    taken: Bools  # (ticks, windows) spot is there, but not the machine of the tick before
    done_s: Floats  # (windows,) of the task's work done before it begins; below 0: more to do
    queue_s: Floats  # (windows,) unpaid wait before each start of on-demand
    free_s: float = 0.0  # a run taken before this age is not paid


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came of each history; arrays of shape (windows,)."""

    replays: Replays
    interruptions: Ints


def replay_drawn(
    policy: Policy, market: Market, tick_s: float, task: Task, prices: Prices
) -> Drawn:
    """Costs and ends of a policy on every history of a drawn market, all begun at its tick 0.

    A policy that waits for spot past the last tick is not followed: it never finishes.
    """
    count = len(market.done_s)
    run = Run(count, task, prices, tick_s)
    run.done, run.queue_s = market.done_s.copy(), market.queue_s
    decide = policy.begin(task, prices, tick_s, count)
    interruptions: Ints = np.zeros(count, dtype=np.int64)
    age, queued = np.zeros(count), np.zeros(count)
    spot_usd = (prices.spot - prices.idle) / 3600.0
    most = task.deadline_s + task.changeover_s + float(np.max(market.queue_s, initial=0.0))
    most += 2.0 * (task.work_s - float(np.min(market.done_s, initial=0.0)))
    nowhere = np.zeros(count, dtype=np.bool_)
    for tick in range(int(np.ceil(most / tick_s)) + len(market.available) + 1):
        inside = tick < len(market.available)
        here = market.available[tick] if inside else nowhere
        taken = market.taken[tick] if inside else nowhere
        before, live = run.mode, ~run.stopped
        lost = live & (before == SPOT) & (~here | taken)
        interruptions += lost
        run.cost -= np.where(lost & (age < market.free_s), spot_usd * age, 0.0)
        age = np.where(lost | (before != SPOT), 0.0, age)
        run.step(decide, tick, here, taken)
        rented = live & (run.mode == ON_DEMAND)
        queued = np.where(rented & (before != ON_DEMAND), market.queue_s, queued)
        unpaid = np.where(rented, np.minimum(queued, tick_s), 0.0)
        run.cost -= unpaid * (prices.on_demand - prices.idle) / 3600.0
        queued -= unpaid
        age += np.where(live & (run.mode == SPOT), tick_s, 0.0)
        stuck = not inside and not bool((~run.stopped & (run.mode != NONE)).any())
        if stuck or bool(run.stopped.all()):
            break
    return Drawn(run.result(), interruptions)
