"""Pools benchmark records: the newest of each machine, the median over machines, outliers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from recommender.benchmarks import figures
from recommender.benchmarks.record import Record
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Gpu, InstanceType
from recommender.errors import RecordError
from recommender.text import shown, unknown

FAR = 0.1  # two machines of one type differ by less (H100 fleets: 3 % at 95 %, 2025)
_OVER_PEAK = 1.05  # boards of one name differ in their boost clock
_MIN_MEMORY = 0.85  # of the listed: drivers keep some, 9 % of a T4's with ECC
# Of the vendor's bandwidth, by which plans reckon, what a copy reaches: median of published
# STREAM-like figures on V100, A100 (40 and 80 GB), H100 PCIe, H200 and L40: 0.74 to 0.98.
COPY_SHARE = 0.95
DEVICE_COPY = "device copy"
_FROM_GPU = "from GPU pinned"


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
    """Bandwidths into and out of the GPUs of an instance type, GB/s; None: not measured."""

    provider: str
    instance_type: str
    intra_gb_per_s: float | None  # all-reduce inside the machine, per GPU and direction
    network_gb_per_s: float | None  # all-reduce between machines, of a whole machine
    host_gb_per_s: float | None  # from a GPU to pinned memory
    as_of: str  # date of the newest record


@dataclass(frozen=True, slots=True)
class StallVector:
    """The stalls of a training over several records, and the runs behind them."""

    training: str
    device: str  # GPU, or the processor
    machines: int
    gpus: int  # of all machines
    step_s: float  # the longest: on cold data, all GPUs
    stalls: tuple["StalledTime", ...]
    runs: tuple["TimedRun", ...]
    what_ifs: tuple[tuple[str, float], ...]  # change, seconds per step then
    missing: tuple[str, ...]  # stalls that no run determines, and which run would


@dataclass(frozen=True, slots=True)
class StalledTime:
    """Seconds per step due to one cause, with 95 % confidence limits."""

    name: str
    seconds: float
    low: float
    high: float
    share: float  # of step_s


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One timed run, as a row of the table that `recommend calibrate` reads."""

    instance: str  # "" where the record does not say: then the GPU is used instead
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
    """FLOP per dollar of an offer at a precision."""

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
        """The second figure over the first."""
        return self.second / self.first


def catalog_gpu(
    catalog: Catalog, device: str, provider: str, instance_type: str, given: str | None
) -> str:
    """The catalog's name of a GPU, from a given name, the instance type, or the driver's name.

    Raises RecordError if none fits, or if the device is a slice of a GPU (MIG, vGPU): a seventh of
    an H100 is not an H100.
    """
    if given is not None:
        same = [name for name in catalog.gpus if name.lower() == given.lower()]
        if not same:
            raise RecordError(f"--gpu: {unknown('GPU', given, catalog.gpus)}")
        return same[0]
    if "mig" in _words(device):
        raise RecordError(
            f"'{shown(device)}' is a slice of a GPU; measure the whole one, or name what it is "
            "like with --gpu"
        )
    machine = catalog.instance_types.get((provider, instance_type))
    if machine is not None and machine.gpu in catalog.gpus:
        return machine.gpu
    found = by_words(device, catalog.gpus)
    if found is None:
        raise RecordError(
            f"'{shown(device)}' is no GPU of the catalog; name the one it is like with --gpu"
        )
    return found


def by_words(device: str, gpus: Mapping[str, Gpu]) -> str | None:
    """The most specific catalog GPU whose words all occur in the driver's name.

    "NVIDIA A100-SXM4-80GB" is A100-80GB. A PCIe card is slower than the SXM part of the same name
    (H100: 350 W against 700 W) and does not match it.
    """
    words = set(_words(device))
    fits = [
        name
        for name in gpus
        if set(_words(name)) <= words and ("pcie" in words) <= ("pcie" in _words(name))
    ]
    return max(fits, key=lambda name: (len(_words(name)), len(name)), default=None)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\s_-]+", name.lower()) if word]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """An imported record with the catalog's name of its GPU ("" for a processor)."""

    gpu: str
    record: Record


