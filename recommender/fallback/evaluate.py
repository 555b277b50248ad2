"""What a two-threshold rule costs under a law: backward induction with the choices given.

The same recursion, grid and law as `table.py`, so the figures of a rule and of the optimum can be
set side by side; the plan's own safety net is the rule that waits to the last and never goes back.
"""

import numpy as np

from recommender.fallback.availability import Chain
from recommender.fallback.table import NEVER, Singles, after_spot, started
from recommender.fallback.thresholds import TwoThresholds
from recommender.replay.state import NONE, ON_DEMAND, SPOT, Floats, Prices, Task

# Slack is never large enough to go back.
SAFETY_NET = TwoThresholds(wait=0.0, back=1e9, name="safety net")


def rule_usd(rule: TwoThresholds, law: Chain, task: Task, prices: Prices, tick_s: float) -> float:
    """Expected cost in USD of a job that follows the rule from a random moment on.

    Errors: none; `NEVER` where the slack is too short to begin with.
    """
    ticks = int(task.deadline_s / tick_s + 1e-9)
    spare = ticks - task.work_s / tick_s
    size = max(1, int(np.ceil(spare)) + 1) + 1
    usd = (prices.by_mode * tick_s / 3600.0).astype(np.float32)
    step = law.step.astype(np.float32)
    value = np.zeros((3, len(law.up), size), dtype=np.float32)
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


def _chosen(rule: TwoThresholds, run: Singles, law: Chain, left: int, changeover: float) -> Singles:
    """Cost to go by the mode before the rule's choice, for every slack."""
    fresh = started(run[1:], changeover)
    found = np.empty_like(run)
    slack = np.arange(run.shape[2], dtype=np.float64)
    for mode in (NONE, SPOT, ON_DEMAND):
        options = np.stack([run[NONE], fresh[0], fresh[1]])
        if mode != NONE:
            options[mode] = run[mode]
        for up in (False, True):
            want = _wanted(rule, int(mode), up, slack, left, changeover)
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
        want = np.where(over > rule.back * work, SPOT, rest)
    elif up:
        want = np.full(len(slack), SPOT)
    whole = np.ceil(changeover - 1e-9)
    after = np.where(want == SPOT, slack - (0.0 if mode == SPOT else changeover), slack - 1.0)
    safe = (want == ON_DEMAND) | (after >= whole - 1e-9)
    done = work <= 0.0
    return np.where(done, NONE, np.where(safe, want, ON_DEMAND)).astype(np.int64)
