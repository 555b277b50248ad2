"""Replay of one policy on one availability series, all start windows at once.

The rules of a tick are those of the "Can't Be Late" benchmark (Wu et al., NSDI'24), in which
a tick is paid in full:

    1. spot that is gone ends: mode = none, work done is kept
    2. the policy names a mode; a change to spot or on-demand sets start-up = changeover
    3. cost += price·tick;  work = max(tick - start-up, 0);  start-up -= tick - work
    4. the job ends with the tick that leaves at most 1 ms of work
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.errors import UsageError
from recommender.replay.state import (
    NONE,
    ON_DEMAND,
    SPOT,
    Bools,
    Decide,
    Floats,
    Modes,
    Policy,
    Prices,
    State,
    Task,
)

Ints = NDArray[np.int64]
DONE_S = 1e-3  # work left that counts as none
_PATIENCE = 1.5  # deadlines after which a run that waits past the end of the series is given up


@dataclass(frozen=True, slots=True)
class Replays:
    """What came of each window; arrays of shape (windows,)."""

    cost_usd: Floats
    finish_s: Floats  # end of the tick in which the job ended; inf: not within the series
    spot_s: Floats  # paid on spot
    on_demand_s: Floats
    starts: Ints  # changes to spot or on-demand

    def late(self, deadline_s: float) -> Bools:
        """Which windows missed a deadline."""
        return self.finish_s > deadline_s + DONE_S


def replay(
    policy: Policy, available: Bools, tick_s: float, starts: Ints, task: Task, prices: Prices
) -> Replays:
    """Costs and ends of a policy from each start tick of one availability series.

    `available` (ticks,) says in which ticks spot can be had; past its end it cannot. A window
    that still waits there after one and a half deadlines counts as not finished. Errors:
    UsageError for start ticks outside the series.
    """
    _check(available, tick_s, starts)
    run = Run(len(starts), task, prices, tick_s)
    decide = policy.begin(task, prices, tick_s, len(starts))
    longest = task.work_s + task.changeover_s + _PATIENCE * task.deadline_s
    after = int(np.ceil(longest / tick_s)) + 1
    ticks = len(available) - int(starts.min()) + after if len(starts) else 0
    padded = np.concatenate([available, np.zeros(len(available) + after, dtype=np.bool_)])
    for tick in range(ticks):
        beyond = (starts + tick >= len(available)) & (tick * tick_s >= _PATIENCE * task.deadline_s)
        run.stopped |= beyond & (run.mode != ON_DEMAND)
        if bool(run.stopped.all()):
            break
        run.step(decide, tick, padded[starts + tick])
    return run.result()


def windows(ticks: int, tick_s: float, task: Task, every_s: float) -> Ints:
    """Start ticks, `every_s` apart, of all windows whose deadline lies inside the series."""
    last = ticks - int(np.ceil(task.deadline_s / tick_s - 1e-9))
    return np.arange(0, max(last + 1, 0), max(1, round(every_s / tick_s)), dtype=np.int64)


def _check(available: Bools, tick_s: float, starts: Ints) -> None:
    if tick_s <= 0.0:
        raise UsageError(f"tick of {tick_s} s: must be above 0")
    if len(starts) and (int(starts.min()) < 0 or int(starts.max()) >= len(available)):
        raise UsageError(f"start ticks must lie in 0 to {len(available) - 1}, the series")


class Run:
    """The windows in flight."""

    def __init__(self, count: int, task: Task, prices: Prices, tick_s: float) -> None:
        self.task, self.tick_s = task, tick_s
        self.usd = prices.by_mode * tick_s / 3600.0
        self.mode: Modes = np.zeros(count, dtype=np.int8)
        self.done, self.start_up = np.zeros(count), np.zeros(count)
        self.cost, self.finish = np.zeros(count), np.full(count, np.inf)
        self.ticks = np.zeros((3, count), dtype=np.int64)
        self.starts: Ints = np.zeros(count, dtype=np.int64)
        self.stopped: Bools = np.zeros(count, dtype=np.bool_)
        self.queue_s: Floats = np.zeros(count)  # until an on-demand machine starts

    def step(self, decide: Decide, tick: int, available: Bools, taken: Bools | None = None) -> None:
        """One tick of every window that still runs; `taken`: spot is there, but other machines."""
        now = tick * self.tick_s
        gone = ~available if taken is None else ~available | taken
        self.mode = np.where((self.mode == SPOT) & gone, NONE, self.mode)
        want = decide(State(now, self.mode, self.done, self.start_up, available))
        if bool(((want == SPOT) & ~available & ~self.stopped).any()):
            raise UsageError(f"the policy asked for spot at {now:.0f} s, where there is none")
        live = ~self.stopped
        change = live & (want != self.mode) & (want != NONE)
        pay = self.task.changeover_s + np.where(want == ON_DEMAND, self.queue_s, 0.0)
        self.start_up = np.where(change, pay, self.start_up)
        self.starts += change
        self.mode = np.where(live, want, self.mode)
        runs = live & (self.mode != NONE)
        self.cost += np.where(live, self.usd[self.mode], 0.0)
        self.ticks[self.mode, np.arange(len(live))] += live
        work = np.where(runs, np.maximum(self.tick_s - self.start_up, 0.0), 0.0)
        self.start_up = np.where(runs, self.start_up - (self.tick_s - work), self.start_up)
        self.done = self.done + np.minimum(work, self.task.work_s - self.done)
        ended = live & (self.task.work_s - self.done <= DONE_S)
        self.finish[ended] = now + self.tick_s
        self.stopped |= ended

    def result(self) -> Replays:
        """What came of it."""
        spot_s, on_demand_s = self.ticks[SPOT] * self.tick_s, self.ticks[ON_DEMAND] * self.tick_s
        return Replays(self.cost, self.finish, spot_s, on_demand_s, self.starts)
