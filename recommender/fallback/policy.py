"""Our fallback policy: the cheapest choice under a fitted availability model, never too late.

The state of the availability chain is not seen, only whether spot is there; the policy carries
the belief over ages and regimes forward (exact Bayes filter) and starts from the long-run
shares, so it needs no record of the hours before the job. Each tick it takes the least expected
cost to go among the choices after which on-demand can still keep the deadline.
"""

from dataclasses import dataclass, replace

import numpy as np

from recommender.errors import UsageError
from recommender.fallback.availability import Availability, Chain, chain, seen
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

GRACE = 0.25  # how much later than the deadline a run that may be late must end, as a share


@dataclass(frozen=True)
class SemiMarkov:
    """Least expected cost by dynamic programme; `confidence` 1.0 never misses the deadline.

    Below 1.0 the rest of the runs, drawn before they start by their number only, work towards a
    deadline that is a quarter later. The optimum under a limit on a probability is such a
    mixture of two policies (Altman, "Constrained Markov Decision Processes", 1999, ch. 3).
    Drawing by what the model expects saves no more on recorded markets, and there the chance
    is then as wrong as the model; drawn beforehand it is kept in any market.
    """

    law: Availability
    confidence: float = 1.0
    name: str = "cost-optimal"

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence <= 1.0:
            raise UsageError(f"confidence {self.confidence}: must be above 0 and at most 1")

    def table(self, task: Task, prices: Prices, tick_s: float) -> Table:
        """The policy as a table of costs to go."""
        return policy_table(chain(self.law, tick_s), task, prices, tick_s)

    def begin(self, task: Task, prices: Prices, tick_s: float, windows: int) -> Decide:
        """Belief and table of one replay."""
        law = chain(self.law, tick_s)

        def watch(task: Task) -> Decide:
            table = self.table(task, prices, tick_s)
            return _Watch(law, table, task, np.tile(law.usual, (windows, 1))).decide

        strict = watch(task)
        if self.confidence == 1.0:
            return strict
        lenient = watch(replace(task, deadline_s=(1.0 + GRACE) * task.deadline_s))
        number = np.arange(windows + 1) * (1.0 - self.confidence) + 1e-9
        chosen = np.diff(np.floor(number)) > 0.0  # one in twenty at 0.95, never more than that
        return lambda state: np.where(chosen, lenient(state), strict(state))


@dataclass
class _Watch:
    """The decisions of one replay: the belief moves with every tick seen."""

    law: Chain
    table: Table
    task: Task
    belief: Floats  # (windows, states) before the coming tick is seen

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
        here = seen(self.law, self.belief, available)
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
