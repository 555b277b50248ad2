"""A plan: machines, locations, checkpoints, fallback and their estimate, as every view prints it.

Everything here is plain data in seconds, bytes and USD; views format it.
"""

import math
from dataclasses import field
from itertools import pairwise

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.plan.evidence import Evidence

# Share of the training time that waiting for saves may take without being worth a word.
BACKGROUND = 0.02
OWN_TRACE = "your trace"  # begins the basis of a spot law of the user's own


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a machine is rented: the contract that its offer states.

    The same for offers that were refreshed, published, exported, or read from a user's own file.
    """

    minimum_s: float  # least time that is charged,
    step_s: float  # in whole steps of this
    maximum_s: float | None  # longest rental; None: as long as wanted
    notice_s: float  # warning before an interruption
    upfront: bool  # paid in advance, whole
    egress_usd_per_gb: float | None  # of what leaves the provider; None: not known, not counted
    disk_usd_per_gib_month: float | None
    currency: str  # it charges in: "USD", or with what 1 USD was in it "EUR=0.88@2026-10-01"
    countries: tuple[str, ...]  # where it may be; empty: not known
    one_host: bool  # one box: no fleet of them can be rented
    rdma: bool  # machines reach each other's memory
    new_account: float | None  # machines that a new account may rent; None: not stated
    launcher: str  # the cloud as SkyPilot names it; empty: it does not know it
    rented_as: str  # the owner's name of the machine; empty: not known


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
    terms: Terms | None = None  # None in answers of older programs


@dataclass(frozen=True, slots=True)
class Site:
    """One entry of a failover list: a location where machines are requested, in order."""

    region: str
    zone: str
    usd_per_hour: float  # of one machine
    price_flag: str


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Where and how often checkpoints are saved, and their cost in time."""

    path: str  # "object_store", "anchor", "memory_tier", "none"
    interval_s: float  # NaN where nothing is saved
    stall_s: float  # training stops
    transfer_s: float  # until the checkpoint is written
    restore_s: float
    notice_s: float
    notice_covers: bool  # a save fits into the provider's notice
    as_good_s: tuple[float, float]  # shortest and longest usual interval nearly as good
    machines: tuple[Machines, ...] = ()  # anchors or memory tier
    lag_s: float = 0.0  # after the stall, until the checkpoint is safe: an interruption loses it

    @property
    def upload_s(self) -> float:
        """From the checkpoint on the machines' disks to one in the bucket."""
        behind = self.transfer_s if self.stall_s < self.transfer_s else 0.0
        return max(self.lag_s - behind, 0.0)

    @property
    def needs_background(self) -> bool:
        """Whether training that waited for its saves would be noticeably slower."""
        return self.transfer_s - self.stall_s > BACKGROUND * self.interval_s


@dataclass(frozen=True, slots=True)
class AsRun:
    """What a plan comes to as a tool runs it that cannot do all of it."""

    lacking: tuple[str, ...]  # what is left out (`plan/as_run.py`)
    cost_usd: float  # mean
    time_s: float  # median
    chance: float  # all limits met
    probability: float  # share of the runs with the fallback's machines


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
    visible_gib: float = math.inf  # of the GPU's memory, what programs see
    memory_fits: float = 1.0  # chance that it is enough, in small micro-batches if it has to be
    bubble_s: float = 0.0  # stages of a pipeline that wait for its first and last micro-batch

    @property
    def memory_share(self) -> float:
        """How much of what programs see of a GPU's memory is filled."""
        return self.memory_gib / self.visible_gib

    @property
    def is_model_parallel(self) -> bool:
        """Whether GPUs share a network, so that the label lists degrees of parallelism."""
        return " " in self.sharding

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return self._degrees("PP")

    @property
    def gpus_per_copy(self) -> int:
        """GPUs that share a network, so that they have one micro-batch."""
        return self._degrees("TP", "CP", "PP")

    def _degrees(self, *names: str) -> int:
        words = self.sharding.replace(",", "").split()
        return math.prod(int(n) for name, n in pairwise(words) if name in names)


@dataclass(frozen=True, slots=True)
class Fallback:
    """The on-demand machines that are rented if spot capacity is away for too long."""

    machines: tuple[Machines, ...]
    usd_per_hour: float
    speed: float  # relative to the spot cluster
    reserve_s: float  # start when time left = time to finish on the fallback + this
    probability: float  # share of runs that need it
    work_share: float = 0.0  # of the job's work that it does, on average
    sites: tuple[Site, ...] = ()  # its failover list; empty where it has one region
    # Its policy (`risk/policy.py`): slack, per second of work left, above which it waits for spot
    # and above which it goes back to it; None where it waits to the last moment and stays.
    wait_above: float | None = None
    back_above: float | None = None
    changeover_s: float = 0.0  # until spot machines that were given train
    caution: float = 1.0  # times the predicted work, while it waits for its first machines
    # Of the plans that are shown in a table: its machines need not have the plan's layout.
    step: StepSplit | None = None

    @property
    def gpus(self) -> int:
        """All GPUs of its machines."""
        return sum(m.count * m.gpus for m in self.machines)


