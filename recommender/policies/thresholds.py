"""The two-threshold rule tick by tick: on recorded zones, and evaluated next to the optimum.

That of `risk/policy.py` where the fallback is as fast as the cluster. Slack is what would be left
if on-demand took over now: time left - work left - a changeover. With w the work left

    no spot               wait while slack > wait·w, else on-demand
    on on-demand, spot    go back to spot when slack - a changeover > back·w
    spot                  stay on it

It is evaluated by the recursion, grid and law of `policy_table.py`, so the figures of a rule and of
the optimum compare; the simple rule waits to the last and never goes back. A plan's own numbers
come from `optimize/thresholds.py`; its simulation is that of `risk/walk.py`.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.policies.availability import Chain
from recommender.policies.policy_table import NEVER, after_spot, started
from recommender.policies.replay import DONE_S
from recommender.policies.rules import whole_ticks
from recommender.policies.state import (
    NONE,
    ON_DEMAND,
    SPOT,
    Decide,
    ModePrices,
    Offers,
    PolicyState,
    Task,
)


@dataclass(frozen=True, slots=True)
class TwoThresholds:
    """Wait for spot while there is slack, take on-demand when it is short, go back when it pays.

    Both figures are slack per second of work left. The deadline is always met: where waiting
    or starting spot would break it, on-demand runs.
    """

    wait: float
    back: float
    name: str = "two thresholds"

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """The rule as decisions."""
        tick_s = offers.tick_s

        def decide(state: PolicyState) -> Ints:
            work = task.work_s - state.done_s
            left = tick_s * np.floor((task.deadline_s - state.now_s) / tick_s + 1e-9)
            slack = left - work - task.changeover_s
            on_demand = state.mode == ON_DEMAND
            spare = slack - task.changeover_s
            spot = state.available & (~on_demand | (spare > self.back * work))
            rest = np.where(on_demand | (slack <= self.wait * work), ON_DEMAND, NONE)
            want = np.where(spot, SPOT, rest)
            return np.where(_safe(want, state, task, tick_s, left), want, ON_DEMAND)

        return decide


def _safe(want: Ints, state: PolicyState, task: Task, tick_s: float, left: float) -> Bools:
    """Can on-demand still meet the deadline if it starts only in the next tick?"""
    pay = np.where((state.mode == SPOT), state.start_up_s, task.changeover_s)
    gain = np.where(want == SPOT, np.maximum(tick_s - pay, 0.0), 0.0)
    work = task.work_s - state.done_s - gain
    in_time = whole_ticks(work + task.changeover_s, tick_s) <= left - tick_s + 1e-6
    return np.asarray((want == ON_DEMAND) | in_time | (work <= DONE_S))


# Slack is never large enough to go back.
SAFETY_NET = TwoThresholds(wait=0.0, back=1e9, name="fallback rule")


def rule_usd(
    rule: TwoThresholds, law: Chain, task: Task, prices: ModePrices, tick_s: float
) -> float:
    """Expected cost in USD of a job that follows the rule from a random moment on.

    Errors: none; `NEVER` where the slack is too short to begin with.
    """
    ticks = int(task.deadline_s / tick_s + 1e-9)
    spare = ticks - task.work_s / tick_s
    size = max(1, int(np.ceil(spare)) + 1) + 1
    usd = prices.by_mode * tick_s / 3600.0
    step = law.step
    value = np.zeros((3, len(law.up), size))
    for left in range(1, ticks + 1):
        run = np.full_like(value, NEVER)
        run[NONE, :, 1:] = usd[NONE] + (step @ value[NONE])[:, :-1]
        run[SPOT] = usd[SPOT] + after_spot(law, value)
        run[ON_DEMAND] = usd[ON_DEMAND] + step @ value[ON_DEMAND]
        run[:, :, np.arange(size) >= left] = 0.0
        value = _chosen(rule, run, law, left, task.changeover_s / tick_s)
    low = min(int(spare + 1e-9), size - 2)
    part = min(max(spare - low, 0.0), 1.0)
    begun = law.usual @ value[NONE].astype(np.float64)
    return float(begun[low] * (1.0 - part) + begun[low + 1] * part)


def _chosen(rule: TwoThresholds, run: Floats, law: Chain, left: int, changeover: float) -> Floats:
    """Cost to go by the mode before the rule's choice, for every slack."""
    fresh = started(run[1:], changeover)
    found = np.empty_like(run)
    slack = np.arange(run.shape[2], dtype=np.float64)
    for mode in (NONE, SPOT, ON_DEMAND):
        options = np.stack([run[NONE], fresh[0], fresh[1]])
        if mode != NONE:
            options[mode] = run[mode]
        for up in (False, True):
            want = _wanted(rule, mode, up, slack, left, changeover)
            rows = law.up == up
            found[mode, rows] = np.take_along_axis(
                options[:, rows], np.broadcast_to(want, (1, int(rows.sum()), len(want))), axis=0
            )[0]
    return found


def _wanted(
    rule: TwoThresholds, mode: int, up: bool, slack: Floats, left: int, changeover: float
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The rule's choice for every slack, in ticks; on-demand wherever anything else is late."""
    work = np.maximum(left - slack, 0.0)
    over = slack - changeover  # what is left if on-demand took over now
    rest = np.where((mode == ON_DEMAND) | (over <= rule.wait * work), ON_DEMAND, NONE)
    want = rest
    if up and mode == ON_DEMAND:
        want = np.where(over - changeover > rule.back * work, SPOT, rest)
    elif up:
        want = np.full(len(slack), SPOT)
    whole = np.ceil(changeover - 1e-9)
    after = np.where(want == SPOT, slack - (0.0 if mode == SPOT else changeover), slack - 1.0)
    safe = (want == ON_DEMAND) | (after >= whole - 1e-9)
    done = work <= 0.0
    return np.where(done, NONE, np.where(safe, want, ON_DEMAND)).astype(np.int64)
