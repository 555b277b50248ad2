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

V = 0 once the work is done (slack >= j), infinite for slack < 0: the deadline is always kept.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.fallback.availability import Chain
from recommender.replay.state import NONE, ON_DEMAND, SPOT, Floats, Prices, Task

Singles = NDArray[np.float32]
NEVER = np.float32(1e6)  # USD: worse than anything a job costs


@dataclass(frozen=True, slots=True)
class Table:
    """Cost to go in USD of what runs in the coming tick, start-up already taken from the slack."""

    usd: Singles  # (ticks left + 1, 3 modes, states, slack in ticks + 1)
    tick_s: float

    @property
    def ticks(self) -> int:
        """Ticks from the start to the deadline."""
        return len(self.usd) - 1

    def at(self, left: int, mode: np.int8, belief: Floats, slack_s: Floats) -> Floats:
        """Expected cost to go per window, linear in the slack; NEVER where it is below zero.

        `belief` (windows, states) weighs the states, `slack_s` (windows,).
        """
        rows = self.usd[left, mode]
        last = rows.shape[1] - 1
        place = slack_s / self.tick_s
        low = np.clip(np.floor(place + 1e-9).astype(np.int64), 0, last - 1)
        part = np.clip(place - low, 0.0, 1.0)
        below = np.einsum("ws,sw->w", belief, rows[:, low])
        above = np.einsum("ws,sw->w", belief, rows[:, low + 1])
        value = below * (1.0 - part) + above * part
        return np.where(place < -1e-6, float(NEVER), value)


def policy_table(law: Chain, task: Task, prices: Prices, tick_s: float) -> Table:
    """Backward induction on the grid of one tick.

    Seconds of one core: about ticks × states × slack × 2e-8; 12 bytes of memory per cell.
    """
    ticks = int(task.deadline_s / tick_s + 1e-9)
    spare = max(1, int(np.ceil((ticks * tick_s - task.work_s) / tick_s)) + 1)
    usd = (prices.by_mode * tick_s / 3600.0).astype(np.float32)
    step = law.step.astype(np.float32)
    slack = np.arange(spare + 1)
    table = np.full((ticks + 1, 3, len(law.up), spare + 1), NEVER, dtype=np.float32)
    table[0] = 0.0
    value = np.zeros((3, len(law.up), spare + 1), dtype=np.float32)
    for left in range(1, ticks + 1):
        run = table[left]
        run[NONE, :, 1:] = usd[NONE] + (step @ value[NONE])[:, :-1]
        run[SPOT] = usd[SPOT] + after_spot(law, value)
        run[ON_DEMAND] = usd[ON_DEMAND] + step @ value[ON_DEMAND]
        run[:, :, slack >= left] = 0.0
        value = _best(run, task.changeover_s / tick_s)
    return Table(table, tick_s)


def after_spot(law: Chain, value: Singles) -> Singles:
    """Cost to go after a tick on spot, NEVER where there is none; `value` by the mode kept."""
    up = law.up[:, None]
    found = law.step.astype(np.float32) @ np.where(up, value[SPOT], value[NONE])
    if law.moved is not None:
        found += law.moved.astype(np.float32) @ (value[NONE] - value[SPOT])
    return np.asarray(np.where(up, found, NEVER))


def _best(run: Singles, changeover: float) -> Singles:
    """Least cost to go by the mode before the choice."""
    idle, spot, on_demand = run
    fresh = started(run[1:], changeover)
    other = np.minimum(idle, fresh[1])
    spot_or_idle = np.minimum(idle, fresh[0])
    return np.stack(
        [np.minimum(other, fresh[0]), np.minimum(other, spot), np.minimum(spot_or_idle, on_demand)]
    )


def started(run: Singles, changeover: float) -> Singles:
    """The same costs by the slack before a changeover is taken from it."""
    whole = int(np.floor(changeover + 1e-9))
    part = np.float32(changeover - whole)
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
