"""Why a machine is not recommended: its rank, and what would make it the best."""

from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.plan import Plan

# First: it is the best. Behind: it meets the limits, and others are better. The others say why no
# plan of it enters: its offers, its memory or speed, the limits.
Standing = Literal["first", "behind", "not offered", "not allowed", "cannot train", "over limits"]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The smallest change of one figure that makes a machine as good as the best plan."""

    factor: float  # of its price, or of its speed
    before: float  # USD per hour of one machine, or seconds per step
    after: float
    plan: Plan  # on this machine, with the change
    wins: bool  # it leads when everything is planned again a little beyond it
    loses: bool  # and does not a little before it


@dataclass(frozen=True, slots=True)
class MachineStanding:
    """The rank of a machine among all plans of a question."""

    machine: str
    standing: Standing
    reasons: tuple[str, ...]  # with the number that decides; empty where it meets the limits
    plan: Plan | None = None  # the best on this machine; the nearest where it meets no limits
    best: Plan | None = None  # the best of all by the goal
    rank: int | None = None  # of it among the plans looked at; None: behind all of them
    compared: int = 0  # plans looked at
    price: BreakEven | None = None  # None: no price makes it win, or none was sought
    speed: BreakEven | None = None
