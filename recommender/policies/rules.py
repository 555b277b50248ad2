"""Published fallback rules: on-demand, spot only, greedy and uniform progress.

Rules and tick arithmetic: Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under
Deadlines", NSDI'24; with them the published costs of the authors' repository come out exactly.
"""

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.policies.state import NONE, ON_DEMAND, SPOT, Decide, Offers, PolicyState, Task


@dataclass(frozen=True, slots=True)
class OnDemand:
    """On-demand from the first tick to the end."""

    name: str = "on-demand"

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """Every tick on-demand."""
        return lambda state: np.full(len(state.mode), ON_DEMAND)


@dataclass(frozen=True, slots=True)
class SpotOnly:
    """Spot whenever there is some, else wait; no deadline."""

    name: str = "spot-only"

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """Spot or nothing."""
        return lambda state: np.where(state.available, SPOT, NONE)


@dataclass(frozen=True, slots=True)
class Greedy:
    """The cheapest zone that is up, or wait, until the time left only covers the work left.

    Then on-demand to the end: the rule counts one start-up; a spot machine that runs then is kept.
    """

    name: str = "greedy"

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """Running spot is kept; the price of a move counts as spread over the work left."""
        count = len(offers)

        def decide(state: PolicyState) -> Ints:
            left = task.work_s - state.done_s
            hours = np.maximum(left, offers.tick_s)[:, None] / 3600.0
            move = offers.move_costs(state.place) / hours
            spot = np.where(state.zones, offers.spot_usd_per_hour + move, np.inf)
            rent = offers.on_demand_usd_per_hour + move
            on_spot = (state.mode > 0) & (state.mode <= count)
            want = np.where(state.zones.any(axis=1), 1 + spot.argmin(axis=1), NONE)
            want = np.where(on_spot, state.mode, want)
            kept = np.where(state.mode > 0, state.mode, 1 + count + rent.argmin(axis=1))
            due = whole_ticks(left + task.changeover_s, offers.tick_s)
            return np.where(due >= task.deadline_s - state.now_s, kept, want)

        return decide


@dataclass(frozen=True, slots=True)
class UniformProgress:
    """Keep the work done above the straight line from nothing to all of it at the deadline."""

    name: str = "uniform progress"

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """Behind the line without spot: on-demand, left only with a lead of two start-ups."""
        pace, tick_s = task.work_s / task.deadline_s, offers.tick_s

        def decide(state: PolicyState) -> Ints:
            now, done, mode = state.now_s, state.done_s, state.mode
            rest = np.where(done < now * pace, ON_DEMAND, NONE)
            want = np.where(state.available, SPOT, rest)
            lead = state.available & ((now + 2.0 * task.changeover_s) * pace < done)
            want = np.where((mode == ON_DEMAND) & ~lead, ON_DEMAND, want)
            left = tick_s * np.floor((task.deadline_s - now) / tick_s + 1e-9)
            work = task.work_s - done
            twice = whole_ticks(work + 2.0 * task.changeover_s, tick_s) >= left
            want = np.where(twice & (mode != SPOT), ON_DEMAND, want)
            once = whole_ticks(work + task.changeover_s, tick_s) >= left
            last_resort = np.where((mode == SPOT) & (state.start_up_s < 1e-3), SPOT, ON_DEMAND)
            return np.where(once, last_resort, want)

        return decide


def whole_ticks(seconds: Floats, tick_s: float) -> Floats:
    """Seconds rounded up to whole ticks."""
    return np.asarray(tick_s * np.ceil(seconds / tick_s - 1e-9))
