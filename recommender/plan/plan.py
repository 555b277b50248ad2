"""Plans and answers: what the planner returns and every view prints.

Everything here is plain data, in seconds, bytes, USD; views format it.
"""

import math
from dataclasses import field
from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.plan.evidence import Evidence

OWN_TRACE = "your trace"  # begins the basis of a spot law of the user's own


@dataclass(frozen=True, slots=True)
class Machines:
    """`count` machines of one type in one market."""

    count: int
    provider: str
    instance_type: str
    market: str  # "spot" or "on_demand"
    gpu: str
    gpus: int  # per machine
    region: str
    zone: str
    usd_per_hour: float  # of one machine
    price_kind: str  # kind of the offer: quote, composed, derived
    price_flag: str
    as_of: str
    confidential: bool = False  # a confidential VM: a security type of its own at launch


@dataclass(frozen=True, slots=True)
class Site:
    """One entry of a failover list: where the spot machines are asked for, in order."""

    region: str
    zone: str
    usd_per_hour: float  # of one machine
    price_flag: str


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Where checkpoints go, how often, and what they cost in time."""

    path: str  # "object_store", "anchor", "memory_tier", "none"
    interval_s: float  # NaN where nothing is saved
    stall_s: float  # training stops
    transfer_s: float  # until the checkpoint is safe
    restore_s: float
    notice_s: float
    notice_covers: bool  # a save fits into the provider's notice
    as_good_s: tuple[float, float]  # shortest and longest usual interval nearly as good
    machines: tuple[Machines, ...] = ()  # anchors or memory tier


@dataclass(frozen=True, slots=True)
class AtFirstOutage:
    """A plan whose fallback takes over once no listed place has spot, whatever time is left.

    So do schedulers that know of no deadline, where on-demand machines end their list (SkyPilot).
    """

    cost_usd: float  # mean
    time_s: float  # median
    chance: float  # all limits kept
    probability: float  # share of the runs in which it takes over


@dataclass(frozen=True, slots=True)
class Fallback:
    """What is rented when spot capacity stays away too long."""

    machines: tuple[Machines, ...]
    usd_per_hour: float
    speed: float  # relative to the spot cluster
    reserve_s: float  # start when time left = time to finish on the fallback + this
    probability: float  # share of runs that need it
    work_share: float = 0.0  # of the job's work that it does, on average
    # What other rules would make of it, of the plans that are shown in a table. A cheaper one, not
    # in the figures: slack per second of work left above which to wait for spot, and above which
    # to go back to it; None where the tables have none.
    wait_above: float | None = None
    back_above: float | None = None
    at_first_outage: AtFirstOutage | None = None  # None: its cluster is a mix
    chance_without: float = math.nan  # all limits kept, if nobody started it


TAIL, TAIL_S = 4.0, 6 * 3600.0  # times the median, and seconds above it, where a tail begins


@dataclass(frozen=True, slots=True)
class Spread:
    """What people are told of a figure: median and 5-95 % span; and the means behind the order."""

    # Of all runs, also of the few that wait for weeks, so it may lie beyond p95. Plans are ordered
    # by that of the cost.
    mean: float = field(metadata={"json": "mean_of_all_runs"})
    p05: float
    p50: float = field(metadata={"json": "median"})
    p95: float
    # Mean of the runs from p05 to p95: where time is the goal, plans are ordered by it.
    typical: float = field(metadata={"json": "mean_of_middle_90"})
    p99: float = math.nan  # 1 run in 100 is beyond it

    @property
    def has_tail(self) -> bool:
        """Of a time: whether 1 run in 20 takes longer by far than a speed half as fast explains."""
        return self.p95 >= TAIL * self.p50 and self.p95 - self.p50 >= TAIL_S


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where the time of a usual run goes: means over the tenth of the runs around the median."""

    start_up_s: float
    work_s: float
    checkpoint_s: float
    lost_s: float  # lost work done again
    restart_s: float
    waiting_s: float


@dataclass(frozen=True, slots=True)
class StepSplit:
    """One optimiser step, term by term."""

    step_s: float
    compute_s: float
    recompute_s: float
    exposed_network_s: float
    exposed_intra_s: float
    input_s: float
    micro_batch: int
    accumulation: int
    sharding: str  # label of the strategy: "fsdp", or degrees: "TP 8 × PP 4 × DP 2"
    memory_gib: float  # of one GPU
    memory_parts_gib: tuple[tuple[str, float], ...] = ()
    bubble_s: float = 0.0  # stages of a pipeline that wait for its first and last micro-batch

    @property
    def cuts_network(self) -> bool:
        """Whether GPUs share a network, so that the label is made of degrees."""
        return " " in self.sharding


