"""The tables of a catalog: one frozen dataclass per row, in plain units.

Units: USD per hour for whole machines, GB/s = 1e9 bytes per second, TFLOP/s dense,
MiB and GiB binary. `None` means unknown, never zero. Every row names its `source` (a key
of `sources.csv`), the date it held (`as_of`) and its `kind`:

    quote     read from the provider's own price or fact
    composed  a sum of quoted parts (GCP: cores + RAM + GPU)
    derived   computed from related quotes; `uncertainty` is its relative error
    measured  a benchmark figure published by a named party
    fallback  a rule of thumb where nothing was measured
"""

from typing import Literal

from recommender.catalogs.frozen import dataclass

Provider = str  # a name of `registry.NAMES`; tables with another are refused
Market = Literal["on_demand", "spot", "flex_start", "reserved_block", "committed"]
# Booked capacity, which nobody takes back before its end: Google's flex-start, which begins when
# there is capacity, and blocks of whole days, paid in advance (AWS Capacity Blocks).
# A commitment is paid for a year, whatever is used: no plan of one job rents in it.
BOOKED: tuple[Market, ...] = ("flex_start", "reserved_block")
# On request: by contract or through sales. Unknown: listed, and nobody was seen to rent it.
Obtainable = Literal["open", "spot_only", "reservation_only", "on_request", "retired", "unknown"]
Kind = Literal["quote", "composed", "derived", "measured", "fallback"]
# Machines of a gang until its availability has fallen by one slope. Mean over eight H100 zones
# at n = 1…16 (SkyNomad, October 2025): a knee of 8 misses by 0.4 points, of 1 by 1.6.
GANG_KNEE = 8.0
ONE_HOST = "one_host"  # `network_basis` of a box that no network joins to others: no fleet


@dataclass(frozen=True, slots=True)
class Gpu:
    """An accelerator: dense vendor peaks, memory, power."""

    gpu: str  # short unique name as people write it: "H100", "A100-80GB", "L40S", "V100-32GB"
    vendor: str  # "nvidia", "amd", "aws", "intel", "google"
    memory_mib: int
    memory_gb_per_s: float
    peak_fp32_tflops: float | None
    peak_tf32_tflops: float | None
    peak_fp16_tflops: float | None
    peak_bf16_tflops: float | None
    peak_fp8_tflops: float | None
    watts: int | None
    released: int | None
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class Achieved:
    """Matrix-multiplication FLOP/s reached on a GPU at a precision, with its spread."""

    gpu: str
    precision: str  # "fp32", "tf32", "fp16", "bf16", "fp8"
    tflops: float
    low_tflops: float
    high_tflops: float
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class OwnSpeed(Achieved):
    """A speed that the user measured, and the shipped one it replaces."""

    shipped: Achieved | None  # None: the catalog has none
    memory_gb_per_s: float | None  # of the GPU, as the vendor counts; None: not measured


@dataclass(frozen=True, slots=True)
class InstanceType:
    """Hardware that can be rented, as the provider describes it."""

    provider: Provider
    instance_type: str
    family: str  # "p5", "a3-highgpu", "NDH100v5"
    gpu: str  # "" for a CPU machine
    gpus: int
    gpu_memory_mib: int  # of one GPU, usable
    vcpus: int
    memory_gib: float
    arch: str  # "x86_64", "arm64"
    network_gbit_per_s: float | None  # sustained (baseline), of the whole machine
    network_peak_gbit_per_s: float | None
    network_kind: str  # "rdma" (the GPU's memory or EFA is reached past the kernel), "tcp"
    network_basis: str  # "listed", "documented", "measured", "scaled", "unknown", `ONE_HOST`
    intra_kind: str  # "nvswitch", "nvlink", "xgmi", "neuronlink", "pcie", "" for one GPU
    intra_gb_per_s: float | None  # per GPU and direction, achieved by an all-reduce
    host_gb_per_s: float  # GPU to host copy, per GPU
    local_disk_gib: float
    local_disk_mb_per_s: float
    quota_family: str  # key into quotas.csv
    status: Obtainable
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class OwnMachine(InstanceType):
    """A user's own machine, and the hardware it takes from a catalog machine."""

    like: str  # "gcp a3-highgpu-8g"; "" where the catalog has no machine with its GPU
    assumed: tuple[str, ...]  # with the figures: "800 Gbit/s RDMA"
    gpu_share: float = 1.0  # of a GPU's processors, where it is a slice of one (MIG)


