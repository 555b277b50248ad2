"""Machines and prices outside the catalog that users hand in as a CSV file: `--offers FILE`."""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import cast

from recommender.catalogs.catalog import Offers
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import InstanceType, Market, OwnMachine
from recommender.errors import UsageError
from recommender.inputs.csv_text import (
    MARKETS,
    CsvRow,
    chosen_cell,
    needed_cell,
    read_csv,
    read_each,
)
from recommender.inputs.own_hardware import Links, assumed, bare, links, reference
from recommender.inputs.units import count_of, parse_money, whole_of
from recommender.plan.limits import QuotaLimit
from recommender.text import shown, unknown

_REQUIRED = ("label", "gpu", "gpus", "usd_per_hour")
_OPTIONAL = (
    "count", "market", "region", "instance_type", "network_gbit_per_s", "network", "intra",
    "intra_gb_per_s", "vcpus", "memory_gib", "disk_mb_per_s", "host_gb_per_s", "gpu_memory_gib",
    "as_of",
)  # fmt: skip
COLUMNS = (*_REQUIRED, *_OPTIONAL)
_NOT_HARDWARE = ("label", "instance_type", "usd_per_hour", "count", "market", "region")
_HARDWARE = tuple(name for name in COLUMNS if name not in _NOT_HARDWARE)
_NAMES = ("instance_type", "family", "quota_family")
_SOLD_IN = {word: cast(Market, market) for word, market in MARKETS.items() if market != "any"}
_SYNONYMS = {"provider": "label", "price": "usd_per_hour", "machines": "count"}
_NETWORKS = {"tcp": "tcp", "ethernet": "tcp", "rdma": "rdma", "infiniband": "rdma", "efa": "rdma"}
_LINKS = {kind: kind for kind in ("pcie", "nvlink", "nvswitch", "xgmi", "neuronlink")}
_GPUS = whole_of("8", most=1024)
_COUNT = whole_of("4", most=100_000)
_SIZE = count_of("64", most=1e6)  # vCPUs, GiB, Gbit/s, GB/s, MB/s


_Words = tuple[str | None, ...]  # the cells of a row that describe hardware


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """Machines outside the catalog, and how many of them there are."""

    machines: tuple[OwnMachine, ...]  # behind each offer
    offers: Offers
    limits: tuple[QuotaLimit, ...]


