"""Machines as AWS describes them: new ones for the catalog, and those that cannot be described.

A GPU is recognised by its name and memory on machines that the catalog already knows: two A100
differ only in memory, and AWS once called the H200 of p5en "NVIDIA". What the API does not state
(links between GPUs, copies to the host) is copied from a known machine with the same GPU.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recommender.catalogs.providers.contract import UnknownType, Wanted
from recommender.catalogs.schema import InstanceType, Obtainable

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeInfoTypeDef, NetworkInfoTypeDef

_GIB_PER_GB = 1e9 / 2**30
# Rules of thumb for writing to local disks, as in the shipped table (docs/catalog.md).
_SSD_MB_PER_S_PER_GIB, _HDD_MB_PER_S_PER_GIB, _DISK_MB_PER_S_MAX = 1.0, 0.1, 8000.0


@dataclass(frozen=True, slots=True)
class Device:
    """The accelerators of a machine; `gpus` is a fraction if it has a part of one."""

    name: str
    maker: str
    gpus: float
    memory_mib: int  # of one
    total_mib: int  # as stated for all


@dataclass(frozen=True, slots=True)
class Described:
    """The description of a machine in one region by describe-instance-types."""

    instance_type: str
    usage: frozenset[str]  # "on-demand", "spot", "capacity-block"
    device: Device | None
    mixed: bool  # several kinds of devices
    vcpus: int
    memory_gib: float
    arch: str
    network_gbit_per_s: float | None
    network_peak_gbit_per_s: float | None
    rdma: bool
    local_disk_gib: float
    slow_disk: bool


@dataclass(frozen=True, slots=True)
class Machines:
    """New machines, those that cannot be described, and contradictions with the catalog."""

    new: tuple[InstanceType, ...]
    unknown: tuple[UnknownType, ...]
    warnings: tuple[str, ...]


def described(info: "InstanceTypeInfoTypeDef") -> Described:
    """Read one machine; KeyError if AWS leaves out a required field."""
    devices = _devices(info)
    storage = info.get("InstanceStorageInfo", {})
    disks = storage.get("Disks", [])
    rate, peak = _network(info["NetworkInfo"])
    architectures = info["ProcessorInfo"]["SupportedArchitectures"]
    return Described(
        instance_type=str(info["InstanceType"]),
        usage=frozenset(str(word) for word in info["SupportedUsageClasses"]),
        device=devices[0] if devices else None,
        mixed=len(devices) > 1,
        vcpus=info["VCpuInfo"]["DefaultVCpus"],
        memory_gib=info["MemoryInfo"]["SizeInMiB"] / 1024,
        arch="arm64" if "arm64" in architectures else "x86_64",
        network_gbit_per_s=rate,
        network_peak_gbit_per_s=peak if peak != rate else None,
        rdma=bool(info["NetworkInfo"].get("EfaSupported")),
        local_disk_gib=float(round(storage.get("TotalSizeInGB", 0) * _GIB_PER_GB)),
        slow_disk=any(disk.get("Type") == "hdd" for disk in disks),
    )


def _devices(info: "InstanceTypeInfoTypeDef") -> list[Device]:
    gpus = info.get("GpuInfo", {})
    neurons = info.get("NeuronInfo", {})
    found = [
        Device(
            name=gpu.get("Name", ""),
            maker=gpu.get("Manufacturer", ""),
            gpus=_whole_or_part(gpu.get("Count", 0), gpu.get("GpuPartitionSize", 1.0)),
            memory_mib=gpu.get("MemoryInfo", {}).get("SizeInMiB", 0),
            total_mib=gpus.get("TotalGpuMemoryInMiB", 0),
        )
        for gpu in gpus.get("Gpus", [])
    ]
    found += [
        Device(
            name=neuron.get("Name", ""),
            maker="AWS",
            gpus=float(neuron.get("Count", 0)),
            memory_mib=neuron.get("MemoryInfo", {}).get("SizeInMiB", 0),
            total_mib=neurons.get("TotalNeuronDeviceMemoryInMiB", 0),
        )
        for neuron in neurons.get("NeuronDevices", [])
    ]
    return found


def _whole_or_part(count: int, part: float) -> float:
    return part * max(count, 1) if part < 1 else float(count)


def _network(info: "NetworkInfoTypeDef") -> tuple[float | None, float | None]:
    cards = info.get("NetworkCards", [])
    rate = sum(card.get("BaselineBandwidthInGbps", 0.0) for card in cards)
    peak = sum(card.get("PeakBandwidthInGbps", 0.0) for card in cards)
    return rate or None, peak or None


def machines_of(seen: Mapping[str, Sequence[Described]], wanted: Wanted) -> Machines:
    """Classify the machines seen in all regions; `seen` is by region."""
    regions: dict[str, int] = {}
    facts: dict[str, Described] = {}
    for each in (machine for machines in seen.values() for machine in machines):
        before = facts.setdefault(each.instance_type, each)
        facts[each.instance_type] = replace(before, usage=before.usage | each.usage)
        regions[each.instance_type] = regions.get(each.instance_type, 0) + 1
    names = _gpu_names(facts.values(), wanted.types)
    new, unknown, warnings = [], [], []
    for name, each in sorted(facts.items()):
        if name in wanted.types:
            warnings += _contradictions(each, wanted.types[name])
        elif each.device is not None:
            made = _made(each, each.device, names, wanted)
            if isinstance(made, InstanceType):
                new.append(made)
            else:
                gpus = each.device.gpus
                unknown.append(UnknownType(name, each.device.name, gpus, regions[name], made))
    return Machines(tuple(new), tuple(unknown), tuple(warnings))


def _gpu_names(
    facts: Iterable[Described], types: Mapping[str, InstanceType]
) -> dict[tuple[str, int], set[str]]:
    """Learn what AWS calls the GPUs that the catalog knows, by name and memory."""
    names: dict[tuple[str, int], set[str]] = {}
    for each in facts:
        known, device = types.get(each.instance_type), each.device
        if known and known.gpu and device and _is_name(device):
            names.setdefault((device.name, device.memory_mib), set()).add(known.gpu)
    return names


def _is_name(device: Device) -> bool:
    return bool(device.name) and device.name.casefold() != device.maker.casefold()


def _contradictions(each: Described, known: InstanceType) -> list[str]:
    device = each.device
    stated = (each.vcpus, device.gpus if device else 0)
    held = (known.vcpus, known.gpus)
    if stated == held:
        return []
    return [
        f"{each.instance_type}: AWS describes {stated[0]} vCPUs and {stated[1]:g} GPUs, "
        f"the catalog {held[0]} and {held[1]}"
    ]


def _made(
    each: Described, device: Device, names: Mapping[tuple[str, int], set[str]], wanted: Wanted
) -> InstanceType | str:
    """Make the row of a new machine, or say why it cannot be made."""
    problem = _device_problem(each, device)
    if problem:
        return problem
    gpus = names.get((device.name, device.memory_mib), set())
    if len(gpus) != 1:
        return "GPU not known" if not gpus else "several GPUs of this name and memory are known"
    (gpu,) = gpus
    alike = [t for t in wanted.types.values() if t.gpu == gpu]
    several = device.gpus > 1
    nearest = min(
        alike,
        key=lambda t: ((t.gpus > 1) != several, abs(t.gpus - device.gpus), t.instance_type),
    )
    family = each.instance_type.partition(".")[0]
    slow = _HDD_MB_PER_S_PER_GIB if each.slow_disk else _SSD_MB_PER_S_PER_GIB
    return InstanceType(
        provider="aws",
        instance_type=each.instance_type,
        family=family,
        gpu=gpu,
        gpus=int(device.gpus),
        gpu_memory_mib=device.memory_mib,
        vcpus=each.vcpus,
        memory_gib=each.memory_gib,
        arch=each.arch,
        network_gbit_per_s=each.network_gbit_per_s,
        network_peak_gbit_per_s=each.network_peak_gbit_per_s,
        network_kind="rdma" if each.rdma else "tcp",
        network_basis="listed" if each.network_gbit_per_s else "unknown",
        intra_kind=(nearest.intra_kind or "pcie") if several else "",
        intra_gb_per_s=nearest.intra_gb_per_s if several else None,
        host_gb_per_s=nearest.host_gb_per_s,
        local_disk_gib=each.local_disk_gib,
        local_disk_mb_per_s=round(min(each.local_disk_gib * slow, _DISK_MB_PER_S_MAX)),
        quota_family=_quota_family(each.instance_type, wanted.types.values()),
        status=_status(each.usage),
        kind="quote",
        source=1,
        as_of=wanted.today,
    )


def _device_problem(each: Described, device: Device) -> str:
    if each.mixed:
        return "several kinds of GPUs"
    if device.gpus != int(device.gpus) or device.gpus < 1:
        return "part of a GPU"
    if device.memory_mib <= 0:
        return "memory not stated"
    if device.total_mib and device.total_mib != device.memory_mib * device.gpus:
        return "the memory of one GPU and of all do not agree"
    if each.vcpus <= 0 or each.memory_gib <= 0:
        return "vCPUs or memory not stated"
    return ""


def _quota_family(name: str, types: Iterable[InstanceType]) -> str:
    """The quota of the same generation ("p5"), else of the same letter if it has but one."""
    by_head: dict[str, set[str]] = {}
    for each in types:
        if each.gpu:
            for head in _heads(each.instance_type):
                by_head.setdefault(head, set()).add(each.quota_family)
    for head in _heads(name):
        families = by_head.get(head, set())
        if len(families) == 1:
            return next(iter(families))
    return ""


def _heads(name: str) -> tuple[str, ...]:
    found = re.match(r"([a-z]+)(\d+)", name)
    return (found[0], found[1]) if found else ()


def _status(usage: frozenset[str]) -> Obtainable:
    if "on-demand" in usage:
        return "open"
    if "spot" in usage:
        return "spot_only"
    return "reservation_only" if "capacity-block" in usage else "unknown"
