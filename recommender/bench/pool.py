"""Pools records: the newest of each machine, the median over machines, outliers flagged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks import figures
from benchmarks.record import Record
from catalogs.schema import Gpu
from recommender.bench.figures import Compared, Pooled, Rate

FAR = 0.1  # two machines of one type differ by less (H100 fleets: 3 % at 95 %, 2025)
_OVER_PEAK = 1.05  # boards of one name differ in their boost clock
_LEAST_MEMORY = 0.85  # of the listed: drivers keep some, 9 % of a T4's with ECC
# Of the vendor's bandwidth, by which plans reckon, what a copy reaches: median of published
# STREAM-like figures on V100, A100 (40 and 80 GB), H100 PCIe, H200 and L40: 0.74 to 0.98.
COPY_SHARE = 0.95
DEVICE_COPY = "device copy"


@dataclass(frozen=True, slots=True)
class Kept:
    """A record that was imported, with the catalog's name of its GPU ("" for a processor)."""

    gpu: str
    record: Record


def newest(kept: Iterable[Kept]) -> list[Kept]:
    """The newest record of each machine and device; those that name no machine all count."""
    last: dict[tuple[str, str, int], Kept] = {}
    for i, each in enumerate(sorted(kept, key=lambda k: k.record.taken_at)):
        machine = each.record.machine.machine
        last[machine, each.record.device, 0 if machine else i] = each
    return list(last.values())


def pooled(kept: Iterable[Kept], gpus: dict[str, Gpu]) -> tuple[Pooled, ...]:
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
    """The vendor's dense peak in TFLOP/s, where the catalog has it."""
    return None if gpu is None else getattr(gpu, f"peak_{precision}_tflops", None)


def impossible(record: Record, gpu: Gpu | None) -> list[str]:
    """Rates above the vendor's: a record of another GPU, or a wrong one."""
    said = []
    for speed in figures.speeds(record):
        peak = peak_of(gpu, speed.precision)
        if gpu is not None and peak and speed.best > _OVER_PEAK * peak:
            said.append(
                f"{speed.precision} reaches {speed.best:.4g} TFLOP/s, the peak of {gpu.gpu} is "
                f"{peak:g}; name the right GPU with --gpu"
            )
    copy = figures.rate_of(record, "memory", DEVICE_COPY)
    if gpu is not None and copy and copy > _OVER_PEAK * gpu.memory_gb_per_s:
        said.append(
            f"a copy moves {copy:.4g} GB/s, the memory of {gpu.gpu} {gpu.memory_gb_per_s:g}; "
            "name the right GPU with --gpu"
        )
    return said


def too_small(record: Record, gpu: Gpu | None) -> list[str]:
    """A device with less memory than the GPU it is named after: a slice, which is slower too."""
    own = record.machine.gpu_memory_gib
    if gpu is None or own is None or own >= _LEAST_MEMORY * gpu.memory_mib / 1024:
        return []
    return [
        f"the device has {own:g} GiB, {gpu.gpu} {gpu.memory_mib / 1024:.0f}: a slice or another "
        "one; name what it is like with --gpu"
    ]


def rates(kept: Iterable[Kept]) -> tuple[Rate, ...]:
    """Every other figure of the newest records; processors give their matrix speed here too."""
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
    """Every case that both records hold; a difference within both intervals is noise."""
    others = {(each.benchmark, each.case): each for each in second.results}
    found = []
    for a in first.results:
        b = others.get((a.benchmark, a.case))
        if b is not None and a.unit == b.unit:
            (low_a, high_a), (low_b, high_b) = a.interval, b.interval
            apart = low_a > high_b or low_b > high_a
            found.append(Compared(f"{a.benchmark} {a.case}", a.unit, a.median, b.median, apart))
    return tuple(found)
