"""Data that only the report needs: every simulated plan, timelines of runs, swings."""

from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.plan import Machines, Spread

PlanKind = Literal["table", "baseline", "other"]


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """What a view of many plans shows of each."""

    machines: tuple[Machines, ...]  # at the first place of their failover list
    regions: int  # of the failover list
    fallback: tuple[Machines, ...]
    fallback_due_s: float | None  # the deadline that the fallback is started for
    checkpoint_path: str
    usd_per_hour: float
    gpus: int
    cost: Spread
    time: Spread


@dataclass(frozen=True, slots=True)
class SimulatedPlan(PlanFigures):
    """A plan with the cost and time of each simulated run, in the order of the paths."""

    kind: PlanKind
    number: int  # in the table, or among the baselines, from 1 on; 0 for others
    max_usd_per_hour: float
    overhead: float
    cost_usd: tuple[float, ...]  # of each run
    time_s: tuple[float, ...]
    # What the share of its runs that meet limits counts: less than 1 where its GPUs' memory may be
    # too small; of printed plans so that at the limits asked it gives the printed chance.
    weight: float = 1.0


Doing = Literal[
    "waiting",
    "start-up",
    "work",
    "lost work",
    "restart",
    "on-demand part",
    "fallback",
    "further cycles",
]


@dataclass(frozen=True, slots=True)
class Segment:
    """What a run does during an interval; seconds from the request for machines."""

    doing: Doing
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """One simulated run of a plan of the table, from the request to the last step."""

    number: int  # of the plan
    luck: str  # "lucky", "typical", "unlucky"
    share: float  # of the runs that take at most as long
    segments: tuple[Segment, ...]
    interruptions_s: tuple[float, ...]
    saves: int  # checkpoints written
    cycle_s: float  # from one to the next; NaN where nothing is saved
    cost_usd: float

    @property
    def time_s(self) -> float:
        """The time at which the job is done."""
        return self.segments[-1].end_s if self.segments else 0.0


@dataclass(frozen=True, slots=True)
class SwingEnd:
    """One end of an uncertain figure's range, and the leading plan's cost and time there."""

    factor: float  # of the figure assumed
    cost_usd: float  # mean
    time_s: float  # median
    chance: float  # all limits met


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The factor from which on the answer changes."""

    factor: float
    plan: int  # number of the plan that is better there; 0: the plan that leads misses a limit


@dataclass(frozen=True, slots=True)
class Swing:
    """Cost and time of the leading plan if one figure changes and all others stay."""

    what: str  # "speed of H100", "spot price of a3-highgpu-1g"
    why: str  # why the ends lie where they do
    low: SwingEnd
    high: SwingEnd
    break_evens: tuple[BreakEven, ...]  # the nearest on either side, if any


@dataclass(frozen=True, slots=True)
class ReportData:
    """What a report contains in addition to the answer; computed only for reports.

    The page can then show other deadlines, budgets and confidences without planning again.
    """

    simulated_plans: tuple[SimulatedPlan, ...]
    timelines: tuple[Timeline, ...]
    swings: tuple[Swing, ...]  # the widest first
    runs: int  # simulated of each plan of the table
    seed: int
