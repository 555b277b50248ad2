"""Exact replay of fallback policies on recorded availability, tick by tick.

The rules of a tick are those of the "Can't Be Late" benchmark (Wu et al., NSDI'24), in which
a tick is paid in full:

    1. spot that is interrupted ends: mode = none, work done is kept
    2. the policy names a mode; a change to spot or on-demand sets start-up = changeover
    3. cost += price·tick;  work = max(tick - start-up, 0);  start-up -= tick - work
    4. the job ends with the tick that leaves at most 1 ms of work

Besides what the plain replay knows of a tick, a drawn market may say that a machine was reclaimed
while others are there at once (a failover list), that on-demand has to be queued for, how much is
left to do, and that an interruption before some age costs nothing.

Exact dynamic programme over tick × mode × time lost. Of the time up to the deadline

    lost = tick·(idle ticks) + changeover·(starts) <= deadline - work

must hold, whatever the order; so the state is the time lost so far, in the greatest common
divisor of tick, changeover and work, and the value the money spent so far.
"""

from math import gcd

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.policies.state import (
    NONE,
    ON_DEMAND,
    SPOT,
    Decide,
    ModePrices,
    Modes,
    Policy,
    PolicyState,
    Task,
)

DONE_S = 1e-3  # work left that counts as none
_PATIENCE = 1.5  # deadlines after which a run that waits past the end of the series is given up
_BATCH_CELLS = 1 << 15  # windows × levels per batch: three modes of them stay in the cache
_MAX_LEVELS = 200_000


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
    policy: Policy, available: Bools, tick_s: float, starts: Ints, task: Task, prices: ModePrices
) -> Replays:
    """Costs and ends of a policy from each start tick of one availability series.

    `available` (ticks,) says in which ticks spot can be had; past its end it cannot. A window
    that still waits there after one and a half deadlines counts as not finished. Errors:
    UsageError for start ticks outside the series.
    """
    _check(available, tick_s, starts)
    run = ReplayState(len(starts), task, prices, tick_s)
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


class ReplayState:
    """The windows in flight."""

    def __init__(self, count: int, task: Task, prices: ModePrices, tick_s: float) -> None:
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
        lost = ~available if taken is None else ~available | taken
        self.mode = np.where((self.mode == SPOT) & lost, NONE, self.mode)
        want = decide(PolicyState(now, self.mode, self.done, self.start_up, available))
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

    def finish_on_demand(self, now_s: float) -> Ints:
        """To their end at once: those on demand that nothing will interrupt; ticks each took.

        A queue for on-demand machines may be years long, so these ticks are counted, not stepped.
        """
        staying = ~self.stopped & (self.mode == ON_DEMAND)
        left_s = self.start_up + self.task.work_s - self.done - DONE_S
        more = np.where(staying, np.ceil(left_s / self.tick_s), 0.0).astype(np.int64)
        self.cost += more * self.usd[ON_DEMAND]
        self.ticks[ON_DEMAND] += more
        self.done = np.where(staying, self.task.work_s, self.done)
        self.finish = np.where(staying, now_s + more * self.tick_s, self.finish)
        self.stopped |= staying
        return more

    def result(self) -> Replays:
        """What came of it."""
        spot_s, on_demand_s = self.ticks[SPOT] * self.tick_s, self.ticks[ON_DEMAND] * self.tick_s
        return Replays(self.cost, self.finish, spot_s, on_demand_s, self.starts)


@dataclass(frozen=True, slots=True)
class SimulatedMarket:
    """What each history meets; past the last tick there is no spot."""

    available: Bools  # (ticks, windows) can spot be had in this tick?
    taken: Bools  # (ticks, windows) spot is there, but not the machine of the tick before
    done_s: Floats  # (windows,) of the task's work done before it begins; below 0: more to do
    queue_s: Floats  # (windows,) unpaid wait before each start of on-demand
    free_s: float = 0.0  # a run taken before this age is not paid


@dataclass(frozen=True, slots=True)
class SimulatedReplays:
    """What came of each history; arrays of shape (windows,)."""

    replays: Replays
    interruptions: Ints


def replay_simulated(
    policy: Policy, market: SimulatedMarket, tick_s: float, task: Task, prices: ModePrices
) -> SimulatedReplays:
    """Costs and ends of a policy on every history of a drawn market, all begun at its tick 0.

    What is on demand in the tick after the last goes on to its end, since there is no spot to go
    back to; a policy that waits there never finishes.
    """
    count, ticks = len(market.done_s), len(market.available)
    run = ReplayState(count, task, prices, tick_s)
    run.done, run.queue_s = market.done_s.copy(), market.queue_s
    decide = policy.begin(task, prices, tick_s, count)
    interruptions: Ints = np.zeros(count, dtype=np.int64)
    age, queued = np.zeros(count), np.zeros(count)
    spot_usd = (prices.spot - prices.idle) / 3600.0
    queue_usd = (prices.on_demand - prices.idle) / 3600.0
    nowhere = np.zeros(count, dtype=np.bool_)
    for tick in range(ticks + 1):
        here = market.available[tick] if tick < ticks else nowhere
        taken = market.taken[tick] if tick < ticks else nowhere
        before, live = run.mode, ~run.stopped
        lost = live & (before == SPOT) & (~here | taken)
        interruptions += lost
        run.cost -= np.where(lost & (age < market.free_s), spot_usd * age, 0.0)
        age = np.where(lost | (before != SPOT), 0.0, age)
        run.step(decide, tick, here, taken)
        rented = live & (run.mode == ON_DEMAND)
        queued = np.where(rented & (before != ON_DEMAND), market.queue_s, queued)
        unpaid = np.where(rented, np.minimum(queued, tick_s), 0.0)
        run.cost -= unpaid * queue_usd
        queued -= unpaid
        age += np.where(live & (run.mode == SPOT), tick_s, 0.0)
        if bool(run.stopped.all()):
            break
    more = run.finish_on_demand((ticks + 1) * tick_s)
    run.cost -= np.minimum(queued, more * tick_s) * queue_usd
    return SimulatedReplays(run.result(), interruptions)


def optimum(
    available: Bools, tick_s: float, starts: Ints, task: Task, prices: ModePrices
) -> Floats:
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
    if most > _MAX_LEVELS:
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
