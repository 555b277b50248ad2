"""The interface of fallback policies: the state a policy sees, and the modes it can choose.

A tick t covers [t·tick, (t + 1)·tick). All windows (start moments) of one series are decided
together: every array below has shape (windows,). Times are seconds, prices USD per hour.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError

Modes = NDArray[np.int8]

NONE, SPOT, ON_DEMAND = np.int8(0), np.int8(1), np.int8(2)


@dataclass(frozen=True, slots=True)
class Task:
    """Work that must be done by a deadline; every start of a machine costs a changeover first."""

    work_s: float
    deadline_s: float
    changeover_s: float

    def __post_init__(self) -> None:
        if not (self.work_s > 0.0 and self.deadline_s > 0.0 and self.changeover_s >= 0.0):
            raise UsageError(f"{self}: work and deadline must be above 0, the changeover not below")

    @property
    def slack_s(self) -> float:
        """Spare time at the start if the work begins at once; negative: cannot be in time."""
        return self.deadline_s - self.work_s - self.changeover_s


@dataclass(frozen=True, slots=True)
class ModePrices:
    """USD per hour while on spot, on-demand and while waiting (0 unless something stays rented)."""

    spot: float
    on_demand: float
    idle: float = 0.0

    @property
    def by_mode(self) -> Floats:
        """Prices in the order of the modes none, spot, on-demand."""
        return np.array([self.idle, self.spot, self.on_demand])


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What is known at the start of a tick, after an interruption took effect."""

    now_s: float  # since the start of the window
    mode: Modes
    done_s: Floats  # work done
    start_up_s: Floats  # of the running machine, still to pay
    available: Bools  # can spot be had in this tick?


Decide = Callable[[PolicyState], Modes]


class Policy(Protocol):
    """A fallback rule that chooses none, spot or on-demand for each tick.

    `begin` is called once per replay. The returned function holds the policy's memory and sees
    every tick in order. It may choose spot only while it is available.
    """

    @property
    def name(self) -> str:
        """Short name for tables."""

    def begin(self, task: Task, prices: ModePrices, tick_s: float, windows: int) -> Decide:
        """The decisions of one replay."""