def newest(kept: Iterable[StoredRecord]) -> list[StoredRecord]:
    """The newest record of each machine and device; records that name no machine all count."""
    last: dict[tuple[str, str, int], StoredRecord] = {}
    for i, each in enumerate(sorted(kept, key=lambda k: k.record.taken_at)):
        machine = each.record.machine.machine
        last[machine, each.record.device, 0 if machine else i] = each
    return list(last.values())


def pooled(kept: Iterable[StoredRecord], gpus: dict[str, Gpu]) -> tuple[Pooled, ...]:
    """Matrix speed by GPU and precision over all machines."""
    groups: dict[tuple[str, str], list[tuple[figures.Speed, str]]] = {}
    copies: dict[str, list[float]] = {}
    for each in newest(kept):
        if each.gpu:
            for speed in figures.speeds(each.record):
                key = (each.gpu, speed.precision)
                groups.setdefault(key, []).append((speed, each.record.taken_at))
            copy = figures.rate_of(each.record, "memory", DEVICE_COPY)
            copies.setdefault(each.gpu, []).extend([copy] if copy else [])
    found = []
    for key, own in sorted(groups.items()):
        copied = copies[key[0]]
        memory = median(copied) / COPY_SHARE if copied else None
        found.append(replace(_pooled(*key, own, gpus.get(key[0])), memory_gb_per_s=memory))
    return tuple(found)


def _pooled(
    gpu: str, precision: str, own: Sequence[tuple[figures.Speed, str]], known: Gpu | None
) -> Pooled:
    middle = median(speed.typical for speed, _ in own)
    peak = peak_of(known, precision)
    return Pooled(
        gpu,
        precision,
        middle,
        min(speed.low for speed, _ in own),
        max(max(speed.best, speed.high) for speed, _ in own),
        middle / peak if peak else None,
        len(own),
        sum(abs(speed.typical / middle - 1) > FAR for speed, _ in own),
        max(taken for _, taken in own)[:10],
    )


def peak_of(gpu: Gpu | None, precision: str) -> float | None:
    """The vendor's dense peak in TFLOP/s, if the catalog has it."""
    return None if gpu is None else getattr(gpu, f"peak_{precision}_tflops", None)


def impossible(record: Record, gpu: Gpu | None) -> list[str]:
    """Rates above the vendor's peak: from another GPU, or wrong."""
    sentences = []
    for speed in figures.speeds(record):
        peak = peak_of(gpu, speed.precision)
        if gpu is not None and peak and speed.best > _OVER_PEAK * peak:
            sentences.append(
                f"{speed.precision} reaches {speed.best:.4g} TFLOP/s, the peak of {gpu.gpu} is "
                f"{peak:g}; name the right GPU with --gpu"
            )
    copy = figures.rate_of(record, "memory", DEVICE_COPY)
    if gpu is not None and copy and copy > _OVER_PEAK * gpu.memory_gb_per_s:
        sentences.append(
            f"a copy moves {copy:.4g} GB/s, the memory of {gpu.gpu} {gpu.memory_gb_per_s:g}; "
            "name the right GPU with --gpu"
        )
    return sentences


def too_small(record: Record, gpu: Gpu | None) -> list[str]:
    """Whether a device has less memory than the GPU it is named after, so is a slice of it."""
    own = record.machine.gpu_memory_gib
    if gpu is None or own is None or own >= _MIN_MEMORY * gpu.memory_mib / 1024:
        return []
    return [
        f"the device has {own:g} GiB, {gpu.gpu} {gpu.memory_mib / 1024:.0f}: a slice or another "
        "one; name what it is like with --gpu"
    ]


