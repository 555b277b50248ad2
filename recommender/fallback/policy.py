"""Our fallback policy: the cheapest choice under a fitted availability model, never too late.

The state of the availability chain is not seen, only whether spot is there; the policy carries
the belief over ages and regimes forward (exact Bayes filter) and starts from the long-run
shares, so it needs no record of the hours before the job. Each tick it takes the least expected
cost to go among the choices after which on-demand can still keep the deadline.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recommender.errors import UsageError
from recommender.fallback.availability import Availability, Chain, chain
from recommender.fallback.table import NEVER, Table, policy_table
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

GRACE = 0.1  # how much later than the deadline a run that is allowed to be late may end
# Share of the allowance that the model may plan to use: the rest is for the model's own error.
# Chosen on first halves.
_PLANNED_SHARE = 0.6
_GOLDEN = 0.6180339887498949  # multiples of it fill the unit interval evenly
_COARSE_TICKS = 120  # of the tables that look for the price of being late
_SEARCHES = 7


@dataclass(frozen=True)
class SemiMarkov:
    """Least expected cost by dynamic programme; `confidence` 1.0 never misses the deadline.

    Below 1.0 at most the rest of the runs (by the model, with a margin) end later, by at most a
    tenth of the deadline. The chance to be late jumps with the price put on it, so a share of
    the runs follows a lenient table and the others a strict one: the optimum of a problem with
    a constraint on a probability is such a mixture of two policies (Altman, "Constrained Markov
    Decision Processes", 1999, ch. 3). Which run is which depends on its number only.
    """

    law: Availability
    confidence: float = 1.0
    name: str = "cost-optimal"

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence <= 1.0:
            raise UsageError(f"confidence {self.confidence}: must be above 0 and at most 1")

    def table(self, task: Task, prices: Prices, tick_s: float) -> Table:
        """The policy that is never late, as a table of costs to go."""
        return policy_table(chain(self.law, tick_s), task, prices, tick_s)

    def lenient(self, task: Task, prices: Prices, tick_s: float) -> tuple[Table, float]:
        """The table of the runs that may be late, and how many of them there are (a share)."""
        price = price_of_lateness(self.law, task, prices, 1.0 - self.confidence)
        grace = int(GRACE * task.deadline_s / tick_s)
        law = chain(self.law, tick_s)
        return policy_table(law, task, prices, tick_s, price.late_usd, grace), price.share

    def begin(self, task: Task, prices: Prices, tick_s: float, windows: int) -> Decide:
        """Belief and table of one replay."""
        law = chain(self.law, tick_s)

        def watch(table: Table) -> Decide:
            return _Watch(law, table, task, np.tile(law.usual, (windows, 1))).decide

        strict = watch(self.table(task, prices, tick_s))
        if self.confidence == 1.0:
            return strict
        table, share = self.lenient(task, prices, tick_s)
        lenient, chosen = watch(table), np.arange(windows) * _GOLDEN % 1.0 < share
        return lambda state: np.where(chosen, lenient(state), strict(state))


@dataclass
class _Watch:
    """The decisions of one replay: the belief moves with every tick seen."""

    law: Chain
    table: Table
    task: Task
    belief: Floats  # (windows, states) before the coming tick is seen

    @cached_property
    def hard_s(self) -> float:
        """The deadline that is always kept."""
        return self.table.ticks * self.table.tick_s

    def decide(self, state: State) -> Modes:
        """The least expected cost among what is safe; on-demand where nothing is."""
        belief = self._see(state.available)
        left = self.table.ticks - round(state.now_s / self.table.tick_s)
        if left <= 0:
            return np.where(state.mode == SPOT, SPOT, ON_DEMAND)
        spare = left * self.table.tick_s - (self.task.work_s - state.done_s)
        usd = np.stack([self._usd(left, mode, belief, spare, state) for mode in range(3)])
        usd[NONE] = np.where(self._safe(spare - self.table.tick_s), usd[NONE], np.inf)
        usd[SPOT] = np.where(self._spot_safe(state, left), usd[SPOT], np.inf)
        usd[ON_DEMAND] = np.minimum(usd[ON_DEMAND], float(NEVER))
        # Ties go to spot, then to waiting.
        order = np.array([SPOT, NONE, ON_DEMAND])
        return np.asarray(order[usd[order].argmin(axis=0)])

    def _see(self, available: Bools) -> Floats:
        here = np.where(self.law.up[None] == available[:, None], self.belief, 0.0)
        total = here.sum(axis=1, keepdims=True)
        sides = (self.law.up[None] == available[:, None]) * self.law.usual
        here = np.where(total > 0.0, here, sides + 1e-300)
        here /= here.sum(axis=1, keepdims=True)
        self.belief = here @ self.law.step
        return here

    def _usd(self, left: int, mode: int, belief: Floats, spare: Floats, state: State) -> Floats:
        """Expected cost to go when a mode runs in the coming tick."""
        pay = np.where(state.mode == mode, state.start_up_s, self.task.changeover_s)
        slack = spare if mode == NONE else spare - pay
        return self.table.at(left, np.int8(mode), belief, slack)

    def _safe(self, spare: Floats) -> Bools:
        """Can on-demand, started in the next tick, still end in time?"""
        return whole_ticks(self.task.changeover_s - spare, self.table.tick_s) <= 1e-6

    def _spot_safe(self, state: State, left: int) -> Bools:
        """Can it, when spot runs for one tick and then vanishes?"""
        tick_s = self.table.tick_s
        pay = np.where(state.mode == SPOT, state.start_up_s, self.task.changeover_s)
        work = self.task.work_s - state.done_s - np.maximum(tick_s - pay, 0.0)
        spare = (left - 1) * tick_s - work
        return state.available & (self._safe(spare) | (work <= DONE_S))


@dataclass(frozen=True, slots=True)
class Lateness:
    """What being late costs in the lenient table, and the share of runs that follow it."""

    late_usd: float
    share: float


def price_of_lateness(law: Availability, task: Task, prices: Prices, allowed: float) -> Lateness:
    """The mixture of a lenient and a strict table that is late as often as planned.

    The least expected cost V(p) is concave in the price p of being late and its slope is the
    chance to be late (envelope theorem), so a bisection on a coarse grid finds the price
    without following the policy forward.
    """
    tick_s = task.deadline_s / _COARSE_TICKS
    coarse, grace = chain(law, tick_s), int(GRACE * _COARSE_TICKS)

    def expected(late_usd: float) -> float:
        table = policy_table(coarse, task, prices, tick_s, late_usd, grace)
        return expected_usd(table, coarse, task)

    # Being late spares at most the on-demand hours that fit before the hard deadline.
    low, high = 0.0, prices.on_demand * GRACE * task.deadline_s / 3600.0
    step, planned, chance = 0.02 * high, _PLANNED_SHARE * allowed, 1.0
    for _ in range(_SEARCHES):
        middle = 0.5 * (low + high)
        slope = (expected(middle + step) - expected(middle)) / step
        if slope > planned:
            low, chance = middle, slope
        else:
            high = middle
    return Lateness(low, min(1.0, planned / chance))


def expected_usd(table: Table, law: Chain, task: Task) -> float:
    """Least expected cost of a job that starts at a random moment, seeing whether spot is there."""
    total = 0.0
    spare = np.array([table.ticks * table.tick_s - task.work_s])
    for side in (False, True):
        share = float(law.usual[law.up == side].sum())
        belief = np.where(law.up == side, law.usual, 0.0)[None] / max(share, 1e-300)
        modes = (NONE, SPOT, ON_DEMAND) if side else (NONE, ON_DEMAND)
        after = [spare if mode == NONE else spare - task.changeover_s for mode in modes]
        usd = [table.at(table.ticks, m, belief, s) for m, s in zip(modes, after, strict=True)]
        total += share * float(np.min(usd))
    return total
