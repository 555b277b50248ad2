"""Fills in hardware that an offers file omits from a catalog machine with the same GPU."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.gpu_links import GpuLinks, has_links, usual_links
from recommender.catalogs.schema import InstanceType
from recommender.errors import UsageError
from recommender.text import number

_SWITCHED = ("nvlink", "nvswitch")  # people call the links of an HGX board by either name
# An all-reduce over PCIe by a host's copy rate: 10 of 13.5 GB/s on A10G, L4 and L40S, 40 of 55.6
# on RTX PRO 6000, 5 of 6.3 on T4 (catalog, 2026-08).
_PCIE_SHARE = 0.74
# Of a GPU that no catalog machine has: what the smallest cloud machines give each GPU (g5, a2,
# NC A100 v4: 8-24 vCPU, 32-220 GiB), and PCIe 3.0 x16 as measured, the slowest that is common.
_VCPUS, _MEMORY_GIB, _HOST_GB_PER_S = 8, 64.0, 12.0
_MAX_DISK_MB_PER_S = 8000.0  # of any machine of the catalog (2026-08)


@dataclass(frozen=True, slots=True)
class Links:
    """The links between a machine's GPUs as a row states them; "" and None if it does not."""

    kind: str
    gb_per_s: float | None


def reference(gpu: str, gpus: int, known: Iterable[InstanceType]) -> InstanceType | None:
    """Find a catalog machine with so many GPUs of a type; None if the catalog lacks the GPU.

    Of the machines with that number (or the next more, or the next fewer, scaled in proportion)
    this is the one with the slowest network.
    """
    alike = [t for t in known if t.gpu == gpu and t.gpus > 0 and t.provider != "own"]
    if not alike:
        return None
    like = min(alike, key=lambda t: (*_distance(t, gpus), t.network_gbit_per_s or 1e9, *_name(t)))
    ratio = gpus / like.gpus
    network = like.network_gbit_per_s
    return replace(
        like,
        gpus=gpus,
        vcpus=max(1, round(like.vcpus * ratio)),
        memory_gib=like.memory_gib * ratio,
        network_gbit_per_s=network * ratio if network else None,
        local_disk_mb_per_s=min(like.local_disk_mb_per_s * ratio, _MAX_DISK_MB_PER_S),
    )


def bare(gpu: str, gpus: int) -> InstanceType:
    """A machine with GPUs that no catalog machine has."""
    return InstanceType(
        provider="own",
        instance_type="",
        family="",
        gpu=gpu,
        gpus=gpus,
        gpu_memory_mib=0,
        vcpus=_VCPUS * gpus,
        memory_gib=_MEMORY_GIB * gpus,
        arch="x86_64",
        network_gbit_per_s=None,
        network_peak_gbit_per_s=None,
        network_kind="tcp",
        network_basis="unknown",
        intra_kind="",
        intra_gb_per_s=None,
        host_gb_per_s=_HOST_GB_PER_S,
        local_disk_gib=0.0,
        local_disk_mb_per_s=0.0,
        quota_family="",
        status="open",
        kind="fallback",
        source=0,
        as_of="",
    )


def links(machine: InstanceType, given: Links, known: Iterable[InstanceType], where: str) -> Links:
    """The links between a machine's GPUs: as stated, or the usual ones of that GPU.

    These are those of the most similar catalog machine with at least as many of the GPU, of the
    table `gpu_links`, or of a catalog machine with fewer.

    Raises `UsageError` for a kind of link that no machine with this GPU has, unless its rate is
    stated.
    """
    if machine.gpus < 2:
        return Links("", None)
    alike = [t for t in known if t.gpu == machine.gpu and t.gpus > 1 and t.provider != "own"]
    alike.sort(key=lambda t: (*_distance(t, machine.gpus), t.intra_gb_per_s or 1e9, *_name(t)))
    found = _known_links(machine, given.kind, alike)
    if given.gb_per_s is not None:
        return Links(given.kind or (found.kind if found else "pcie"), given.gb_per_s)
    if found is not None:
        return found
    if given.kind in ("", "pcie"):
        return Links("pcie", _PCIE_SHARE * machine.host_gb_per_s)
    raise UsageError(
        f"{where} {given.kind}: no machine with {machine.gpu} and {given.kind} is known; "
        "give the links' rate as well, in column intra_gb_per_s"
    )


