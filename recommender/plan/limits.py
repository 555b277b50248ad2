"""What the user requests: limits to meet, and offers that may be used.

`LIMITS` is the registry used by parsing, the search, infeasibility, sensitivity and every view. A
limit needs an entry there, a field in `Limits` and a flag, and nothing else (CONTRIBUTING.md, "A
new limit").
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import BOOKED

if TYPE_CHECKING:
    from recommender.arrays import Bools, Floats, Ints
    from recommender.plan.plan import Plan

MarketChoice = Literal["any", "spot", "on_demand", "reserved", "no_spot"]
# The markets of the catalog that a choice allows.
MARKETS: dict[MarketChoice, frozenset[str]] = {
    "any": frozenset(("on_demand", "spot", *BOOKED)),
    "spot": frozenset({"spot"}),
    "on_demand": frozenset({"on_demand"}),
    "reserved": frozenset(BOOKED),
    "no_spot": frozenset(("on_demand", *BOOKED)),
}
Failover = Literal["none", "zone", "region"]
Mix = Literal["auto", "yes", "no"]
CheckpointTo = Literal["auto", "object_store", "anchor", "memory_tier", "none"]

Goal = Literal["cost", "time", "frontier"]
Aim = Literal["auto", "cost", "time"]
Quantity = Literal["time", "usd", "usd_per_hour", "share"]  # how `inputs/limits` reads and writes


TOLERANCE = 1e-9  # 3 × 0.1 USD/h meet a limit of 0.3
OTHERS = "others"  # as a quota's family: all that the provider's other quotas do not name
SHORT_RUN_S = 1200.0  # a run of spot capacity of that length or less is short


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a running job, whose remaining work is planned."""

    done_share: float = 0.0
    elapsed_s: float = 0.0
    spent_usd: float = 0.0


class PathFigures(Protocol):
    """Figures of each simulated run that limits may bound."""

    @property
    def time_s(self) -> "Floats":
        """Seconds from the start of the first machine to the end of the job."""

    @property
    def cost_usd(self) -> "Floats":
        """Cost of the whole job."""


class MeanFigures(Protocol):
    """Means over simulated runs that limits may bound; shape (plans,)."""

    @property
    def overhead(self) -> "Floats":
        """Time for checkpoints, lost work and restarts, relative to the job's work."""