def rates(kept: Iterable[StoredRecord]) -> tuple[Rate, ...]:
    """All other figures of the newest records, including matrix speeds of processors."""
    found = []
    for each in newest(kept):
        own = each.record
        name = own.place.instance_type or each.gpu or own.machine.processor
        as_of = own.taken_at[:10]
        if not each.gpu:
            found += [
                Rate(name, f"matmul {s.precision}", s.best, "TFLOP/s", False, as_of)
                for s in figures.speeds(own)
            ]
        found += [
            Rate(name, f.name, f.value, f.unit, f.doubtful, as_of) for f in figures.others(own)
        ]
    return tuple(found)


def compared(first: Record, second: Record) -> tuple[Compared, ...]:
    """Every case in both records; a difference within both intervals is noise."""
    others = {(each.benchmark, each.case): each for each in second.results}
    found = []
    for a in first.results:
        b = others.get((a.benchmark, a.case))
        if b is not None and a.unit == b.unit:
            (low_a, high_a), (low_b, high_b) = a.interval, b.interval
            apart = low_a > high_b or low_b > high_a
            found.append(Compared(f"{a.benchmark} {a.case}", a.unit, a.median, b.median, apart))
    return tuple(found)


Found = dict[str, float]


def links_of(kept: Iterable[StoredRecord], catalog: Catalog) -> tuple[Links, ...]:
    """The links of every instance type in the records; medians over machines.

    For each machine, the newest record that contains a link counts for it, because runs with one
    process and with torchrun on one and several machines contain different links.
    """
    last: dict[tuple[str, str], dict[tuple[str, str], tuple[float, str]]] = {}
    for i, each in enumerate(sorted(kept, key=lambda k: k.record.taken_at)):
        own = each.record
        machine = catalog.instance_types.get((own.place.provider, own.place.instance_type))
        if each.gpu and machine is not None and machine.gpus:
            group = last.setdefault((machine.provider, machine.instance_type), {})
            for name, value in link_rates(own, machine).items():
                group[name, own.machine.machine or str(i)] = value, own.taken_at[:10]
    return tuple(_links(*key, found) for key, found in sorted(last.items()) if found)


def _links(
    provider: str, instance_type: str, found: dict[tuple[str, str], tuple[float, str]]
) -> Links:
    def middle(wanted: str) -> float | None:
        rates = [value for (name, _), (value, _) in found.items() if name == wanted]
        return median(rates) if rates else None

    as_of = max(day for _, day in found.values())
    rates = middle("intra"), middle("network"), middle("host")
    return Links(provider, instance_type, *rates, as_of)


def link_rates(record: Record, machine: InstanceType) -> Found:
    """GB/s of each link in one record, as the catalog defines them.

    Inside: an all-reduce of all GPUs of the machine. Between n machines of g GPUs, plans compute
    the seconds of an all-reduce of S bytes as 2(g-1)/g·S/B_intra + 2(n-1)/n·S/B_net, so B_net is
    computed from the remaining time; there is none if the inside alone would take longer.
    """
    found: Found = {}
    host = figures.rate_of(record, "transfer", _FROM_GPU)
    if host:
        found["host"] = host
    own = figures.exchanges(record)
    for each in own:
        if each.machines == 1 and each.processes == machine.gpus:
            found["intra"] = each.bytes_per_s / 1e9
    inside = found.get("intra") or machine.intra_gb_per_s
    for each in own:
        if each.machines > 1 and each.processes == each.machines * machine.gpus:
            rate = _between(each, machine.gpus, inside)
            if rate:
                found["network"] = rate
    return found


def _between(each: figures.Exchange, gpus: int, intra: float | None) -> float | None:
    seconds = _ring(each.processes) / (each.bytes_per_s / 1e9)  # of a GB
    inside = _ring(gpus) / intra if gpus > 1 and intra else 0.0
    left = seconds - inside
    return _ring(each.machines) / left if left > 0 else None


def _ring(n: int) -> float:
    """Bytes that cross the busiest link of n in an all-reduce, per byte of the message."""
    return 2.0 * (n - 1) / n
