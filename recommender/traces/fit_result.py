"""The results of a fit of traces, as plain numbers with their confidence limits (95 %)."""

from recommender.catalogs.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Value:
    """A number and its 95 % confidence limits, which are None with too little data."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class LawFit:
    """One family of laws fitted to runs, outages or machine lives by maximum likelihood."""

    what: str  # "runs", "outages", "lives"
    family: str  # "lognormal", "weibull", "exponential"
    mean_h: Value
    median_h: Value
    shape: Value  # sd of ln X; Weibull's k; 1
    aic: float
    best: bool  # least AIC of its kind
    seen: int  # intervals seen from beginning to end
    unfinished: int  # intervals that were not over when watching ended


@dataclass(frozen=True, slots=True)
class GangSize:
    """The availability of a gang of so many machines: all up, or not."""

    machines: int
    availability: Value
    run_mean_h: Value | None  # hours up per interruption; None if never interrupted
    interruptions: int


@dataclass(frozen=True, slots=True)
class GroupLosses:
    """How machines are lost together."""

    lost: int  # machines taken
    moments: int  # at which at least one was
    mean_group: Value
    share_in_groups: Value  # of lost machines that went with another
    per_machine_hour: Value  # machines taken per machine-hour up
    co_interruption: Value | None  # of named machines


@dataclass(frozen=True, slots=True)
class ZoneSpread:
    """How much the availability of one machine differs between series."""

    lowest: str
    highest: str
    sd: Value
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PriceStatistics:
    """Prices of one series, weighted by their duration."""

    mean_usd: Value
    min_usd: float
    most_usd: float
    changes_per_day: Value
    moves_1d: Value | None  # root mean square of ln(price a day later / price)
    moves_7d: Value | None


@dataclass(frozen=True, slots=True)
class Watched:
    """One series: what was watched, how long, and its figures."""

    name: str
    provider: str
    region: str
    zone: str
    machine: str  # instance type, or "8x V100"; "" if not known
    gpu: str
    gpus: int  # of one machine; 0 = not known
    kind: str
    begin: str  # ISO 8601, "" if not known
    end: str
    hours: float
    step_s: float
    capacity: int  # 0: only prices
    availability: Value | None  # of one machine
    interruptions: int
    shares: tuple[float, ...]  # machines up, as a share of the capacity, in equal parts of time
    prices: PriceStatistics | None
    price_line: tuple[float, ...]  # price between its least (0) and most (1), in equal parts


@dataclass(frozen=True, slots=True)
class MarketLaw:
    """The law that the planner uses: lognormal runs and outages, logit-normal levels of zones.

    Values that a trace does not determine (None) are those of the GPU's class.
    """

    run_mean_s: Value
    run_sigma: Value
    outage_sigma: Value
    availability: Value  # of a typical (median) zone or day
    zone_sd: Value | None  # sd of the logit of that level
    availability_slope: Value | None  # logits a gang of n loses per log2(1 + (n-1)/8)
    co_interruption: Value | None
    short_runs: Value | None  # share of runs of 20 minutes at most, where no gang was watched
    held: bool


@dataclass(frozen=True, slots=True)
class TraceFit:
    """All figures of a spot market that some series determine."""

    series: tuple[Watched, ...]
    laws: tuple[LawFit, ...]
    sizes: tuple[GangSize, ...]
    co_interruption: Value | None
    groups: GroupLosses | None
    zones: ZoneSpread | None
    hours: tuple[Value, ...]  # availability by hour of the day, UTC; empty if not known
    law: MarketLaw | None
    no_law: str  # why there is no law; "" if there is one
