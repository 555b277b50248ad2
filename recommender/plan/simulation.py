"""The results of simulating one plan: plain data that views print, in seconds and USD."""

from recommender.catalogs.frozen import dataclass
from recommender.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A simulated figure: its mean with the sampling error, and its quantiles."""

    mean: float
    error: float  # standard error of the mean
    p05: float
    p25: float
    p50: float
    p75: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class State:
    """A state of the job and its share of the time of a usual run."""

    name: str  # "waiting", "starting", "training", "saving", "restarting", "lost work", "fallback"
    share: float


@dataclass(frozen=True, slots=True)
class LimitChance:
    """A limit and the probability of meeting it."""

    limit: str  # "deadline", "budget", "hourly"
    value: float  # seconds, USD or USD per hour
    chance: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """The distribution of a figure; the outer bins include all values beyond them."""

    edges: tuple[float, ...]  # one more than the shares
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The first-order approximation of the plan, without simulated runs, for comparison."""

    law: str  # "inverse Gaussian", "fallback rule"
    time_s: float
    time_p95_s: float | None  # not known of a plan with a fallback
    cost_usd: float
    chance: float | None  # to meet the deadline; None without one, and with a fallback
    drift: float  # useful seconds per second on spot
    fallback_from_s: float | None  # mean moment at which the fallback takes over
    fallback_share: float  # of zones and speeds in which it is needed


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """One policy, simulated step by step on the same paths."""

    name: str  # "fallback rule", "two thresholds", "full policy"
    cost: Quantiles
    time: Quantiles
    in_time: float  # chance to meet the deadline
    in_time_error: float
    on_demand_h: float  # mean hours on the fallback, its queue included
    interruptions: float  # mean
    tick_s: float


@dataclass(frozen=True, slots=True)
class ExecutorRun:
    """The plan as an export target runs it, on the same paths."""

    name: str  # "as the plan counts", "skypilot, on-demand ends its list"
    cost: Quantiles
    time: Quantiles
    chance: float  # all limits met
    fallback_share: float  # of the runs in which on-demand machines take over


@dataclass(frozen=True, slots=True)
class Simulation:
    """One plan, simulated many times."""

    plan: Plan
    number: int  # of the plan in the answer; 0 for machines named by the user
    runs: int
    seed: int
    capacity: str  # where runs come from, in words
    cost: Quantiles
    time: Quantiles
    interruptions: Quantiles
    lost: Quantiles  # seconds of work done again
    states: tuple[State, ...]  # shares sum to one
    limit_chances: tuple[LimitChance, ...]
    chance: float  # all limits together
    chance_error: float
    fallback_share: float  # of the runs that need it
    closed_form: ClosedForm
    cost_histogram: Histogram
    time_histogram: Histogram
    notes: tuple[str, ...] = ()
    policies: tuple[PolicyRun, ...] = ()  # --policy
    executors: tuple[ExecutorRun, ...] = ()  # --executor
