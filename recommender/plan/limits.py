"""What the user asked for: limits to keep, and which offers may be used."""

from dataclasses import dataclass, field, replace
from typing import Literal

MarketChoice = Literal["any", "spot", "on_demand"]
Failover = Literal["none", "zone", "region"]
Mix = Literal["auto", "yes", "no"]
CheckpointTo = Literal["auto", "object_store", "anchor", "memory_tier", "none"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the whole job; `None` means no such limit.

    With a deadline the least expected cost is sought, else with a budget or an hourly limit
    the least expected time, else the whole frontier. All limits are kept together with
    probability `confidence`.
    """

    deadline_s: float | None = None
    budget_usd: float | None = None
    hourly_usd: float | None = None
    confidence: float = 0.95
    max_overhead: float | None = None  # share of paid time in checkpoints, lost work, restarts
    max_machines: int = 16
    objective: Literal["auto", "cost", "time"] = "auto"

    @property
    def goal(self) -> Literal["cost", "time", "frontier"]:
        """What is minimised."""
        if self.objective != "auto":
            return self.objective
        if self.deadline_s is not None:
            return "cost"
        if self.budget_usd is not None or self.hourly_usd is not None:
            return "time"
        return "frontier"

    def tighter_than(self, other: "Limits") -> bool:
        """Whether these differ from others by allowing less time or money only, if at all."""
        names = ("deadline_s", "budget_usd", "hourly_usd")
        values = [(getattr(self, name), getattr(other, name)) for name in names]
        less = all(a == b or (a is not None and b is not None and a < b) for a, b in values)
        amounts = {name: getattr(other, name) for name in names}
        return less and replace(self, **amounts) == other


@dataclass(frozen=True, slots=True)
class GpuWish:
    """One `--gpu` word: a name (`A100:8` with its count per machine) or a memory floor."""

    name: str = ""
    per_machine: int | None = None
    memory_gib: float = 0.0


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """What an account may run at once of a family, in a market and region."""

    provider: str
    quota_family: str
    market: Literal["on_demand", "spot", "any"]
    region: str  # "" holds in every region
    unit: Literal["vcpu", "gpu", "machine"]
    amount: float
    place: str = field(default="", compare=False)  # "quotas.csv, line 3": where its user wrote it


SHORT_RUN_S = 1200.0  # a run of spot capacity of that length or less is short


@dataclass(frozen=True, slots=True)
class OfferLaw:
    """A spot law that the user fitted to a trace of an offer and keeps for it.

    What the trace could not tell (None) stays as the class of the GPU has it.
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
        """The offer as it is typed: gcp:us-central1-a:H100."""
        return f"{self.provider}:{self.place}:{self.machine}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which offers may be used and how; the defaults are those of a newcomer."""

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    gpus: tuple[GpuWish, ...] = ()
    instances: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()  # instance types, GPUs, regions or providers, with * as wildcard
    market: MarketChoice = "any"
    failover: Failover = "region"
    checkpoint_to: CheckpointTo = "auto"
    mix: Mix = "auto"  # auto: where quotas bind, the job is elastic or a proof is asked for
    accelerator: str = "nvidia"
    arch: str = "x86_64"
    quoted_only: bool = False
    prices_as_quoted: bool = False  # no price drift in the spans
    mtbf_h: float | None = None  # mean run of one spot machine
    discounts: tuple[tuple[str, float], ...] = ()  # provider, share
    quotas: tuple[QuotaLimit, ...] = ()
    quotas_known: bool = False
    on_demand_obtainable: float | None = None  # --assume-on-demand
    trust_notice: bool = True
    spot_laws: tuple[OfferLaw, ...] = ()  # of the user's own traces


@dataclass(frozen=True, slots=True)
class Progress:
    """A job in the middle of its run: what is left is planned."""

    done_share: float = 0.0
    elapsed_s: float = 0.0
    spent_usd: float = 0.0