@dataclass(frozen=True, slots=True)
class BillItem:
    """One line of the expected bill."""

    item: str
    usd: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan is expected to cost and take, as distributions."""

    cost: Spread
    time: Spread
    chance: float  # all limits kept
    chance_if_speed_known: float
    interruptions: float
    overhead: float  # checkpoints, lost work, restarts, relative to the job's work
    split: TimeSplit
    step: StepSplit
    bill: tuple[BillItem, ...]
    speed_sigma: float
    price_sigma: float


@dataclass(frozen=True, slots=True)
class Need:
    """A quota this plan needs in a region, by the provider's own name."""

    name: str
    amount: float
    unit: str
    region: str
    new_accounts: float | None = None  # what a new account starts with; None = unknown
    yours: float | None = None  # what the user reports theirs is; None = not reported
    fallback: bool = False  # needed by the fallback alone


@dataclass(frozen=True, slots=True)
class SpotFacts:
    """The availability of a plan's spot machines, as modelled, for its explanation."""

    name: str  # of the spot class: "h100"; of an own trace
    run_mean_s: float  # of one machine
    gang_run_mean_s: float  # of the whole cluster
    outage_mean_s: float  # of a middling zone of the class
    availability: float  # of that zone: share of the time the whole cluster's capacity is there
    co_interruption: float
    basis: str  # "measured", "transferred", "--mtbf", "your trace" (and of how many zones)
    as_of: str
    # What the plan's own paths met, in good zones and bad, from one place to the next:
    waiting_p50_s: float  # of a whole run
    waiting_p95_s: float
    never_waits: float  # share of the runs


@dataclass(frozen=True, slots=True)
class OnDemandFacts:
    """How far a plan's chance hangs on on-demand capacity, by its own simulated runs."""

    needed: float  # share of the runs that start on-demand machines, the fallback's included
    at_once: float  # chance that they are there at once, at a moment like any other
    late: float  # share of the runs in which they are not there within an hour
    wait_p95_s: float  # 1 in 20 of the runs that start them waits longer
    chance_if_at_once: float  # all limits kept, were there no wait for them


@dataclass(frozen=True, slots=True)
class Plan:
    """What to rent, where, and what to do when spot goes away."""

    machines: tuple[Machines, ...]
    sites: tuple[Site, ...]  # failover list of the spot machines; empty without spot
    checkpointing: Checkpointing
    fallback: Fallback | None
    estimate: Estimate
    usd_per_hour: float  # list price while everything runs
    max_usd_per_hour: float  # ever paid: at the most expensive place, fees and fallback included
    gpus: int
    flopp: float  # job FLOP per USD at list price
    needs: tuple[Need, ...]
    saving: float | None = None  # share saved against the best all-on-demand plan
    labels: tuple[str, ...] = ()  # "knee", "best of aws", "one GPU", "all on-demand", ...
    notes: tuple[str, ...] = ()
    spot: SpotFacts | None = None
    evidence: Evidence | None = None  # what its figures rest on
    # Of the draws of what is uncertain of all plans of the table, in which it is the best by the
    # table's goal; None beside the table.
    best_share: float | None = None
    on_demand: OnDemandFacts | None = None  # None: it starts no such machines


Role = Literal["sensible", "cheapest", "fastest", "safest"]


@dataclass(frozen=True, slots=True)
class Faster:
    """The fastest plan of all, where it saves time at a price that few pay."""

    rank: int  # its number in the table
    more_usd: float  # than the fastest of the three, mean cost
    less_s: float  # than that, median time


@dataclass(frozen=True, slots=True)
class Pick:
    """One of the three."""

    role: Role
    rank: int  # its number in the table
    plan: Plan
    reasons: tuple[str, ...] = ()  # why, and what it takes to get it going: a few words each
    effort_h: float = 0.0  # hours of a person's work: quotas to ask for, resuming, several machines
    faster: Faster | None = None  # of the fastest: what is faster still


@dataclass(frozen=True, slots=True)
class Trio:
    """What most people would rent, the cheapest, and the fastest or, under a deadline, the safest.

    One plan may stand for several.
    """

    sensible: Pick
    cheapest: Pick
    third: Pick
    # Whose plan is told first and in full: the sensible one, unless an objective was asked for.
    asked: Role = "sensible"

    @property
    def picks(self) -> tuple[Pick, ...]:
        """All three, the one that leads first."""
        three = (self.sensible, self.cheapest, self.third)
        first = next((pick for pick in three if pick.role == self.asked), self.sensible)
        return (first, *(pick for pick in three if pick is not first))


SAME_PLAN = "the same plan"  # what a changed limit does that changes nothing


@dataclass(frozen=True, slots=True)
class SensitivityStep:
    """What changing one limit is worth, found by planning again."""

    change: str  # "--deadline 9h"
    effect: str  # one sentence
    plan: Plan | None

    @property
    def changes(self) -> bool:
        """Whether the answer is another then."""
        return self.effect != SAME_PLAN


@dataclass(frozen=True, slots=True)
class Proof:
    """How sure the ranking is."""

    status: Literal["optimal", "gap"]  # of all plans: "optimal" only where mixes are ruled out too
    gap: float  # best possible improvement left, as a share, by a plan of any kind
    method: str  # "search"
    plans_evaluated: int
    # Clusters of several types: searched to the end, in part, or ruled out up to `gap` by a bound.
    mixes: Literal["searched", "in part", "bounded"] = "searched"
    one_type_gap: float = 0.0  # as `gap`, by clusters of one machine type