@dataclass(frozen=True, slots=True)
class Offer:
    """An instance type in a region (and zone) in a market, with a price and its date."""

    provider: Provider
    instance_type: str
    region: str
    zone: str  # "" where the price holds for the whole region
    market: Market
    usd_per_hour: float
    obtainable: Obtainable
    kind: Kind
    flag: str  # "", "floor", "zone_median", "sibling", "advisor", "imported", "jump"
    uncertainty: float  # relative error of a derived price, 0 for a quote
    interruption_range: int | None  # AWS advisor index 0 (<5 %) to 4 (>20 % a month)
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of figures, and the licence under which they were taken."""

    source: int
    name: str
    licence: str
    taken: str  # "figure", "fit", "row"
    attribution: str


@dataclass(frozen=True, slots=True)
class Quota:
    """A provider's name of the quota of a family in a market."""

    provider: Provider
    quota_family: str
    market: Market
    name: str  # "All P5 Spot Instance Requests"
    unit: str  # "vcpu" or "gpu"
    default_new: float  # what a new account starts with
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class Fee:
    """A price per unit in addition to the machine: disks, addresses, storage, egress."""

    provider: Provider
    item: str  # "boot_disk_gib_month", "ipv4_hour", "storage_gib_month", "egress_region_gb", ...
    usd: float
    unit: str
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class BillingRule:
    """The terms on which a provider rents in a market: what is charged, and for how long."""

    provider: Provider
    market: Market
    minimum_s: float  # least seconds charged
    free_if_interrupted_within_s: float  # AWS spot: 3600
    notice_s: float  # warning before an interruption
    source: int
    as_of: str
    instance_type: str = ""  # of one machine; "" for all of the provider's
    step_s: float = 1.0  # whole steps of this are charged
    maximum_s: float | None = None  # longest rental
    lead_s: float = 0.0  # from the request to the earliest start
    wait_s: float | None = None  # median wait for a start; None: as on demand
    upfront: bool = False  # paid in advance, whole
    quota_market: str = ""  # whose quota it counts on: "" its own, "none" no quota
    egress_usd_per_gb: float | None = None  # of what leaves; None: the provider's fee, as for disks
    disk_usd_per_gib_month: float | None = None
    currency: str = "USD"  # it charges in, with what 1 USD was in it: "EUR=0.88@2026-10-01"
    countries: tuple[str, ...] = ()  # where it is, if its region does not say
    new_account: float | None = None  # machines that a new account may rent; None: not stated
    launcher: str = ""  # the cloud as SkyPilot names it; "": as its provider is registered
    rented_as: str = ""  # the owner's name of the machine, where it has another here


@dataclass(frozen=True, slots=True)
class SpotClass:
    """Availability of spot capacity of a kind of machine (docs/models.md).

    Runs are lognormal around their mean. A gang of n machines is interrupted at λ·(1 + (n-1)(1-ρ)),
    and is up a share `availability` of the time, which falls by `availability_slope` per doubling
    of 1 + (n-1)/GANG_KNEE.
    """

    spot_class: str  # "h100", "v100", "v100x8", "a10g", ...
    gpus: tuple[str, ...]  # GPU names it applies to
    gpus_per_machine_min: int
    gpus_per_machine_max: int
    run_mean_s: float  # of one machine
    run_sigma: float  # of ln(run)
    outage_sigma: float  # of ln(outage)
    availability: float  # of one machine, mean over zones
    availability_slope: float  # logits that a gang of n loses per log2(1 + (n-1)/GANG_KNEE)
    zone_sd: float  # sd of the zones' logit availability
    co_interruption: float  # ρ
    correlation_region: float  # of two zones of one region
    held: bool  # fitted on held machines (age matters) rather than on probes
    basis: str  # "measured" or "transferred"
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class PriceDrift:
    """Spread of price changes by age: sd of ln(price now / price then)."""

    provider: Provider
    market: Market
    age_days: float
    sigma: float
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class StartUp:
    """Seconds from the request of a machine until it can run a container's command."""

    provider: Provider
    gpus_min: int
    boot_s: float
    cold_image_s: float
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class Obtainability:
    """Chance of an on-demand machine with eight GPUs at once, and the median wait otherwise."""

    gpus: tuple[str, ...]
    share_at_once: float
    wait_s: float
    kind: Kind
    source: int
    as_of: str


@dataclass(frozen=True, slots=True)
class Egress:
    """USD per GB sent from one region to another of the same provider."""

    provider: Provider
    from_region: str
    to_region: str
    usd_per_gb: float
    source: int
    as_of: str
