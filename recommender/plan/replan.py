"""Staying or moving: the rest of a running job on its own machines and on others, in s and USD."""

from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.plan import Plan, Spread

Verdict = Literal["stay", "move"]


@dataclass(frozen=True, slots=True)
class Remaining:
    """What remains on some machines: from now to the end of the job."""

    plan: Plan
    cost: Spread
    time: Spread
    chance: float  # that all limits are met, what is elapsed and spent counted in


@dataclass(frozen=True, slots=True)
class MovingCost:
    """The cost of a move; the figures of `Remaining` include all of it except your own work."""

    lost_work_s: float  # work since the last checkpoint, which is done again
    lost_usd: float
    at_once: float  # chance that the new machines are there when they are requested
    wait_p95_s: float  # 1 run in 20 waits longer for them
    start_s: float  # from machines to training: boot, set-up, restore
    start_usd: float
    transfer_usd: float  # of the newest checkpoint to where the new machines are
    effort_h: float  # hours of a person's work
    effort_usd: float


@dataclass(frozen=True, slots=True)
class PriceMove:
    """The price of the plan's machines, then and now."""

    instance_type: str
    market: str  # "spot" or "on_demand"
    region: str
    zone: str
    before_usd: float  # per hour of one machine
    now_usd: float | None  # None: no longer offered

    @property
    def change(self) -> float | None:
        """The relative change."""
        return None if self.now_usd is None else self.now_usd / self.before_usd - 1.0


@dataclass(frozen=True, slots=True)
class Replan:
    """Whether to stay on the current machines or to move, and the figures of both."""

    verdict: Verdict
    meets_limits: bool  # whether what is advised meets the limits with the requested chance
    stay: Remaining
    # The best other plan; None where no other meets what is left of them.
    move: Remaining | None = None
    moving: MovingCost | None = None
    saved_usd: float = 0.0  # by moving, on average; 0 where there is nothing to move to
    saved_s: float = 0.0  # of the median time
    cheaper: float = 0.0  # share of the runs in which moving costs less
    sooner: float = 0.0  # share of the runs in which it ends sooner
    net_usd: float = 0.0  # what moving is worth: money, time where that is sought, less the effort
    prices: tuple[PriceMove, ...] = ()  # of the plan's machines, those that moved
    binding: tuple[str, ...] = ()  # why no plan meets what is left of the limits

    @property
    def changed(self) -> bool:
        """Whether the user should look: moving pays, or prices moved."""
        return self.verdict == "move" or bool(self.prices)