@dataclass(frozen=True, slots=True)
class ProgramShare:
    """What the linear program does with one configuration."""

    configuration: str  # "2x p4d.24xlarge spot"
    spot: bool
    share: float  # of the job's work


@dataclass(frozen=True, slots=True)
class LimitWorth:
    """What a little more of one limit is worth."""

    limit: str  # "deadline", "quota L-417A185B"
    unit: str  # "hour", "USD", "point", "machine"
    gain: float  # per unit: USD saved, or hours where time is the goal
    source: Literal["program", "planned again"]  # the second where the two differ by over 10 %


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """The linear program behind an answer: which configuration does which share of the work."""

    status: Literal["optimal", "infeasible", "unknown"]
    columns: int
    rows: int
    spot_share: float
    on_demand_share: float
    shares: tuple[ProgramShare, ...]
    worth: tuple[LimitWorth, ...] = ()
    conflict: tuple[str, ...] = ()  # rows that cannot be kept together


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Why no plan keeps the limits, and the nearest that would."""

    binding: tuple[str, ...]  # sentences: which limit, by how much
    relaxed: tuple[SensitivityStep, ...]
    fastest: Plan | None = None
    cheapest: Plan | None = None
    unexplored: str = ""  # what was not searched, and how to go on; "" where there is no plan


@dataclass(frozen=True, slots=True)
class PriceDate:
    """How old the prices of one provider and market are."""

    provider: str
    market: str
    as_of: str
    offers: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A printed figure against the same figure of other, more simulated runs."""

    figure: str  # "cost_usd", "time_s", "chance"
    printed: float
    simulated: float
    error: float  # standard error of the difference: both figures are sampled


@dataclass(frozen=True, slots=True)
class Check:
    """How the printed figures of one plan compare with simulated runs of another seed."""

    rank: int
    runs: int
    seed: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What to do when spot goes away: the whole policy of a plan, by dynamic programme."""

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


FollowedKind = Literal["table", "baseline", "followed"]


@dataclass(frozen=True, slots=True)
class FollowedPlan:
    """A plan with its simulated runs: cost and time of each, in the order of the paths."""

    kind: FollowedKind
    number: int  # in the table, or among the baselines, from 1 on; 0 of one merely followed
    machines: tuple[Machines, ...]  # at the first place of their failover list
    fallback: tuple[Machines, ...]
    fallback_due_s: float | None  # the deadline that the fallback is started for
    regions: int  # of the failover list
    checkpoint_path: str
    usd_per_hour: float
    gpus: int
    cost: Spread
    time: Spread
    max_usd_per_hour: float
    overhead: float
    cost_usd: tuple[float, ...]  # of each run
    time_s: tuple[float, ...]


Doing = Literal[
    "waiting",
    "start-up",
    "work",
    "lost work",
    "restart",
    "on-demand part",
    "fallback",
    "more of the same",
]


@dataclass(frozen=True, slots=True)
class Segment:
    """What a run does for a while; seconds from the request for machines."""

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
        """When the job is done."""
        return self.segments[-1].end_s if self.segments else 0.0


@dataclass(frozen=True, slots=True)
class SwingEnd:
    """One end of what may be otherwise, and what the plan that leads does there."""

    factor: float  # of the figure assumed
    cost_usd: float  # mean
    time_s: float  # median
    chance: float  # all limits kept


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From which factor on the answer is another."""

    factor: float
    plan: int  # number of the plan that is better there; 0: the plan that leads misses a limit


@dataclass(frozen=True, slots=True)
class Swing:
    """What the plan that leads would cost and take were one figure otherwise, all else the same."""

    what: str  # "speed of H100", "spot price of a3-highgpu-1g"
    why: str  # why the ends lie where they do
    low: SwingEnd
    high: SwingEnd
    break_evens: tuple[BreakEven, ...]  # the nearest on either side, if any


@dataclass(frozen=True, slots=True)
class ReportData:
    """What a report holds besides the answer, gathered only where one is asked for.

    A page can then be asked about other deadlines, budgets and chances without planning again.
    """

    followed: tuple[FollowedPlan, ...]
    timelines: tuple[Timeline, ...]
    swings: tuple[Swing, ...]  # the widest first
    runs: int  # simulated of each plan of the table
    seed: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole result for one request: plans, proof, sensitivity, warnings."""

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
    trio: Trio | None = None  # None where no plan keeps the limits
    # Number of the best plan by the goal, of which the proof speaks: not the first where plans
    # stand in the order of what they cost with a person's time.
    best: int = 1
    by_value: bool = False
    report: ReportData | None = None  # where a report is asked for; in no other form of it

    @property
    def lead(self) -> int:
        """Number of the plan that the answer leads with: what to rent, unless told otherwise."""
        return 1 if self.trio is None else self.trio.picks[0].rank
