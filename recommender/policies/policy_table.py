"""The policy table: cost-optimal backward induction over time left × work left × state.

What matters of the work left is the slack, time left - work left: it falls by a tick when idle,
by a changeover at every start of a machine, and stays while one runs (the lump for a start-up
that is cut short is the benchmark's own rule for the optimum, and prices such starts a little
too high). With x the state of the availability chain and j ticks left:

    idle       c0 + E V(none; j - 1, slack - 1, x')
    spot       c1 + E V(spot or, where x' is down, none; j - 1, slack, x')
    on-demand  c2 + E V(on-demand; j - 1, slack, x')
    V(mode) = min(idle, spot, on-demand), the last two at slack - changeover where mode differs

Where a failover list is walked, spot may be taken while other machines are there at once: then
spot goes on as V(none; j - 1, slack, x') too.

V = 0 once the work is done (slack >= j), infinite for slack < 0: the deadline is always met.

Over several zones, with x the lumped states of all zones at once (they come and go independently),
and modes idle, spot in each zone, and on-demand in the cheapest region:

    idle          E V(idle; j - 1, slack - 1, x')
    spot in z     c_z + E V(spot in z or, where z is down in x', idle; j - 1, slack, x')
    on-demand     c + E V(on-demand; j - 1, slack, x')
    V(mode) = min over modes, at slack - changeover and plus the price of a move where it changes

While idle the place of the checkpoint is not kept: a start then pays the mean price of a move.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Singles
from recommender.catalogs.frozen import dataclass
from recommender.policies.availability import AggregatedStates, Chain
from recommender.policies.state import NONE, ON_DEMAND, SPOT, ModePrices, Task

ROUNDING = 1e-5  # of sums, which differ between processors; the joint table is in single precision
Costs = TypeVar("Costs", Singles, Floats)
NEVER = np.float32(1e6)  # USD: worse than anything a job costs


@dataclass(frozen=True, slots=True)
class PolicyTable:
    """Cost to go in USD of what runs in the coming tick, start-up already taken from the slack."""

    usd: Floats | Singles  # (ticks left + 1, modes, states, slack in ticks + 1)
    tick_s: float

    @property
    def ticks(self) -> int:
        """Ticks from the start to the deadline."""
        return len(self.usd) - 1

    def at(self, left: float, mode: int, belief: Floats, slack_s: Floats) -> Floats:
        """Expected cost to go per window, linear in time left and slack; NEVER for slack < 0.

        `left` counts ticks, `belief` (windows, states) weighs the states, `slack_s` (windows,).
        """
        low = min(int(left + 1e-9), self.ticks)
        part = max(left - low, 0.0)
        value = self._on(low, mode, belief, slack_s)
        if part > 1e-9:
            above = self._on(min(low + 1, self.ticks), mode, belief, slack_s)
            value = value * (1.0 - part) + above * part
        return np.where(slack_s / self.tick_s < -1e-6, float(NEVER), value)

    def _on(self, left: int, mode: int, belief: Floats, slack_s: Floats) -> Floats:
        rows, place = self.usd[left, mode], slack_s / self.tick_s
        low = np.clip(np.floor(place + 1e-9).astype(np.int64), 0, rows.shape[1] - 2)
        part = np.clip(place - low, 0.0, 1.0)
        below = np.einsum("ws,sw->w", belief, rows[:, low])
        above = np.einsum("ws,sw->w", belief, rows[:, low + 1])
        return np.asarray(below * (1.0 - part) + above * part)


def first_cheapest(usd: Floats) -> Ints:
    """The first row that costs no more than the least but for rounding; (rows, ...) to (...)."""
    return np.asarray((usd <= usd.min(axis=0) * (1.0 + ROUNDING)).argmax(axis=0))


def policy_table(law: Chain, task: Task, prices: ModePrices, tick_s: float) -> PolicyTable:
    """Backward induction on the grid of one tick.

    Seconds of one core: about ticks × states × slack × 2e-8; 24 bytes of memory per cell.
    """
    ticks = int(task.deadline_s / tick_s + 1e-9)
    spare = max(1, int(np.ceil((ticks * tick_s - task.work_s) / tick_s)) + 1)
    usd = prices.by_mode * tick_s / 3600.0
    step = law.step
    slack = np.arange(spare + 1)
    table = np.full((ticks + 1, 3, len(law.up), spare + 1), float(NEVER))
    table[0] = 0.0
    value = np.zeros((3, len(law.up), spare + 1))
    for left in range(1, ticks + 1):
        run = table[left]
        run[NONE, :, 1:] = usd[NONE] + (step @ value[NONE])[:, :-1]
        run[SPOT] = usd[SPOT] + after_spot(law, value)
        run[ON_DEMAND] = usd[ON_DEMAND] + step @ value[ON_DEMAND]
        run[:, :, slack >= left] = 0.0
        value = _best(run, task.changeover_s / tick_s)
    return PolicyTable(table, tick_s)


def after_spot(law: Chain, value: Floats) -> Floats:
    """Cost to go after a tick on spot, NEVER where there is none; `value` by the mode kept."""
    up = law.up[:, None]
    found = law.step @ np.where(up, value[SPOT], value[NONE])
    if law.moved is not None:
        found += law.moved @ (value[NONE] - value[SPOT])
    return np.asarray(np.where(up, found, NEVER))


def _best(run: Floats, changeover: float) -> Floats:
    """Least cost to go by the mode before the choice."""
    idle, spot, on_demand = run
    fresh = started(run[1:], changeover)
    other = np.minimum(idle, fresh[1])
    spot_or_idle = np.minimum(idle, fresh[0])
    return np.stack(
        [np.minimum(other, fresh[0]), np.minimum(other, spot), np.minimum(spot_or_idle, on_demand)]
    )


def started(run: Costs, changeover: float) -> Costs:
    """Costs by the slack before a changeover is taken from it."""
    whole = int(np.floor(changeover + 1e-9))
    part = changeover - whole
    size = run.shape[2]
    moved = np.full_like(run, NEVER)
    if whole + 1 >= size:
        return moved
    kept = run[:, :, : size - whole]
    if part < 1e-6:
        moved[:, :, whole:] = kept
    else:
        moved[:, :, whole + 1 :] = kept[:, :, 1:] * (1 - part) + kept[:, :, :-1] * part
    return moved


@dataclass(frozen=True, slots=True)
class ZonePrices:
    """What the zones of a table cost; the last place is that of on-demand."""

    usd_per_hour: Floats  # (zones + 1,)
    move_usd: Floats  # (zones + 1, zones + 1) from row to column


def size(task: Task, tick_s: float) -> tuple[int, int]:
    """Ticks and slack of a table, in ticks of `tick_s`."""
    ticks = int(np.ceil(task.deadline_s / tick_s - 1e-9))
    return ticks, max(1, int(np.ceil((ticks * tick_s - task.work_s) / tick_s)) + 1)


def joint_table(
    zones: Sequence[AggregatedStates], offers: ZonePrices, task: Task, tick_s: float
) -> PolicyTable:
    """Backward induction on the grid of `tick_s`; four bytes per cell.

    Seconds of one core: about ticks × modes × joint states × slack × 3e-8.
    """
    ticks, spare = size(task, tick_s)
    up = _up(zones)
    usd = (offers.usd_per_hour * tick_s / 3600.0).astype(np.float32)
    price = np.concatenate([offers.move_usd.mean(axis=0)[None], offers.move_usd])
    steps = [zone.step.astype(np.float32) for zone in zones]
    modes, slack = len(zones) + 2, np.arange(spare + 1)
    table = np.full((ticks + 1, modes, up.shape[1], spare + 1), NEVER, dtype=np.float32)
    table[0] = 0.0
    value = np.zeros(table.shape[1:], dtype=np.float32)
    for left in range(1, ticks + 1):
        run = table[left]
        for zone, there in enumerate(up, 1):
            value[zone] = np.where(there[:, None], value[zone], value[0])
        later = _expected(value, steps)
        run[0, :, 1:] = later[0, :, :-1]
        for zone, there in enumerate(up, 1):
            run[zone] = np.where(there[:, None], usd[zone - 1] + later[zone], NEVER)
        run[-1] = usd[-1] + later[-1]
        run[:, :, slack >= left] = 0.0
        value = _best_of_zones(run, price.astype(np.float32), task.changeover_s / tick_s)
    return PolicyTable(table, tick_s)


def _up(zones: Sequence[AggregatedStates]) -> Bools:
    """Is each zone up in each joint state? (zones, joint states)"""
    place = np.indices([len(zone.up) for zone in zones]).reshape(len(zones), -1)
    return np.stack([zone.up[index] for zone, index in zip(zones, place, strict=True)])


def _expected(value: Singles, steps: Sequence[Singles]) -> Singles:
    """Mean over the joint states of the next tick: the zones' matrices one after the other."""
    shape = value.shape
    after = value.reshape(shape[0], *(len(step) for step in steps), shape[2])
    for axis, step in enumerate(steps, 1):
        after = np.moveaxis(np.tensordot(step, after, axes=(1, axis)), 0, axis)
    return after.reshape(shape)


def _best_of_zones(run: Singles, move_usd: Singles, changeover: float) -> Singles:
    """Least cost to go by the mode before the choice; rows of `move_usd` are those modes."""
    fresh = started(run[1:], changeover)
    value = np.minimum(run, run[:1])
    for before in range(len(run)):
        for to in range(1, len(run)):
            if to != before:
                best = fresh[to - 1] + move_usd[before, to - 1]
                np.minimum(value[before], best, out=value[before])
    return value