@dataclass(frozen=True, slots=True)
class Spent:
    """How much of a limit a running job has used, and the flag that states it."""

    flag: str
    of: Callable[[Progress], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit: its name, the figure it bounds, and how it is relaxed.

    `of_plan` is the figure of a plan that is compared with the limit: with tighter or wider values
    of it, and in the text for a plan that does not meet it.
    """

    name: str  # the flag without its dashes; its name in the JSON of a simulation
    field: str  # of `Limits`
    quantity: Quantity
    of_plan: "Callable[[Plan], float]"
    goal: Goal | None = None  # what is sought under it; the first one given decides
    aim: Aim  # what is sought to find a plan that needs little of it
    spent: Spent | None = None  # None: nothing is used up on the way
    sensitivity: bool = True  # whether an answer says what a tighter and a looser one is worth
    promise: tuple[str, str] | None = None  # "finish within", what follows the amount
    missed: str  # of a plan: "takes up to {}: misses the deadline"

    @property
    def flag(self) -> str:
        """The limit's flag."""
        return f"--{self.name}"

    def allows(self, value: float, most: float) -> bool:
        """Whether a figure meets the limit, up to rounding of summed prices."""
        return value <= most + TOLERANCE

    def spent_of(self, progress: Progress) -> float:
        """The used part of the limit."""
        return 0.0 if self.spent is None else self.spent.of(progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLimit(Limit):
    """A limit on a figure of each run, met in a share `confidence` of the runs."""

    of_paths: "Callable[[PathFigures], Floats]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit(Limit):
    """A limit on the price at any moment, which is known without simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanLimit(Limit):
    """A limit on the mean of a figure over all runs."""

    of_means: "Callable[[MeanFigures], Floats]"


DEADLINE = PathLimit(
    name="deadline",
    field="deadline_s",
    quantity="time",
    goal="cost",
    aim="time",
    spent=Spent("--elapsed", lambda progress: progress.elapsed_s),
    of_paths=lambda paths: paths.time_s,
    of_plan=lambda plan: plan.estimate.time.p95,
    promise=("finish within", ""),
    missed="takes up to {}: misses the deadline",
)
BUDGET = PathLimit(
    name="budget",
    field="budget_usd",
    quantity="usd",
    goal="time",
    aim="cost",
    spent=Spent("--spent", lambda progress: progress.spent_usd),
    of_paths=lambda paths: paths.cost_usd,
    of_plan=lambda plan: plan.estimate.cost.p95,
    promise=("cost at most", " in total"),
    missed="costs up to {}: over budget",
)
HOURLY = RateLimit(
    name="hourly",
    field="hourly_usd",
    quantity="usd_per_hour",
    goal="time",
    aim="cost",
    of_plan=lambda plan: plan.max_usd_per_hour,
    promise=("cost at most", ""),
    missed="costs up to {}: over the hourly limit",
)
MAX_OVERHEAD = MeanLimit(
    name="max-overhead",
    field="max_overhead",
    quantity="share",
    aim="auto",
    sensitivity=False,
    of_means=lambda means: means.overhead,
    of_plan=lambda plan: plan.estimate.overhead,
    missed="loses {} of the work to checkpoints and restarts: too high an overhead",
)
LIMITS: tuple[Limit, ...] = (DEADLINE, BUDGET, HOURLY, MAX_OVERHEAD)
PATH_LIMITS = tuple(limit for limit in LIMITS if isinstance(limit, PathLimit))
RATE_LIMITS = tuple(limit for limit in LIMITS if isinstance(limit, RateLimit))
MEAN_LIMITS = tuple(limit for limit in LIMITS if isinstance(limit, MeanLimit))

L = TypeVar("L", bound=Limit)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the whole job; `None` means no such limit.

    With a deadline the objective is the least expected cost; otherwise, with a budget or an hourly
    limit, the least time; without limits the whole frontier. All limits must hold together with
    probability `confidence`.
    """

    deadline_s: float | None = None
    budget_usd: float | None = None
    hourly_usd: float | None = None
    confidence: float = 0.95
    max_overhead: float | None = None  # of checkpoints, lost work, restarts; share of the work
    max_machines: int = 16
    objective: Aim = "auto"

    def at_every_moment(self, machines: "Ints | Floats", usd_per_hour: "Floats") -> "Bools":
        """Which clusters meet the limits that hold at every moment; (clusters,)."""
        most_usd = math.inf if self.hourly_usd is None else self.hourly_usd
        return (machines <= self.max_machines) & (usd_per_hour <= most_usd + TOLERANCE)

    @property
    def of_size(self) -> "Limits":
        """Those on the size of the cluster only."""
        return Limits(max_machines=self.max_machines)

    @property
    def goal(self) -> Goal:
        """The objective to minimise."""
        if self.objective != "auto":
            return self.objective
        return next((limit.goal for limit, _ in self.given(LIMITS) if limit.goal), "frontier")

    @property
    def by_value(self) -> bool:
        """Whether plans are weighed by total cost, because no objective was requested."""
        return self.objective == "auto" and self.goal == "time"

    def value(self, limit: Limit) -> float | None:
        """The value of one limit."""
        value: float | None = getattr(self, limit.field)
        return value

    def given(self, limits: Iterable[L]) -> Iterator[tuple[L, float]]:
        """The limits that are set, with their values."""
        values = ((limit, self.value(limit)) for limit in limits)
        return ((limit, value) for limit, value in values if value is not None)

    def with_value(self, limit: Limit, value: float | None) -> "Limits":
        """Return these limits with another value of one limit; None removes it."""
        return replace(self, **{limit.field: value})  # type: ignore[arg-type]

    def left_after(self, progress: Progress) -> "Limits":
        """Return what remains of these limits for a job that has started."""
        left = self
        for limit, value in self.given(LIMITS):
            left = left.with_value(limit, value - limit.spent_of(progress))
        return left


@dataclass(frozen=True, slots=True)
class GpuFilter:
    """One value of `--gpu`: a name (`A100:8` has a count per machine) or a minimum of memory."""

    name: str = ""
    per_machine: int | None = None
    memory_gib: float = 0.0


# What stands for an account's quotas where its age is all that is known of it.
ACCOUNTS = {"new": "default-new", "old": "granted"}


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """How much of a family an account may run at once in a market and region."""

    provider: str
    quota_family: str
    market: Literal["on_demand", "spot", "any"]
    region: str  # "" holds in every region
    unit: Literal["vcpu", "gpu", "machine"]
    amount: float  # inf: unlimited
    place: str = field(default="", compare=False)  # "quotas.csv, line 3": where its user wrote it


@dataclass(frozen=True, slots=True)
class OfferLaw:
    """A spot law that the user fitted to a trace of an offer and saved for it.

    Values that the trace did not determine (None) are those of the GPU's class.
    """

    provider: str
    place: str  # a zone, a region, or "*"
    machine: str  # an instance type, a GPU, or "GPU:count"
    run_mean_s: float  # of one machine
    run_sigma: float  # of ln(run)
    outage_sigma: float
    availability: float  # of one machine on a typical day
    zone_sd: float | None  # sd of the logit of that level
    availability_slope: float | None  # logits a gang of n loses per log2(1 + (n-1)/8)
    co_interruption: float | None
    short_runs: float | None  # share of runs of `SHORT_RUN_S` at most, where no gang was watched
    held: bool
    trace: str  # what it was fitted on
    seen: str  # "2023-02-15 to 2023-04-02"; "" if not known
    hours: float  # watched, all series together
    interruptions: int
    fitted: str  # date

    @property
    def offer(self) -> str:
        """The offer as typed: gcp:us-central1-a:H100."""
        return f"{self.provider}:{self.place}:{self.machine}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which offers may be used and how; the defaults suit a new user."""

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()  # ISO 3166: where machines must be
    zones: tuple[str, ...] = ()
    gpus: tuple[GpuFilter, ...] = ()
    instances: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()  # instance types, GPUs, regions or providers, with * as wildcard
    market: MarketChoice = "any"
    failover: Failover = "region"
    checkpoint_to: CheckpointTo = "auto"
    mix: Mix = "auto"  # auto: where quotas bind, the job is elastic or a proof is requested
    accelerator: str = "nvidia"
    arch: str = "x86_64"
    quoted_only: bool = False
    confidential: bool = False  # confidential VMs only; else none of them
    prices_as_quoted: bool = False  # no price drift in the spans
    mtbf_h: float | None = None  # mean run of one spot machine
    discounts: tuple[tuple[str, float], ...] = ()  # provider, share
    quotas: tuple[QuotaLimit, ...] = ()
    quotas_known: bool = False
    on_demand_obtainable: float | None = None  # --assume-on-demand
    trust_notice: bool = True
    spot_laws: tuple[OfferLaw, ...] = ()  # of the user's own traces
