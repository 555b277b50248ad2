"""Instance types: what the providers list, joined with GPUs, fabrics and quotas."""

import re
from dataclasses import dataclass
from pathlib import Path

from recommender.catalogs.schema import InstanceType, Obtainable, Provider
from tests.research.snapshot.fabric import (
    UNKNOWN,
    HostCopies,
    Network,
    documented_network,
    intra_machine,
    rdma_gbit_per_s,
)
from tests.research.snapshot.gpus import fitted_gpus, short_names
from tests.research.snapshot.quotas import quota_family
from tests.research.snapshot.reading import Cells, iso_date, number, read_hand, read_table
from tests.research.snapshot.sources import SourceBook, cite

_GIB_PER_GB = 1e9 / 2**30
# Writing to local disks where nothing is published: a 375 GiB SSD of Google Cloud writes
# 350 MB/s (its size page, 2026-01), a hard disk of 2 TB about 200 MB/s.
_SSD_MB_PER_S_PER_GIB, _HDD_MB_PER_S_PER_GIB, _DISK_MB_PER_S_MAX = 1.0, 0.1, 8000.0
_MACHINE_OF_N1 = re.compile(r"(n1-(?:standard|highmem)-\d+)\+(\d+)x(\w+)")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a provider lists of an instance type, corrections included."""

    vcpus: int
    memory_gib: float
    row: Cells

    def get(self, name: str) -> str:
        """Give a cell; a column that only one of the tables has is empty in the other."""
        return self.row.get(name, "")


class Machines:
    """Makes the row of each instance type that an offer names."""

    def __init__(self, reference: Path, book: SourceBook) -> None:
        self.fitted = fitted_gpus(reference)
        self._book = book
        self._facts = _facts(reference)
        self._pcie = pcie_generations(reference)
        gpu_of = {key: fitted.gpu for key, fitted in self.fitted.items()}
        self._host = HostCopies(reference, gpu_of)
        self._retirements = read_hand("retirements")

    def trains(self, provider: Provider, instance_type: str) -> bool:
        """Say whether a type holds whole GPUs that can train."""
        key = (provider, _joined_name(instance_type))
        return key in self.fitted and (self._known(provider, instance_type) is not None)

    def is_cpu(self, provider: str, instance_type: str) -> bool:
        """Say whether a type is one of the cheap machines that checkpoints go to."""
        facts = self._facts.get((provider, instance_type))
        return facts is not None and facts.get("role") == "anchor/cpu"

    def status(self, provider: Provider, instance_type: str) -> Obtainable:
        """Say whether a new customer can rent a type: by hand, or by its absence from lists."""
        for row in self._retirements:
            if row["provider"] == provider and re.fullmatch(row["pattern"], instance_type):
                return row["obtainable"]  # type: ignore[return-value]
        facts = self._known(provider, instance_type)
        status = facts.get("status") if facts else ""
        gone = "absent" in status or "retired" in status or status == "INACTIVE"
        return "retired" if gone else "open"

    def row(self, provider: Provider, instance_type: str) -> InstanceType:
        """Make the row of an instance type."""
        facts = self._known(provider, instance_type)
        if facts is None:
            raise ValueError(f"{provider} {instance_type}: no hardware facts")
        fitted = self.fitted.get((provider, _joined_name(instance_type)))
        gpu, gpus = (fitted.gpu, fitted.count) if fitted else ("", 0)
        family = family_of(provider, instance_type)
        network = self._network(provider, instance_type, facts)
        intra = intra_machine(gpu, gpus)
        disk = _disk_gib(provider, facts)
        return InstanceType(
            provider=provider,
            instance_type=instance_type,
            family=family,
            gpu=gpu,
            gpus=gpus,
            gpu_memory_mib=fitted.memory_mib if fitted else 0,
            vcpus=facts.vcpus,
            memory_gib=facts.memory_gib,
            arch=facts.get("arch") or "x86_64",
            network_gbit_per_s=network.gbit_per_s,
            network_peak_gbit_per_s=network.peak_gbit_per_s,
            network_kind=network.kind,
            network_basis=network.basis,
            intra_kind=intra.kind,
            intra_gb_per_s=intra.gb_per_s,
            host_gb_per_s=self._host.rate(provider, gpu, self._pcie.get(gpu, "")) if gpu else 0.0,
            local_disk_gib=disk,
            local_disk_mb_per_s=_disk_speed(facts, disk),
            quota_family=quota_family(provider, instance_type, family, gpu),
            status=self.status(provider, instance_type),
            kind="quote",
            source=cite(self._book, facts.get("source")),
            as_of=iso_date(facts.get("source_date")),
        )

    def _known(self, provider: Provider, instance_type: str) -> Facts | None:
        attached = _MACHINE_OF_N1.fullmatch(instance_type)
        return self._facts.get((provider, attached.group(1) if attached else instance_type))

    def _network(self, provider: Provider, instance_type: str, facts: Facts) -> Network:
        if provider == "aws":
            return _aws_network(facts)
        host = instance_type.partition("+")[0]
        documented = documented_network(provider, host, facts.vcpus)
        if documented is not None:
            return documented
        fabric = rdma_gbit_per_s(facts.get("rdma_tech"))
        if fabric is not None:
            return Network(fabric, None, "rdma", "documented")
        rate = number(facts.get("net_peak_gbps"))
        return Network(rate, None, "tcp", "documented") if rate else UNKNOWN


def family_of(provider: Provider, instance_type: str) -> str:
    """Name the family of an instance type: "p5", "a3-highgpu", "NDH100v5"."""
    if provider == "aws":
        return instance_type.partition(".")[0]
    if provider == "gcp":
        return "-".join(instance_type.split("-")[:2])
    series = re.fullmatch(
        r"Standard_([A-Z]+)\d+\w*?(?:_NDR)?(?:_([A-Z0-9]+))?(?:_(v\d))?", instance_type
    )
    if not series:
        raise ValueError(f"{instance_type}: not an Azure size")
    return "".join(part or "" for part in series.groups())


def attached_name(host: str, count: int, gpu: str) -> str:
    """Name a host with GPUs attached: "n1-standard-8+1xT4"."""
    return f"{host}+{count}x{gpu}"


def _joined_name(instance_type: str) -> str:
    """Give the name under which the join lists a host with GPUs attached."""
    attached = _MACHINE_OF_N1.fullmatch(instance_type)
    return f"n1 + {attached.group(2)}x {attached.group(3)}" if attached else instance_type


def _facts(reference: Path) -> dict[tuple[str, str], Facts]:
    """Read the lists of instance types; a row of `extra_instances.csv` wins."""
    facts = {}
    for row in read_table(reference / "hardware" / "instances.csv"):
        if row["vcpus"] and "attachable" not in row["instance_type"]:
            facts[row["cloud"], row["instance_type"]] = _one(row)
    for row in read_table(reference / "prices" / "cpu.csv"):
        key = (row["cloud"], row["instance_type"])
        if key not in facts and row["instance_type"].startswith("n1-"):
            facts[key] = _host(row)
    for row in read_table(reference / "prices" / "extra_gcp_n1.csv"):
        facts.setdefault((row["cloud"], row["instance_type"]), _host(row))
    for row in read_table(reference / "hardware" / "extra_instances.csv"):
        key = (row["cloud"], row["instance_type"])
        old = facts[key].row if key in facts else {"local_storage_type": "ssd"}
        rate = row["net_gbps"]
        known = {name: text for name, text in row.items() if text}
        facts[key] = _one({**old, **known, "net_baseline_gbps": rate, "net_peak_gbps": rate})
    return facts


def _one(row: Cells) -> Facts:
    return Facts(int(row["vcpus"]), float(row["memory_gib"]), row)


def _host(row: Cells) -> Facts:
    return _one({**row, "source_date": row["as_of"]})


def pcie_generations(reference: Path) -> dict[str, str]:
    """The PCIe generation of each GPU, where it is known."""
    names = short_names()
    table = read_table(reference / "hardware" / "gpus.csv")
    listed = {names[r["gpu_id"]]: r["pcie_gen"] for r in table if r["gpu_id"] in names}
    by_hand = {row["gpu"]: row["pcie"] for row in read_hand("gpu_names") if row["pcie"]}
    return listed | by_hand


def _aws_network(facts: Facts) -> Network:
    rate = number(facts.get("net_baseline_gbps"))
    peak = number(facts.get("net_peak_gbps"))
    if rate is None:
        return UNKNOWN
    kind = "rdma" if number(facts.get("efa_max_interfaces")) else "tcp"
    return Network(rate, peak if peak != rate else None, kind, "listed")


def _disk_gib(provider: Provider, facts: Facts) -> float:
    size = number(facts.get("local_storage_gb")) or 0.0
    return size if provider == "gcp" else round(size * _GIB_PER_GB)


def _disk_speed(facts: Facts, gib: float) -> float:
    slow = facts.get("local_storage_type") == "hdd"
    rate = gib * (_HDD_MB_PER_S_PER_GIB if slow else _SSD_MB_PER_S_PER_GIB)
    return round(min(rate, _DISK_MB_PER_S_MAX))
