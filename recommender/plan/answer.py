"""An answer: its plans, the leading plans, the proof, and what would change it; plain data."""

from dataclasses import field
from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.effort import effort_of, reasons_of
from recommender.plan.plan import Plan
from recommender.plan.report_data import ReportData

Role = Literal["sensible", "cheapest", "fastest", "safest", "today"]
SAME_PLAN = "the same plan"  # what a changed limit does that changes nothing


@dataclass(frozen=True, slots=True)
class Faster:
    """The fastest plan of all, if it saves time at a price that few people would pay."""

    rank: int  # its number in the table
    more_usd: float  # than the fastest of the three, mean cost
    less_s: float  # than that, median time


@dataclass(frozen=True, slots=True)
class Pick:
    """One of the three leading plans."""

    role: Role
    rank: int  # its number in the table
    plan: Plan
    faster: Faster | None = None  # of the fastest: what is faster still
    ties: tuple[int, ...] = ()  # of the sensible one: numbers of plans that are as sensible

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, and what it takes to get it going: a few words each."""
        return reasons_of(self.plan)

    @property
    def effort_h(self) -> float:
        """Hours of a person's work: quotas to ask for, resuming, several machines."""
        return effort_of(self.plan).total_h


@dataclass(frozen=True, slots=True)
class Trio:
    """The sensible plan, the cheapest, and the fastest or (under a deadline) the safest.

    One plan may have several of these roles.
    """

    sensible: Pick
    cheapest: Pick
    third: Pick
    # The most sensible that a new account can start now, where the sensible plan needs a quota.
    today: Pick | None = None
    # Number of the most sensible plan of another cloud, should that of the sensible plan have no
    # machines left on demand; 0: none.
    elsewhere: int = 0
    # Which plan is described first and in full: the sensible one, unless an objective was stated.
    asked: Role = "sensible"

    @property
    def picks(self) -> tuple[Pick, ...]:
        """All picks, the leading one first."""
        picks = (self.sensible, *([self.today] if self.today else []), self.cheapest, self.third)
        first = next((pick for pick in picks if pick.role == self.asked), self.sensible)
        return (first, *(pick for pick in picks if pick is not first))


@dataclass(frozen=True, slots=True)
class SensitivityStep:
    """The effect of changing limits or what may be rented, found by planning again.

    What a gang costs is that of the best gang met, at most.
    """

    change: str  # "--deadline 9h"
    effect: str  # one sentence
    plan: Plan | None
    offers: bool = False  # whether other offers or quotas are allowed, under the same limits
    # Whether it is how little a limit has to rise for a plan without spot and guesses that is as
    # sensible as the one that leads.
    surer: bool = False

    @property
    def changes(self) -> bool:
        """Whether the change gives another answer."""
        return self.effect != SAME_PLAN


@dataclass(frozen=True, slots=True)
class Proof:
    """How certain the ranking is.

    "optimal": of the clusters of one machine type, every plan was simulated that the bound does not
    exclude.
    """

    status: Literal["optimal", "open"]
    gap: float  # best possible improvement left by a plan that was not simulated, as a share
    rated: int  # clusters of one machine type
    plans_simulated: int
    open_clusters: int  # that might be better if nothing of their work were lost
    mixes_rated: int = 0  # clusters of several types or markets


@dataclass(frozen=True, slots=True)
class ProgramShare:
    """The share of the work that the linear program gives to one configuration."""

    configuration: str  # "2x p4d.24xlarge spot"
    spot: bool
    share: float  # of the job's work


