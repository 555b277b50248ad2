"""Replay over several zones or regions: the same tick rules, with moves that cost money.

A gang sits in one zone at a time. Its checkpoint lies where it ran last; starting elsewhere
costs `move_usd` (egress of checkpoint and data) and, like every start, a changeover. The first
start is free of moves. Modes are 0 for none, 1 + z for spot in zone z, 1 + Z + z for on-demand
in the region of zone z.

The dynamic programme of `optimum`, with the place of the checkpoint as one more part of the
state: tick × {idle, spot, on-demand} × zone × time lost.
"""

from collections.abc import Callable
from math import gcd
from typing import Protocol

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.policies.replay import DONE_S
from recommender.policies.rules import whole_ticks
from recommender.policies.state import Task

NOWHERE = -1  # no checkpoint yet


@dataclass(frozen=True, slots=True)
class RecordedZones:
    """Recorded availability and prices of zones that a job may use."""

    available: Bools  # (zones, ticks)
    spot_usd_per_hour: Floats  # (zones,)
    on_demand_usd_per_hour: Floats  # (zones,) inf where none is sold
    move_usd: Floats  # (zones, zones) from row to column, 0 on the diagonal
    tick_s: float

    def __post_init__(self) -> None:
        zones = len(self.available)
        shapes = (self.spot_usd_per_hour.shape, self.on_demand_usd_per_hour.shape)
        if shapes != ((zones,), (zones,)) or self.move_usd.shape != (zones, zones):
            raise UsageError(f"{zones} zones need as many prices, and moves between all of them")
        if not np.isfinite(self.on_demand_usd_per_hour).any():
            raise UsageError("no zone sells on-demand: a deadline cannot be met")


@dataclass(frozen=True, slots=True)
class ZoneState:
    """What a policy sees at a tick; arrays of shape (windows,) or (windows, zones)."""

    now_s: float
    mode: Ints
    place: Ints  # zone of the checkpoint, NOWHERE before the first start
    done_s: Floats
    start_up_s: Floats
    available: Bools  # (windows, zones)


ZoneDecide = Callable[[ZoneState], Ints]