TAIL, TAIL_S = 4.0, 6 * 3600.0  # times the median, and seconds above it, where a tail begins


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure as shown (median and 5-95 % span), and the means that order plans."""

    # Of all runs, also of the few that wait for weeks, so it may lie beyond p95. Plans are ordered
    # by that of the cost.
    mean: float = field(metadata={"json": "mean_of_all_runs"})
    p05: float
    p50: float = field(metadata={"json": "median"})
    p95: float
    # Mean of the runs from p05 to p95: where time is the goal, plans are ordered by it.
    trimmed_mean: float = field(metadata={"json": "mean_of_middle_90"})
    p99: float = math.nan  # 1 run in 100 is beyond it

    @property
    def has_tail(self) -> bool:
        """Whether 1 run in 20 takes much longer than half the speed would explain."""
        return self.p95 >= TAIL * self.p50 and self.p95 - self.p50 >= TAIL_S


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Breakdown of a usual run's time: means over the tenth of the runs around the median."""

    start_up_s: float
    work_s: float
    checkpoint_s: float
    lost_s: float  # lost work done again
    restart_s: float
    waiting_s: float


@dataclass(frozen=True, slots=True)
class BillItem:
    """One line of the expected bill."""

    item: str
    usd: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost and time of a plan, as distributions."""

    cost: Spread
    time: Spread
    chance: float  # all limits met
    chance_if_speed_known: float
    interruptions: float  # of a run, on average: most runs have fewer
    overhead: float  # checkpoints, lost work, restarts, relative to the job's work
    split: TimeSplit
    step: StepSplit
    bill: tuple[BillItem, ...]
    speed_sigma: float
    price_sigma: float
    interrupted: float = math.nan  # share of the runs with at least one interruption
    interruptions_p95: float = math.nan  # that 1 run in 20 has, or more


@dataclass(frozen=True, slots=True)
class Need:
    """A quota that the plan needs in a region, by the provider's own name."""

    name: str
    amount: float
    unit: str
    region: str
    new_accounts: float | None = None  # what a new account starts with; None = unknown
    yours: float | None = None  # what the user reports theirs is; None = not reported
    fallback: bool = False  # needed by the fallback alone

    @property
    def missing(self) -> bool:
        """Whether it has to be requested: more than the user has, or than a new account has."""
        known = self.new_accounts if self.yours is None else self.yours
        return self.amount > (known or 0.0)


@dataclass(frozen=True, slots=True)
class SpotFacts:
    """The modelled availability of a plan's spot machines, for its explanation."""

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
    """How much a plan's chance depends on on-demand capacity, from its simulated runs."""

    needed: float  # share of the runs that start on-demand machines, the fallback's included
    at_once: float  # chance that they are there at once, at a moment like any other
    late: float  # share of the runs in which they are not there within an hour
    wait_p95_s: float  # 1 in 20 of the runs that start them waits longer
    chance_if_at_once: float  # all limits met, were there no wait for them


@dataclass(frozen=True, slots=True)
class Plan:
    """What to rent, where, and what to do when spot is lost."""

    machines: tuple[Machines, ...]
    # Failover list of the spot machines or, without any, of the on-demand ones: those begin in the
    # first region that has them. Empty if these are requested in one region only.
    sites: tuple[Site, ...]
    checkpointing: Checkpointing
    fallback: Fallback | None
    estimate: Estimate
    usd_per_hour: float  # list price while everything runs
    max_usd_per_hour: float  # ever paid: at the most expensive place, fees and fallback included
    gpus: int
    flopp: float  # job FLOP per USD at list price
    needs: tuple[Need, ...]
    saving: float | None = None  # share saved against the best all-on-demand plan
    labels: tuple[str, ...] = ()  # "one GPU", "all on-demand", ...
    notes: tuple[str, ...] = ()
    spot: SpotFacts | None = None
    evidence: Evidence | None = None  # what its figures rest on
    # Of the draws of what is uncertain of all plans of the table, in which it is the best by the
    # table's goal; None for plans outside the table.
    best_share: float | None = None
    on_demand: OnDemandFacts | None = None  # None: it starts no such machines
    # For which only the checkpoint's region is tried before the list goes on.
    move_after_s: float = 0.0
    # Of the plans that are shown in a table: as tools run it that cannot do all of it, and how it
    # saves to a bucket where it counts on receivers of its own.
    as_run: tuple[AsRun, ...] = ()
    in_bucket: Checkpointing | None = None

    @property
    def startable(self) -> bool:
        """Whether an account that has asked for nothing can start it now."""
        booked = any(m.market == "reserved_block" for m in self.machines)
        return not (booked or self.on_request or any(need.missing for need in self.needs))

    @property
    def on_request(self) -> bool:
        """Whether it has more machines of a cloud than that rents to a new account."""
        known = ((m.count, m.terms.new_account) for m in self.machines if m.terms)
        return any(most is not None and count > most for count, most in known)

    @property
    def is_owned(self) -> bool:
        """Whether all its machines are the user's own."""
        return all(m.provider == OWN for m in self.machines)

    @property
    def is_promised(self) -> bool:
        """Whether somebody answers for its machines, unlike for a stranger's host."""
        return self.evidence is None or self.evidence.price != "asked"

    @property
    def mixed(self) -> bool:
        """Whether machines of several types or markets train together."""
        return len({(m.instance_type, m.market) for m in self.machines}) > 1
