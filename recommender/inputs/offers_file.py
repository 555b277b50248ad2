"""Machines and prices outside the catalog that users hand in as a CSV file: `--offers FILE`."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import cast

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import InstanceType, Market, Offer
from recommender.errors import UsageError
from recommender.inputs.csv_text import (
    MARKETS,
    CsvRow,
    chosen_cell,
    needed_cell,
    read_csv,
    read_each,
)
from recommender.inputs.units import count_of, parse_money, whole_of
from recommender.plan.limits import QuotaLimit
from recommender.text import shown, unknown

_REQUIRED = ("label", "gpu", "gpus", "usd_per_hour")
_OPTIONAL = (
    "instance_type", "region", "market", "vcpus", "memory_gib", "network_gbit_per_s", "network",
    "intra", "gpu_memory_gib", "count", "as_of",
)  # fmt: skip
_SYNONYMS = {"provider": "label", "price": "usd_per_hour", "machines": "count"}
_NETWORKS = {"tcp": "tcp", "ethernet": "tcp", "rdma": "rdma", "infiniband": "rdma", "efa": "rdma"}
_INTRA = {"pcie": "pcie", "nvlink": "nvlink", "nvswitch": "nvswitch"}
# What the smallest cloud machines give each GPU (g5, a2, NC A100 v4: 8-24 vCPU, 32-220 GiB).
_VCPUS_PER_GPU, _MEMORY_GIB_PER_GPU = 8, 64
_GPUS = whole_of("8", most=1024)
_COUNT = whole_of("4", most=100_000)
_SIZE = count_of("64", most=1e6)  # vCPUs, GiB, Gbit/s
_HOST_GB_PER_S = 12.0  # PCIe 3.0 x16 as measured; the slowest that is common


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """Machines outside the catalog, and how many of them there are."""

    rows: tuple[tuple[InstanceType, Offer], ...]
    limits: tuple[QuotaLimit, ...]


def read_offers(path: Path, memory_mib: Mapping[str, int], today: date) -> OwnMachines:
    """Read own machines and quotes from a CSV file; `memory_mib` names the known GPUs.

    Columns: label (or provider), gpu, gpus, usd_per_hour; optional instance_type, region,
    market, vcpus, memory_gib, network_gbit_per_s, network (tcp, rdma), intra (pcie, nvlink,
    nvswitch), gpu_memory_gib, count (how many machines there are) and as_of.
    """
    rows = read_csv(path, _REQUIRED, _OPTIONAL, _SYNONYMS)
    machines = read_each(rows, lambda row: _own_machine(row, memory_mib, today.isoformat()))
    limits = read_each([row for row in rows if "count" in row.cells], _own_limit)
    _refuse_twins(machines, shown(path.name))
    return OwnMachines(machines, limits)


def _own_machine(
    row: CsvRow, memory_mib: Mapping[str, int], today: str
) -> tuple[InstanceType, Offer]:
    gpu = _gpu(row, memory_mib)
    gpus = _GPUS(needed_cell(row, "gpus"), row.where("gpus"))
    as_of = _date(row, today)
    network = _optional(row, "network_gbit_per_s")
    machine = InstanceType(
        provider="own",
        instance_type=_name(row),
        family=_name(row),
        gpu=gpu,
        gpus=gpus,
        gpu_memory_mib=round((_optional(row, "gpu_memory_gib") or memory_mib[gpu] / 1024) * 1024),
        vcpus=round(_optional(row, "vcpus") or _VCPUS_PER_GPU * gpus),
        memory_gib=_optional(row, "memory_gib") or _MEMORY_GIB_PER_GPU * gpus,
        arch="x86_64",
        network_gbit_per_s=network,
        network_peak_gbit_per_s=network,
        network_kind=chosen_cell(row, "network", _NETWORKS, "tcp"),
        network_basis="documented" if network else "unknown",
        intra_kind=chosen_cell(row, "intra", _INTRA, "pcie") if gpus > 1 else "",
        intra_gb_per_s=None,
        host_gb_per_s=_HOST_GB_PER_S,
        local_disk_gib=0.0,
        local_disk_mb_per_s=0.0,
        quota_family=_name(row),
        status="open",
        kind="quote",
        source=0,
        as_of=as_of,
    )
    return machine, _own_offer(row, machine)


def _own_offer(row: CsvRow, machine: InstanceType) -> Offer:
    markets = {key: market for key, market in MARKETS.items() if market != "any"}
    return Offer(
        provider="own",
        instance_type=machine.instance_type,
        region=row.cells.get("region", "own"),
        zone="",
        market=cast(Market, chosen_cell(row, "market", markets, "on-demand")),
        usd_per_hour=parse_money(needed_cell(row, "usd_per_hour"), row.where("usd_per_hour")),
        obtainable="open",
        kind="quote",
        flag="imported",
        uncertainty=0.0,
        interruption_range=None,
        source=0,
        as_of=machine.as_of,
    )


def _own_limit(row: CsvRow) -> QuotaLimit:
    count = _COUNT(row.cells["count"], row.where("count"))
    return QuotaLimit("own", _name(row), "any", row.cells.get("region", "own"), "machine", count)


def _name(row: CsvRow) -> str:
    label, kind = needed_cell(row, "label"), row.cells.get("instance_type")
    return f"{label}/{kind}" if kind else label


def _gpu(row: CsvRow, memory_mib: Mapping[str, int]) -> str:
    word = needed_cell(row, "gpu")
    same = [name for name in memory_mib if name.lower() == word.lower()]
    if not same:
        raise UsageError(f"{row.where('gpu')} {unknown('GPU', word, memory_mib)}")
    return same[0]


def _optional(row: CsvRow, column: str) -> float | None:
    text = row.cells.get(column)
    return None if text is None else _SIZE(text, row.where(column))


def _date(row: CsvRow, today: str) -> str:
    text = row.cells.get("as_of", today)
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        where = row.where("as_of")
        raise UsageError(f"{where} {shown(text)} is not a date; write 2026-11-20") from None


def _refuse_twins(machines: tuple[tuple[InstanceType, Offer], ...], name: str) -> None:
    seen: dict[str, InstanceType] = {}
    for machine, _ in machines:
        if seen.setdefault(machine.instance_type, machine) != machine:
            raise UsageError(
                f"{name}: '{machine.instance_type}' describes two different machines; "
                "give them different labels"
            )