def read_offers(
    path: Path, memory_mib: Mapping[str, int], known: Collection[InstanceType], today: date
) -> OwnMachines:
    """Read own machines and quotes from a CSV file; `memory_mib` names the known GPUs.

    Columns: `COLUMNS` (docs/own-machines.md). What a row leaves out of a machine is taken of one
    of the `known` with the same GPU.
    """
    rows = read_csv(path, _REQUIRED, _OPTIONAL, _SYNONYMS)
    reader = _Reader(memory_mib, known, today.isoformat(), {}, {}, {})
    machines, *places = zip(*read_each(rows, reader.row), strict=True)
    limits = read_each([row for row in rows if "count" in row.cells], reader.limit)
    _refuse_twins(machines, shown(path.name))
    return OwnMachines(machines, _own_offers(machines, *places), limits)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads rows; hardware that many of them describe in the same words is worked out once."""

    memory_mib: Mapping[str, int]
    known: Collection[InstanceType]
    today: str
    hardware: dict[_Words, dict[str, object]]
    machines: dict[tuple[str, _Words], OwnMachine]
    counts: dict[str, int]

    def row(self, row: CsvRow) -> tuple[OwnMachine, str, Market, float]:
        """The machine of a row, its region, market and USD per hour."""
        name, words = _name(row), tuple(map(row.cells.get, _HARDWARE))
        machine = self.machines.get((name, words))
        if machine is None:
            if words not in self.hardware:
                self.hardware[words] = self._hardware(row)
            named = {"instance_type": name, "family": name, "quota_family": name}
            machine = OwnMachine(**self.hardware[words], **named)  # type: ignore[arg-type]
            self.machines[name, words] = machine
        market = chosen_cell(row, "market", _SOLD_IN, "on-demand")
        usd = parse_money(needed_cell(row, "usd_per_hour"), row.where("usd_per_hour"))
        return machine, row.cells.get("region", "own"), market, usd

    def limit(self, row: CsvRow) -> QuotaLimit:
        """How many there are of a machine."""
        text = row.cells["count"]
        if text not in self.counts:
            self.counts[text] = _COUNT(text, row.where("count"))
        region = row.cells.get("region", "own")
        return QuotaLimit("own", _name(row), "any", region, "machine", self.counts[text])

    def _hardware(self, row: CsvRow) -> dict[str, object]:
        """All of a machine but its name."""
        gpu, gpus = _gpu(row, self.memory_mib), _GPUS(needed_cell(row, "gpus"), row.where("gpus"))
        memory_gib = _optional(row, "gpu_memory_gib") or self.memory_mib[gpu] / 1024
        like = reference(gpu, gpus, self.known)
        given = replace(
            _hardware(row, like or bare(gpu, gpus)),
            gpu_memory_mib=round(memory_gib * 1024),
            as_of=_date(row, self.today),
        )
        between = links(given, _links(row), self.known, row.where("intra"))
        whole = replace(given, intra_kind=between.kind, intra_gb_per_s=between.gb_per_s)
        return {
            **{n.name: getattr(whole, n.name) for n in fields(whole) if n.name not in _NAMES},
            "like": f"{like.provider} {like.instance_type}" if like else "",
            "assumed": assumed(whole, row.cells),
        }


def _hardware(row: CsvRow, like: InstanceType) -> InstanceType:
    """A machine as its row tells it, its links aside; the rest as another machine has it."""
    network = _optional(row, "network_gbit_per_s")
    basis = "documented" if network else "scaled" if like.network_gbit_per_s else "unknown"
    network = network or like.network_gbit_per_s
    return replace(
        like,
        provider="own",
        instance_type=_name(row),
        family=_name(row),
        vcpus=round(_optional(row, "vcpus") or like.vcpus),
        memory_gib=_optional(row, "memory_gib") or like.memory_gib,
        arch="x86_64",
        network_gbit_per_s=network,
        network_peak_gbit_per_s=network,
        network_kind=chosen_cell(row, "network", _NETWORKS, like.network_kind),
        network_basis=basis,
        host_gb_per_s=_optional(row, "host_gb_per_s") or like.host_gb_per_s,
        local_disk_mb_per_s=_optional(row, "disk_mb_per_s") or like.local_disk_mb_per_s,
        quota_family=_name(row),
        status="open",
        kind="quote",
        source=0,
    )


def _links(row: CsvRow) -> Links:
    kind = chosen_cell(row, "intra", _LINKS, "pcie") if "intra" in row.cells else ""
    return Links(kind, _optional(row, "intra_gb_per_s"))


def _own_offers(
    machines: Sequence[OwnMachine],
    regions: Sequence[str],
    markets: Sequence[Market],
    usd_per_hour: Sequence[float],
) -> Offers:
    rows = len(machines)
    return Offers(
        provider=("own",) * rows,
        instance_type=[machine.instance_type for machine in machines],
        region=regions,
        zone=("",) * rows,
        market=markets,
        usd_per_hour=array("d", usd_per_hour),
        obtainable=("open",) * rows,
        kind=("quote",) * rows,
        flag=("imported",) * rows,
        uncertainty=array("d", bytes(8 * rows)),
        interruption_range=(None,) * rows,
        source=(0,) * rows,
        as_of=[machine.as_of for machine in machines],
    )


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


def _refuse_twins(machines: Iterable[OwnMachine], name: str) -> None:
    seen: dict[str, InstanceType] = {}
    for machine in machines:
        known = seen.setdefault(machine.instance_type, machine)
        if known is not machine and known != machine:
            raise UsageError(
                f"{name}: '{machine.instance_type}' describes two different machines; "
                "give them different labels"
            )
