"""Published fallback rules: on-demand, spot only, greedy and uniform progress.

Rules and tick arithmetic: Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under
Deadlines", NSDI'24; with them the published costs of the authors' repository come out exactly.
"""

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.policies.state import (
    NONE,
    ON_DEMAND,
    SPOT,
    Decide,
    ModePrices,
    Modes,
    PolicyState,
    Task,
)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """On-demand from the first tick to the end."""

    name: str = "on-demand"

    def begin(self, task: Task, prices: ModePrices, tick_s: float, windows: int) -> Decide:
        """Every tick on-demand."""
        return lambda state: np.full(len(state.mode), ON_DEMAND)


@dataclass(frozen=True, slots=True)
class SpotOnly:
    """Spot whenever there is some, else wait; no deadline."""

    name: str = "spot-only"

    def begin(self, task: Task, prices: ModePrices, tick_s: float, windows: int) -> Decide:
        """Spot or nothing."""
        return lambda state: np.where(state.available, SPOT, NONE)


@dataclass(frozen=True, slots=True)
class Greedy:
    """Spot or wait, until the time left only covers the work left; then on-demand to the end."""

    name: str = "greedy"

    def begin(self, task: Task, prices: ModePrices, tick_s: float, windows: int) -> Decide:
        """The fallback rule counts one start-up; a spot machine that runs then is kept."""

        def decide(state: PolicyState) -> Modes:
            left = task.work_s - state.done_s + task.changeover_s
            urgent = whole_ticks(left, tick_s) >= task.deadline_s - state.now_s
            last_resort = np.where(state.mode == SPOT, SPOT, ON_DEMAND)
            return np.where(urgent, last_resort, np.where(state.available, SPOT, NONE))

        return decide


@dataclass(frozen=True, slots=True)
class UniformProgress:
    """Keep the work done above the straight line from nothing to all of it at the deadline."""

    name: str = "uniform progress"

    def begin(self, task: Task, prices: ModePrices, tick_s: float, windows: int) -> Decide:
        """Behind the line without spot: on-demand, left only with a lead of two start-ups."""
        pace = task.work_s / task.deadline_s

        def decide(state: PolicyState) -> Modes:
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