@dataclass(frozen=True, slots=True)
class LimitWorth:
    """The value of relaxing one limit a little."""

    limit: str  # "deadline", "quota L-417A185B"
    unit: str  # "hour", "USD", "point", "machine"
    gain: float  # of each unit: USD saved, or hours where time is the goal
    source: Literal["program", "planned again"]  # the second where the two differ by over 10 %
    more: float = 1.0  # units by which the limit was raised


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """The linear program of an answer: the share of the work of each configuration.

    What it uses, and the best plan, have simulated rates. A plan uses one cluster and its fallback;
    the program may divide the work further.
    """

    status: Literal["optimal", "infeasible", "unknown"]
    columns: int
    rows: int
    spot_share: float
    on_demand_share: float
    shares: tuple[ProgramShare, ...]
    plan_shares: tuple[ProgramShare, ...] = ()  # of the best plan: its machines and its fallback
    plan_share: float = 0.0  # of the work that the program gives to the best plan
    saving: float = 0.0  # by which share its division is better than the best plan alone
    worth: tuple[LimitWorth, ...] = ()
    conflict: tuple[str, ...] = ()  # rows that cannot be met together


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Why no plan meets the limits, and the closest limits that would work."""

    binding: tuple[str, ...]  # sentences: which limit, by how much
    relaxed: tuple[SensitivityStep, ...]
    fastest: Plan | None = None
    cheapest: Plan | None = None
    unexplored: str = ""  # what was not searched, and how to go on; "" where there is no plan


@dataclass(frozen=True, slots=True)
class PriceDate:
    """The age of the prices of one provider and market."""

    provider: str
    market: str
    as_of: str
    offers: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A printed figure, and the same figure from a new, larger simulation."""

    figure: str  # "cost_usd", "time_s", "chance"
    printed: float
    simulated: float
    error: float  # standard error of the difference: both figures are sampled


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of one plan's printed figures with simulated runs of another seed."""

    rank: int
    runs: int
    seed: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What to do when spot is lost: the full policy of a plan, by dynamic programming."""

    why_not: str = ""  # in words, where the programme cannot express the plan; the rest is empty
    fallback_usd: float = 0.0  # expected cost of the plan's fallback rule under the programme's law
    rule_usd: float | None = None  # of the two-threshold rule; None where there is none
    full_usd: float = 0.0  # least expected cost, were age and quality of the zone known
    tick_s: float = 0.0
    time_left_s: tuple[float, ...] = ()
    work_left_s: tuple[float, ...] = ()
    # By time left and work left: "wait", "spot", "on-demand"; None where it cannot be in time.
    spot_up: tuple[tuple[str | None, ...], ...] = ()
    spot_away: tuple[tuple[str | None, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The complete result of one request: plans, proof, sensitivity, warnings."""

    status: Literal["ok", "infeasible", "unknown"]  # unknown: none found, and none ruled out
    goal: Literal["cost", "time", "frontier"]
    plans: tuple[Plan, ...]
    baselines: tuple[Plan, ...]  # one GPU, one big machine, all on-demand, all spot
    compared: Plan | None  # --compare
    lower_bound_usd: float
    lower_bound_s: float
    sensitivity: tuple[SensitivityStep, ...]
    proof: Proof
    infeasible: Infeasible | None
    prices: tuple[PriceDate, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    more_plans: int
    more_regions: int
    seed: int
    inputs: dict[str, object] = field(default_factory=dict)  # echoed in JSON, never read
    checks: tuple[Check, ...] = ()  # --verify
    policy: PolicyFacts | None = None  # of the plan that --explain names
    program: ProgramFacts | None = None  # None where no cluster can train the job
    trio: Trio | None = None  # None where no plan meets the limits
    # Number of the best plan by the goal, of which the proof speaks: not the first where plans
    # are in the order of their cost including a person's time.
    best: int = 1
    by_value: bool = False
    report: ReportData | None = None  # if a report is requested; in no other format

    @property
    def sensible(self) -> Plan | None:
        """The plan that is worth its money, a person's time counted; None if there is no plan."""
        return None if self.trio is None else self.trio.sensible.plan

    @property
    def picks(self) -> tuple[Pick, ...]:
        """The plans that most people would take, the leading one first."""
        return () if self.trio is None else self.trio.picks

    @property
    def lead(self) -> int:
        """Number of the leading plan: the one to rent by default."""
        return self.picks[0].rank if self.picks else 1
