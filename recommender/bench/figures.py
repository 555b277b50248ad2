"""Plain data of the user's measurements, as tables show them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pooled:
    """Matrix-multiplication speed of a GPU at a precision, over the user's machines."""

    gpu: str  # the catalog's name
    precision: str
    tflops: float  # typical shapes, median over machines
    low: float  # slowest typical shape of any machine
    high: float  # best shape of any machine
    share: float | None  # of the vendor's dense peak, the typical shapes
    machines: int
    outliers: int  # machines more than a tenth off the median
    as_of: str  # date of the newest record
    memory_gb_per_s: float | None = None  # of the GPU, as vendors count it; None: not measured


@dataclass(frozen=True, slots=True)
class Links:
    """What goes in and out of the GPUs of an instance type, GB/s; None: not measured."""

    provider: str
    instance_type: str
    intra_gb_per_s: float | None  # all-reduce inside the machine, per GPU and direction
    network_gb_per_s: float | None  # all-reduce between machines, of a whole machine
    host_gb_per_s: float | None  # from a GPU to pinned memory
    as_of: str  # date of the newest record


@dataclass(frozen=True, slots=True)
class StallVector:
    """The stalls of a training over several records, and the runs that they come from."""

    training: str
    device: str  # GPU, or the processor
    machines: int
    gpus: int  # of all machines
    step_s: float  # the longest: on cold data, all GPUs
    stalls: tuple["Stall", ...]
    runs: tuple["TimedRun", ...]
    what_ifs: tuple[tuple[str, float], ...]  # change, seconds per step then
    missing: tuple[str, ...]  # stalls that no run tells, and which run would


@dataclass(frozen=True, slots=True)
class Stall:
    """Seconds of each step that one cause takes, with their 95 % limits."""

    name: str
    seconds: float
    low: float
    high: float
    share: float  # of step_s


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One timed run, as a row of the table that `recommend calibrate` reads."""

    instance: str  # "" where the record does not tell: then the GPU stands for it
    gpu: str
    machines: int
    gpus: int
    batch: int  # of all GPUs
    step_s: float
    data: str  # "synthetic", "cached", "cold"


@dataclass(frozen=True, slots=True)
class Rate:
    """Another figure of one record: memory, links, disk, input."""

    machine: str  # instance type, GPU or processor
    name: str
    value: float
    unit: str
    doubtful: bool
    as_of: str


@dataclass(frozen=True, slots=True)
class OfferFlopp:
    """What a dollar buys on an offer: achieved operations at a precision."""

    provider: str
    instance_type: str
    region: str
    zone: str
    market: str
    gpu: str
    gpus: int
    usd_per_hour: float
    tflops: float  # of one GPU
    flop_per_usd: float
    kind: str  # where the speed comes from: "yours", "measured", "derived", "fallback"


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure in two records."""

    name: str
    unit: str
    first: float
    second: float
    beyond_noise: bool

    @property
    def ratio(self) -> float:
        """Second over first."""
        return self.second / self.first
