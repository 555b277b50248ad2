"""Exact replay of fallback policies on recorded availability of one zone or several, tick by tick.

The rules of a tick are those of the "Can't Be Late" benchmark (Wu et al., NSDI'24), in which
a tick is paid in full:

    1. spot that is interrupted ends: mode = none, work done is kept
    2. the policy names a mode; a change to spot or on-demand sets start-up = changeover
    3. cost += price·tick;  work = max(tick - start-up, 0);  start-up -= tick - work
    4. the job ends with the tick that leaves at most 1 ms of work

A gang sits in one zone at a time. Its checkpoint lies where it ran last; starting elsewhere costs
the price of a move (egress of checkpoint and data) besides. The first start is free of moves.

Besides what the plain replay knows of a tick, a drawn market may say that a machine was reclaimed
while others are there at once (a failover list), that on-demand has to be queued for, how much is
left to do, and that an interruption before some age costs nothing.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.policies.state import (
    NONE,
    NOWHERE,
    ON_DEMAND,
    SPOT,
    Decide,
    ModePrices,
    Offers,
    Policy,
    PolicyState,
    Task,
)

DONE_S = 1e-3  # work left that counts as none
_PATIENCE = 1.5  # deadlines after which a run that waits past the end of the series is given up


@dataclass(frozen=True, slots=True)
class RecordedZones:
    """Recorded availability of zones that a job may use, and what they cost."""

    available: Bools  # (zones, ticks)
    offers: Offers

    def __post_init__(self) -> None:
        zones = len(self.available)
        if zones != len(self.offers):
            raise UsageError(f"{zones} zones need as many prices, not {len(self.offers)}")

    @staticmethod
    def of_one(available: Bools, tick_s: float, prices: ModePrices) -> "RecordedZones":
        """One zone; (ticks,)."""
        return RecordedZones(available[None], Offers.of_one(prices, tick_s))

    @property
    def ticks(self) -> int:
        """Length of the series."""
        return int(self.available.shape[1])

    def windows(self, task: Task, every_s: float) -> Ints:
        """Start ticks, `every_s` apart, of all windows whose deadline lies inside the series."""
        tick_s = self.offers.tick_s
        last = self.ticks - int(np.ceil(task.deadline_s / tick_s - 1e-9))
        return np.arange(0, max(last + 1, 0), max(1, round(every_s / tick_s)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Replays:
    """What came of each window; arrays of shape (windows,)."""

    cost_usd: Floats
    finish_s: Floats  # end of the tick in which the job ended; inf: not within the series
    spot_s: Floats  # paid on spot
    on_demand_s: Floats
    starts: Ints  # changes to spot or on-demand
    moves: Ints  # of them, away from the checkpoint
    moves_usd: Floats

    def late(self, deadline_s: float) -> Bools:
        """Which windows missed a deadline."""
        return self.finish_s > deadline_s + DONE_S


def replay(policy: Policy, recorded: RecordedZones, starts: Ints, task: Task) -> Replays:
    """Costs and ends of a policy from each start tick of recorded series.

    Past the end of the series spot cannot be had. A window that still waits there after one and a
    half deadlines counts as not finished. Errors: UsageError for start ticks outside the series.
    """
    offers, tick_s, length = recorded.offers, recorded.offers.tick_s, recorded.ticks
    _check(length, tick_s, starts)
    run = ReplayState(len(starts), task, offers)
    decide = policy.begin(task, offers, len(starts))
    longest = task.work_s + task.changeover_s + _PATIENCE * task.deadline_s
    after = int(np.ceil(longest / tick_s)) + 1
    ticks = length - int(starts.min()) + after if len(starts) else 0
    padded = np.pad(recorded.available, ((0, 0), (0, length + after)))
    for tick in range(ticks):
        beyond = (starts + tick >= length) & (tick * tick_s >= _PATIENCE * task.deadline_s)
        run.stopped |= beyond & (run.mode <= len(offers))
        if bool(run.stopped.all()):
            break
        run.step(decide, tick, padded[:, starts + tick].T)
    return run.result()


def _check(ticks: int, tick_s: float, starts: Ints) -> None:
    if tick_s <= 0.0:
        raise UsageError(f"tick of {tick_s} s: must be above 0")
    if len(starts) and (int(starts.min()) < 0 or int(starts.max()) >= ticks):
        raise UsageError(f"start ticks must lie in 0 to {ticks - 1}, the series")


class ReplayState:
    """The windows in flight."""

    def __init__(self, count: int, task: Task, offers: Offers) -> None:
        self.task, self.offers, self.tick_s = task, offers, offers.tick_s
        self.usd, self.windows = offers.usd_by_mode, np.arange(count)
        self.mode: Ints = np.zeros(count, dtype=np.int64)
        self.place: Ints = np.full(count, NOWHERE, dtype=np.int64)
        self.done, self.start_up, self.cost, self.moves_usd = np.zeros((4, count))
        self.finish = np.full(count, np.inf)
        self.ticks: Ints = np.zeros((len(self.usd), count), dtype=np.int64)
        self.starts, self.moves = np.zeros((2, count), dtype=np.int64)
        self.stopped: Bools = np.zeros(count, dtype=np.bool_)
        self.queue_s: Floats = np.zeros(count)  # until an on-demand machine starts

    def step(self, decide: Decide, tick: int, here: Bools, taken: Bools | None = None) -> None:
        """One tick of every window that still runs, with spot `here`; (windows, zones).

        `taken`: spot is there, but other machines than before.
        """
        now, live = tick * self.tick_s, ~self.stopped
        lost = self._on_spot(self.mode) & ~self._is_in(here, self.mode)
        if taken is not None:
            lost |= self._on_spot(self.mode) & taken
        self.mode = np.where(lost, NONE, self.mode)
        seen = PolicyState(now, self.mode, self.done, self.start_up, here, self.place)
        want = decide(seen)
        if bool((live & self._on_spot(want) & ~self._is_in(here, want)).any()):
            raise UsageError(f"the policy asked for spot at {now:.0f} s, where there is none")
        self._begin(live & (want != self.mode) & (want != NONE), want)
        self.mode = np.where(live, want, self.mode)
        runs = live & (self.mode != NONE)
        self.cost += np.where(live, self.usd[self.mode], 0.0)
        self.ticks[self.mode, self.windows] += live
        work = np.where(runs, np.maximum(self.tick_s - self.start_up, 0.0), 0.0)
        self.start_up = np.where(runs, self.start_up - (self.tick_s - work), self.start_up)
        self.done = self.done + np.minimum(work, self.task.work_s - self.done)
        ended = live & (self.task.work_s - self.done <= DONE_S)
        self.finish[ended] = now + self.tick_s
        self.stopped |= ended

    def _begin(self, change: Bools, want: Ints) -> None:
        """Start machines, where the checkpoint is or elsewhere."""
        zone = (want - 1) % len(self.offers)
        queued = np.where(want > len(self.offers), self.queue_s, 0.0)
        self.start_up = np.where(change, self.task.changeover_s + queued, self.start_up)
        self.starts += change
        self.moves += change & (self.place != NOWHERE) & (zone != self.place)
        usd = np.where(change, self.offers.move_costs(self.place)[self.windows, zone], 0.0)
        self.cost += usd
        self.moves_usd += usd
        self.place = np.where(change, zone, self.place)

    def _on_spot(self, mode: Ints) -> Bools:
        return (mode > NONE) & (mode <= len(self.offers))

    def _is_in(self, here: Bools, mode: Ints) -> Bools:
        """Whether spot is in the zone of a mode."""
        found: Bools = here[self.windows, (mode - 1) % len(self.offers)]
        return found

    def finish_on_demand(self, now_s: float) -> Ints:
        """To their end at once: those on demand that nothing will interrupt; ticks each took.

        A queue for on-demand machines may be years long, so these ticks are counted, not stepped.
        """
        staying = ~self.stopped & (self.mode > len(self.offers))
        left_s = self.start_up + self.task.work_s - self.done - DONE_S
        more = np.where(staying, np.ceil(left_s / self.tick_s), 0.0).astype(np.int64)
        self.cost += more * self.usd[self.mode]
        self.ticks[self.mode, self.windows] += more
        self.done = np.where(staying, self.task.work_s, self.done)
        self.finish = np.where(staying, now_s + more * self.tick_s, self.finish)
        self.stopped |= staying
        return more

    def result(self) -> Replays:
        """What came of it."""
        count = len(self.offers)
        spot_s = self.ticks[1 : 1 + count].sum(axis=0) * self.tick_s
        on_demand_s = self.ticks[1 + count :].sum(axis=0) * self.tick_s
        paid = self.cost, self.finish, spot_s, on_demand_s
        return Replays(*paid, self.starts, self.moves, self.moves_usd)


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
    offers = Offers.of_one(prices, tick_s)
    run = ReplayState(count, task, offers)
    run.done, run.queue_s = market.done_s.copy(), market.queue_s
    decide = policy.begin(task, offers, count)
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
        run.step(decide, tick, here[:, None], taken)
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
