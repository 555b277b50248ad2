"""The cost-optimal fallback policy under a fitted availability model, over one zone and several.

The state of the availability chain is not seen, only whether spot is there; the policy carries
the belief over ages and regimes forward (exact Bayes filter) and starts from the long-run
shares, so it needs no record of the hours before the job. Each tick it takes the least expected
cost to go among the choices after which on-demand can still meet the deadline.

Every zone is watched all the time, by its own exact filter; what they say together weighs the
cheapest costs to go of a joint programme over few states per zone (`policy_table.py`). Each tick
the cheapest choice is taken after which on-demand can still meet the deadline.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.errors import UsageError
from recommender.policies.availability import (
    AggregatedStates,
    Availability,
    Chain,
    aggregate_states,
    belief_after_look,
    chain,
)
from recommender.policies.policy_table import (
    NEVER,
    PolicyTable,
    ZonePrices,
    first_cheapest,
    joint_table,
    policy_table,
    size,
)
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

GRACE = 0.25  # how much later than the deadline a run that may be late must end, as a share
# Chosen on first halves of the traces only (fitted on one quarter, judged on another).
MAX_ZONES = 5  # that the programme sees at once
MAX_UPS = 3  # lumps of runs per zone
GRID_S = 600.0  # of the table, where the ticks of the record are finer
MAX_CELLS = 40_000_000  # of the table: 160 MB


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

    def table(self, task: Task, prices: ModePrices, tick_s: float) -> PolicyTable:
        """The policy as a table of costs to go."""
        return policy_table(chain(self.law, tick_s), task, prices, tick_s)

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """Belief and table of one replay."""
        law = chain(self.law, offers.tick_s)

        def watch(task: Task) -> Decide:
            table = self.table(task, offers.prices, offers.tick_s)
            return _Watch(law, table, task, np.tile(law.usual, (windows, 1))).decide

        strict = watch(task)
        if self.confidence == 1.0:
            return strict
        lenient = watch(replace(task, deadline_s=(1.0 + GRACE) * task.deadline_s))
        number = np.arange(windows + 1) * (1.0 - self.confidence) + 1e-9
        chosen = np.diff(np.floor(number)) > 0.0  # one in twenty at 0.95, never more than that
        return lambda state: np.where(chosen, lenient(state), strict(state))


def _in_time(task: Task, spare: Floats, tick_s: float) -> Bools:
    """Can on-demand, started in the next tick, still end in time?"""
    return whole_ticks(task.changeover_s - spare, tick_s) <= 1e-6


def _spot_safe(task: Task, state: PolicyState, pay: Floats, left_s: float, tick_s: float) -> Bools:
    """Can it, when spot runs for one tick and then vanishes?"""
    work = task.work_s - state.done_s - np.maximum(tick_s - pay, 0.0)
    return _in_time(task, left_s - tick_s - work, tick_s) | (work <= DONE_S)


@dataclass
class _Watch:
    """The decisions of one replay: the belief moves with every tick seen."""

    law: Chain
    table: PolicyTable
    task: Task
    belief: Floats  # (windows, states) before the coming tick is seen

    def decide(self, state: PolicyState) -> Ints:
        """The least expected cost among what is safe; on-demand where nothing is."""
        belief = self._see(state.available)
        left = self.table.ticks - round(state.now_s / self.table.tick_s)
        if left <= 0:
            return np.where(state.mode == SPOT, SPOT, ON_DEMAND)
        spare = left * self.table.tick_s - (self.task.work_s - state.done_s)
        usd = np.stack([self._usd(left, mode, belief, spare, state) for mode in range(3)])
        tick_s, on_spot = self.table.tick_s, state.mode == SPOT
        usd[NONE] = np.where(_in_time(self.task, spare - tick_s, tick_s), usd[NONE], np.inf)
        pay = np.where(on_spot, state.start_up_s, self.task.changeover_s)
        there = state.available & _spot_safe(self.task, state, pay, left * tick_s, tick_s)
        usd[SPOT] = np.where(there, usd[SPOT], np.inf)
        usd[ON_DEMAND] = np.minimum(usd[ON_DEMAND], float(NEVER))
        # Ties go to spot, then to waiting.
        order = np.array([SPOT, NONE, ON_DEMAND])
        return np.asarray(order[first_cheapest(usd[order])])

    def _see(self, available: Bools) -> Floats:
        here = belief_after_look(self.law, self.belief, available)
        self.belief = here @ self.law.step
        return here

    def _usd(
        self, left: int, mode: int, belief: Floats, spare: Floats, state: PolicyState
    ) -> Floats:
        """Expected cost to go when a mode runs in the coming tick."""
        pay = np.where(state.mode == mode, state.start_up_s, self.task.changeover_s)
        slack = spare if mode == NONE else spare - pay
        return self.table.at(left, mode, belief, slack)


def expected_usd(table: PolicyTable, law: Chain, task: Task) -> float:
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


@dataclass(frozen=True, slots=True)
class MultiZone:
    """Least expected cost over several zones under a fitted law for each; never too late.

    Of more than five zones those enter whose hour costs least, outages filled by on-demand; the
    cheapest of them get most states.
    """

    laws: tuple[Availability, ...]  # of each zone, in the order of the market
    name: str = "multi-region"

    def begin(self, task: Task, zones: Offers, windows: int) -> Decide:
        """Beliefs and table of one replay."""
        if len(self.laws) != len(zones):
            raise UsageError(f"{len(self.laws)} laws for {len(zones)} zones: one each")
        chains = [chain(law, zones.tick_s) for law in self.laws]
        grid_s = zones.tick_s * max(1, round(GRID_S / zones.tick_s))
        kept = chosen(zones, [each.share_up for each in chains])
        small = _aggregated([self.laws[zone] for zone in kept], zones, kept, task, grid_s)
        rent = int(zones.on_demand_usd_per_hour.argmin())
        places = [*kept, rent]
        usd = np.append(zones.spot_usd_per_hour[kept], zones.on_demand_usd_per_hour[rent])
        offers = ZonePrices(usd, zones.move_usd[np.ix_(places, places)])
        table = joint_table(small, offers, task, grid_s)
        belief = [np.tile(each.usual, (windows, 1)) for each in chains]
        return _WatchZones(task, zones, chains, kept, small, table, rent, belief).decide


def chosen(zones: Offers, share_up: Sequence[float]) -> list[int]:
    """The zones that the programme sees: cheapest per hour, with on-demand in outages."""
    up = np.array(share_up)
    hour = up * zones.spot_usd_per_hour + (1.0 - up) * zones.on_demand_usd_per_hour.min()
    return sorted(int(zone) for zone in np.argsort(hour, kind="stable")[:MAX_ZONES])


def _aggregated(
    laws: Sequence[Availability],
    zones: Offers,
    kept: Sequence[int],
    task: Task,
    grid_s: float,
) -> list[AggregatedStates]:
    """States for each zone: two, and one more at a time for the cheapest while there is room."""
    ticks, spare = size(task, grid_s)
    room = MAX_CELLS / ((ticks + 1) * (spare + 1) * (len(kept) + 2))
    ups = np.ones(len(kept), dtype=np.int64)
    cheapest = np.argsort(zones.spot_usd_per_hour[list(kept)], kind="stable")
    for most in range(2, MAX_UPS + 1):
        for zone in cheapest:
            more = np.where(np.arange(len(kept)) == zone, most, ups)
            ups = more if np.prod(more + 1) <= room else ups
    return [aggregate_states(chain(law, grid_s), int(n)) for law, n in zip(laws, ups, strict=True)]


@dataclass
class _WatchZones:
    """The decisions of one replay: all beliefs move with every tick seen."""

    task: Task
    zones: Offers
    chains: list[Chain]
    kept: list[int]
    small: list[AggregatedStates]
    table: PolicyTable
    rent: int  # zone in whose region on-demand is cheapest
    belief: list[Floats] = field(default_factory=list)  # per zone (windows, states), before a look

    def decide(self, state: PolicyState) -> Ints:
        """The least expected cost among what is safe; on-demand where nothing is."""
        joint = self._see(state.zones)
        count, tick_s = len(self.zones), self.zones.tick_s
        rent = 1 + count + self.rent
        left_s = tick_s * int((self.task.deadline_s - state.now_s) / tick_s + 1e-9)
        if left_s <= 0.0:
            return np.where(state.mode > 0, state.mode, rent)
        spare = left_s - (self.task.work_s - state.done_s)
        left = left_s / self.table.tick_s
        idle = self.table.at(left, 0, joint, spare)
        usd = [np.where(_in_time(self.task, spare - tick_s, tick_s), idle, np.inf)]
        move = self.zones.move_costs(state.place)
        for number, zone in enumerate([*self.kept, self.rent], 1):
            mode = rent if number > len(self.kept) else 1 + zone
            same = state.mode == mode
            pay = np.where(same, state.start_up_s, self.task.changeover_s)
            cost = self.table.at(left, number, joint, spare - pay)
            cost = cost + np.where(same, 0.0, move[:, zone])
            if mode != rent:
                safe = _spot_safe(self.task, state, pay, left_s, tick_s)
                there = state.zones[:, zone] & safe
                cost = np.where(there, cost, np.inf)
            usd.append(np.minimum(cost, float(NEVER)) if mode == rent else cost)
        modes = np.array([0, *(1 + zone for zone in self.kept), rent])
        return np.asarray(modes[first_cheapest(np.stack(usd))])

    def _see(self, available: Bools) -> Floats:
        """What all zones together may be in; (windows, joint states)."""
        joint = np.ones((len(available), 1))
        for zone, law in enumerate(self.chains):
            if zone not in self.kept:
                continue
            here = belief_after_look(law, self.belief[zone], available[:, zone])
            self.belief[zone] = here @ law.step
            lump = here @ self.small[self.kept.index(zone)].member
            joint = (joint[:, :, None] * lump[:, None, :]).reshape(len(available), -1)
        return joint