def _known_links(machine: InstanceType, kind: str, alike: Sequence[InstanceType]) -> Links | None:
    """The links of a kind, or the usual ones, of machines that the catalog or the table knows."""
    kinds = _same_links(kind, machine.gpu, alike)
    of_kind = [t for t in alike if not kind or t.intra_kind in kinds]
    sold = next((t for t in of_kind if t.gpus >= machine.gpus), None)
    if sold is not None:
        return Links(kind or sold.intra_kind, sold.intra_gb_per_s)
    usual = _usual(machine, kinds) if kind else usual_links(machine.gpu, machine.gpus)
    if usual is not None and usual.gb_per_s is not None:
        stated = kind if usual.intra_kind in kinds else ""
        return Links(stated or usual.intra_kind, usual.gb_per_s)
    return Links(kind or of_kind[0].intra_kind, of_kind[0].intra_gb_per_s) if of_kind else None


def _usual(machine: InstanceType, kinds: Sequence[str]) -> GpuLinks | None:
    """The table's links of these kinds; of more GPUs than bridges link, those between pairs."""
    gpu, gpus = machine.gpu, machine.gpus
    found = next((row for row in (usual_links(gpu, gpus, kind) for kind in kinds) if row), None)
    pairs_only = found is None and any(has_links(gpu, kind) for kind in kinds)
    return usual_links(gpu, gpus) if pairs_only else found


def _same_links(kind: str, gpu: str, alike: Sequence[InstanceType]) -> tuple[str, ...]:
    """The kinds that people mean by a kind."""
    exact = any(t.intra_kind == kind for t in alike) or has_links(gpu, kind)
    on_boards = any(usual_links(gpu, 4, each) for each in _SWITCHED)
    on_boards |= any(t.intra_kind in _SWITCHED and t.gpus > 2 for t in alike)
    return _SWITCHED if kind in _SWITCHED and on_boards and not exact else (kind,)


def _distance(machine: InstanceType, gpus: int) -> tuple[bool, int]:
    """Sorts machines by their number of GPUs: as many, then more, then fewer."""
    return machine.gpus < gpus, abs(machine.gpus - gpus)


def _name(machine: InstanceType) -> tuple[str, str]:
    return machine.provider, machine.instance_type


def assumed(machine: InstanceType, given: Mapping[str, str]) -> tuple[str, ...]:
    """Describe the hardware that was assumed; `given` are the cells of the file by column."""
    as_given = given.get("intra", "").casefold() == machine.intra_kind
    links = "links" if as_given else _KINDS[machine.intra_kind]
    if machine.intra_gb_per_s is not None:
        links = f"{links} {number(machine.intra_gb_per_s)} GB/s"
    net, disk = machine.network_gbit_per_s, machine.local_disk_mb_per_s
    network = [f"{number(net)} Gbit/s"] if net and "network_gbit_per_s" not in given else []
    network += [_KINDS[machine.network_kind]] if net and "network" not in given else []
    words = {
        "vcpus": f"{machine.vcpus} vCPU",
        "memory_gib": f"{number(machine.memory_gib)} GiB",
        "network": " ".join(network),
        "intra_gb_per_s": links if machine.gpus > 1 else "",
        "host_gb_per_s": f"{number(machine.host_gb_per_s)} GB/s to the host",
        "disk_mb_per_s": f"local disk {number(disk)} MB/s" if disk else "no local disk",
    }
    always = {"network"} if network else set()  # of its two columns one may be given
    return tuple(word for name, word in words.items() if word and name not in {*given} - always)


LINKS = {
    "pcie": "PCIe", "nvlink": "NVLink", "nvswitch": "NVSwitch", "xgmi": "xGMI",
    "neuronlink": "NeuronLink", "roce": "RoCE", "ici": "ICI",
}  # fmt: skip
_KINDS = {"": "", "tcp": "TCP", "rdma": "RDMA", **LINKS}
