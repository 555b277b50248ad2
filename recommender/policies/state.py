"""The interface of fallback policies: what they know of a market, what they see, what they choose.

A gang sits in one of Z zones at a time. Its modes are 0 for none, 1 + z for spot in zone z and
1 + Z + z for on demand in the region of zone z: with one zone NONE, SPOT and ON_DEMAND.

A tick t covers [t·tick, (t + 1)·tick). All windows (start moments) of one series are decided
together: every array below has shape (windows,). Times are seconds, prices USD per hour.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError

NONE, SPOT, ON_DEMAND = 0, 1, 2
NOWHERE = -1  # no checkpoint yet


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
class Offers:
    """What the zones that a job may use cost, and how often its policy is asked."""

    spot_usd_per_hour: Floats  # (zones,)
    on_demand_usd_per_hour: Floats  # (zones,) inf where none is sold
    move_usd: Floats  # (zones, zones) of the checkpoint, from row to column; 0 on the diagonal
    tick_s: float
    idle_usd_per_hour: float = 0.0

    def __post_init__(self) -> None:
        zones = len(self)
        if self.on_demand_usd_per_hour.shape != (zones,) or self.move_usd.shape != (zones, zones):
            raise UsageError(f"{zones} zones need as many prices, and moves between all of them")
        if not np.isfinite(self.on_demand_usd_per_hour).any():
            raise UsageError("no zone sells on-demand: a deadline cannot be met")

    @staticmethod
    def of_one(prices: ModePrices, tick_s: float) -> "Offers":
        """Those of one zone."""
        pair = np.array([prices.spot]), np.array([prices.on_demand])
        return Offers(*pair, np.zeros((1, 1)), tick_s, prices.idle)

    def __len__(self) -> int:
        return len(self.spot_usd_per_hour)

    @property
    def prices(self) -> ModePrices:
        """Those of the first zone."""
        pair = float(self.spot_usd_per_hour[0]), float(self.on_demand_usd_per_hour[0])
        return ModePrices(*pair, self.idle_usd_per_hour)

    @property
    def usd_by_mode(self) -> Floats:
        """USD per tick in the order of the modes."""
        usd = self.idle_usd_per_hour, *self.spot_usd_per_hour, *self.on_demand_usd_per_hour
        return np.array(usd) * self.tick_s / 3600.0

    def move_costs(self, place: Ints) -> Floats:
        """Price of starting in each zone from where the checkpoint is; (windows, zones)."""
        return np.where((place == NOWHERE)[:, None], 0.0, self.move_usd[np.maximum(place, 0)])


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What is known at the start of a tick, after an interruption took effect."""

    now_s: float  # since the start of the window
    mode: Ints
    done_s: Floats  # work done
    start_up_s: Floats  # of the running machine, still to pay
    zones: Bools  # (windows, zones) can spot be had in this tick?
    place: Ints  # zone of the checkpoint, NOWHERE before the first start

    @property
    def available(self) -> Bools:
        """Can spot be had in the first zone?"""
        return self.zones[:, 0]


Decide = Callable[[PolicyState], Ints]


class Policy(Protocol):
    """A fallback rule that chooses a mode for each tick.

    `begin` is called once per replay. The returned function holds the policy's memory and sees
    every tick in order. It may choose spot only while it is available.
    """

    @property
    def name(self) -> str:
        """Short name for tables."""

    def begin(self, task: Task, offers: Offers, windows: int) -> Decide:
        """The decisions of one replay."""