class ZonePolicy(Protocol):
    """A fallback rule over several zones."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    def begin(self, task: Task, zones: RecordedZones, windows: int) -> ZoneDecide:
        """The decisions of one replay; spot may only be named where it is available."""


@dataclass(frozen=True, slots=True)
class ZoneReplays:
    """What came of each window; arrays of shape (windows,)."""

    cost_usd: Floats
    finish_s: Floats  # inf: not within the series
    moves: Ints  # starts away from the checkpoint
    moves_usd: Floats


@dataclass(frozen=True, slots=True)
class Failover:
    """Greedy over a list: the cheapest zone that is up, else wait; on-demand when time is short."""

    name: str = "failover"

    def begin(self, task: Task, zones: RecordedZones, windows: int) -> ZoneDecide:
        """Running spot is kept; the price of a move counts as spread over the work left."""
        count = len(zones.available)

        def decide(state: ZoneState) -> Ints:
            left = task.work_s - state.done_s
            hours = np.maximum(left, zones.tick_s)[:, None] / 3600.0
            move = move_costs(zones, state.place)
            spot = zones.spot_usd_per_hour[None] + move / hours
            best = np.where(state.available, spot, np.inf).argmin(axis=1)
            rent = zones.on_demand_usd_per_hour[None] + move / hours
            on_demand = 1 + count + rent.argmin(axis=1)
            on_spot = (state.mode > 0) & (state.mode <= count)
            want = np.where(state.available.any(axis=1), 1 + best, 0)
            want = np.where(on_spot, state.mode, want)
            due = whole_ticks(left + task.changeover_s, zones.tick_s)
            last_resort = np.where(on_spot | (state.mode > count), state.mode, on_demand)
            return np.where(due >= task.deadline_s - state.now_s, last_resort, want)

        return decide


def replay_zones(policy: ZonePolicy, zones: RecordedZones, starts: Ints, task: Task) -> ZoneReplays:
    """Costs and ends of a policy from each start tick; on-demand goes on past the series."""
    count, ticks = zones.available.shape
    usd = np.concatenate([[0.0], zones.spot_usd_per_hour, zones.on_demand_usd_per_hour])
    usd = usd * zones.tick_s / 3600.0
    decide, size = policy.begin(task, zones, len(starts)), len(starts)
    mode, place = np.zeros(size, dtype=np.int64), np.full(size, NOWHERE, dtype=np.int64)
    done, start_up, cost, moved_usd = np.zeros((4, size))
    finish, moves = np.full(size, np.inf), np.zeros(size, dtype=np.int64)
    live = np.ones(size, dtype=np.bool_)
    after = int((task.deadline_s + task.work_s + task.changeover_s) / zones.tick_s) + 2
    for tick in range(ticks + after):
        at = np.minimum(starts + tick, ticks - 1)
        here = zones.available[:, at].T & (starts + tick < ticks)[:, None]
        lost = (mode > 0) & (mode <= count)
        lost &= ~here[np.arange(size), np.clip(mode - 1, 0, count - 1)]
        mode = np.where(lost, 0, mode)
        want = decide(ZoneState(tick * zones.tick_s, mode, place, done, start_up, here))
        to = np.where(want > count, want - 1 - count, want - 1)
        begun = live & (want > 0) & (want != mode)
        charge = np.where(begun, move_costs(zones, place)[np.arange(size), to], 0.0)
        moves += begun & (place != NOWHERE) & (to != place)
        moved_usd += charge
        start_up = np.where(begun, task.changeover_s, start_up)
        mode = np.where(live, want, mode)
        place = np.where(begun, to, place)
        runs = live & (mode > 0)
        cost += np.where(live, usd[mode], 0.0) + charge
        work = np.where(runs, np.maximum(zones.tick_s - start_up, 0.0), 0.0)
        start_up = np.where(runs, start_up - (zones.tick_s - work), start_up)
        done = done + np.minimum(work, task.work_s - done)
        ended = live & (task.work_s - done <= DONE_S)
        finish[ended] = (tick + 1) * zones.tick_s
        live &= ~ended
        if not live.any():
            break
    return ZoneReplays(cost, finish, moves, moved_usd)


def move_costs(zones: RecordedZones, place: Ints) -> Floats:
    """Price of starting in each zone from where the checkpoint is; (windows, zones)."""
    return np.where((place == NOWHERE)[:, None], 0.0, zones.move_usd[np.maximum(place, 0)])


def optimum_zones(zones: RecordedZones, starts: Ints, task: Task) -> Floats:
    """Least cost in USD with all traces known, per start tick; inf where nothing is in time.

    Work counts as minus one changeover at each start, ticks are paid in full, waiting is free.
    """
    ticks = int(np.floor(task.deadline_s / zones.tick_s + 1e-9))
    if len(starts) and int(starts.max()) + ticks > zones.available.shape[1]:
        raise UsageError(f"the window at tick {int(starts.max())} ends after the series")
    tick, changeover = round(zones.tick_s * 1000), round(task.changeover_s * 1000)
    unit = gcd(tick, changeover)
    most = (ticks * tick - round(task.work_s * 1000)) // unit
    if most < changeover // unit:
        return np.full(len(starts), np.inf)
    seen = [zones.available[:, start : start + ticks] for start in starts]
    costs = [_cheapest(each, zones, tick // unit, changeover // unit, most) for each in seen]
    return np.array(costs)


def _cheapest(seen: Bools, zones: RecordedZones, tick: int, changeover: int, most: int) -> float:
    count, ticks = seen.shape
    hours = zones.tick_s / 3600.0
    spot_usd = zones.spot_usd_per_hour[:, None] * hours
    on_demand_usd = zones.on_demand_usd_per_hour[:, None] * hours
    idle, spot, on_demand = np.full((3, count, most + 1), np.inf)
    idle[:, 0] = 0.0  # the first start is free of moves
    for now in range(ticks):
        waited = np.full_like(idle, np.inf)
        stopped = np.minimum(np.minimum(idle, spot), on_demand)
        waited[:, tick:] = stopped[:, : most + 1 - tick]
        to_spot = np.minimum(spot, _begun(stopped, zones.move_usd, changeover)) + spot_usd
        from_other = _begun(stopped, zones.move_usd, changeover)
        on_demand = np.minimum(on_demand, from_other) + on_demand_usd
        spot = np.where(seen[:, now, None], to_spot, np.inf)
        idle = waited
    return float(min(idle.min(), spot.min(), on_demand.min()))


def _begun(stopped: Floats, move_usd: Floats, changeover: int) -> Floats:
    """Least cost of having the checkpoint anywhere and starting in each zone."""
    begun = np.full_like(stopped, np.inf)
    size = stopped.shape[1] - changeover
    begun[:, changeover:] = (stopped[:, None, :size] + move_usd[:, :, None]).min(axis=0)
    return begun
