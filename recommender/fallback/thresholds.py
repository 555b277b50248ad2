"""The two-threshold rule: what the policy table says, in one sentence and two figures.

Slack is what would be left if on-demand took over now: time left - work left - a changeover.
The optimal policy spends it at an even pace, so its borders are nearly straight in the work
left w:

    no spot               wait while slack > wait·w, else on-demand
    on on-demand, spot    go back to spot when slack > back·w
    spot                  stay on it
"""

from dataclasses import dataclass

import numpy as np

from recommender.fallback.availability import Chain
from recommender.fallback.table import Table
from recommender.replay.engine import DONE_S
from recommender.replay.rules import whole_ticks
from recommender.replay.state import (
    NONE,
    ON_DEMAND,
    SPOT,
    Bools,
    Decide,
    Floats,
    Modes,
    Prices,
    State,
    Task,
)

_WORK_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the work at which the borders are read off


@dataclass(frozen=True, slots=True)
class TwoThresholds:
    """Wait for spot while there is slack, take on-demand when it is short, go back when it pays.

    Both figures are slack per second of work left. The deadline is always kept: where waiting
    or starting spot would break it, on-demand runs.
    """

    wait: float
    back: float
    name: str = "two thresholds"

    def begin(self, task: Task, prices: Prices, tick_s: float, windows: int) -> Decide:
        """The rule as decisions."""

        def decide(state: State) -> Modes:
            work = task.work_s - state.done_s
            left = tick_s * np.floor((task.deadline_s - state.now_s) / tick_s + 1e-9)
            slack = left - work - task.changeover_s
            on_demand = state.mode == ON_DEMAND
            spot = state.available & (~on_demand | (slack > self.back * work))
            rest = np.where(on_demand | (slack <= self.wait * work), ON_DEMAND, NONE)
            want = np.where(spot, SPOT, rest)
            return np.where(_safe(want, state, task, tick_s, left), want, ON_DEMAND)

        return decide


def _safe(want: Modes, state: State, task: Task, tick_s: float, left: float) -> Bools:
    """Can on-demand still keep the deadline if it starts only in the next tick?"""
    pay = np.where((state.mode == SPOT), state.start_up_s, task.changeover_s)
    gain = np.where(want == SPOT, np.maximum(tick_s - pay, 0.0), 0.0)
    work = task.work_s - state.done_s - gain
    in_time = whole_ticks(work + task.changeover_s, tick_s) <= left - tick_s + 1e-6
    return np.asarray((want == ON_DEMAND) | in_time | (work <= DONE_S))


def two_thresholds(table: Table, law: Chain, task: Task) -> TwoThresholds:
    """Read the two borders off a policy table, as means over the work left."""
    found = [_borders(table, law, task, share * task.work_s) for share in _WORK_SHARES]
    waits, backs = np.array(found).T
    return TwoThresholds(float(np.mean(waits)), float(np.mean(backs)))


def _borders(table: Table, law: Chain, task: Task, work_s: float) -> tuple[float, float]:
    """Least slack, per second of work left, worth waiting with and worth leaving on-demand."""
    work = round(work_s / table.tick_s)
    reach = min(table.usd.shape[3] - 1, table.ticks - work)
    down, fresh = _outage(law), _fresh_run(law)
    changeover = task.changeover_s
    wait = back = 0.0
    for slack in range(reach, -1, -1):  # from much to little: the first border met counts
        left, spare = work + slack, np.array([slack * table.tick_s])
        started = spare - changeover
        idle = table.at(left, NONE, down, spare)[0]
        if wait == 0.0 and idle >= table.at(left, ON_DEMAND, down, started)[0]:
            wait = max(float(started[0]), 0.0)
        stay = table.at(left, ON_DEMAND, fresh, spare)[0]
        if back == 0.0 and table.at(left, SPOT, fresh, started)[0] >= stay:
            back = max(float(started[0]), 0.0)
        if wait > 0.0 and back > 0.0:
            break
    return wait / work_s, back / work_s


def _outage(law: Chain) -> Floats:
    """Belief in an outage at a random moment of it."""
    belief = np.where(law.up, 0.0, law.usual)[None]
    return np.asarray(belief / belief.sum())


def _fresh_run(law: Chain) -> Floats:
    """Belief when spot has just come back."""
    belief = np.where(law.up, (_outage(law) @ law.step)[0], 0.0)[None]
    return np.asarray(belief / belief.sum())
