"""Reads machines and prices outside the catalog from a user's CSV file: `--offers FILE`."""

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import cast

from recommender.catalogs.catalog import Offers
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import BillingRule, InstanceType, Market, OwnMachine
from recommender.errors import UsageError
from recommender.inputs.csv_text import (
    MARKETS,
    CsvRow,
    CsvTable,
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
    "as_of", "minimum_h", "step_h", "maximum_h", "start_h", "notice_s",
)  # fmt: skip
_TERMS = ("minimum_h", "step_h", "maximum_h", "start_h", "notice_s")
COLUMNS = (*_REQUIRED, *_OPTIONAL)
_NAMED_BY = ("label", "instance_type")
_NOT_HARDWARE = (*_NAMED_BY, "usd_per_hour", "count", "market", "region", "as_of", *_TERMS)
_HARDWARE = tuple(name for name in COLUMNS if name not in _NOT_HARDWARE)
_NAMES = ("instance_type", "family", "quota_family")
_BUT_NAMES = attrgetter(*(each.name for each in fields(OwnMachine) if each.name not in _NAMES))
_SOLD_IN = {word: cast(Market, market) for word, market in MARKETS.items() if market != "any"}
_SOLD_IN["reserved"] = "reserved_block"
_SYNONYMS = {"provider": "label", "price": "usd_per_hour", "machines": "count"}
_NETWORKS = {"tcp": "tcp", "ethernet": "tcp", "rdma": "rdma", "infiniband": "rdma", "efa": "rdma"}
_KINDS = ("pcie", "nvlink", "nvswitch", "xgmi", "neuronlink", "roce", "ici")
_LINKS = {kind: kind for kind in _KINDS}
# USD per hour of machines that cost nothing more: plans are compared by ratios of costs, so of
# two that are paid anyway the one with fewer machine-hours is the cheaper one.
_PAID_ANYWAY = 1e-9
_GPUS = whole_of("8", most=1024)
_COUNT = whole_of("4", most=100_000)
_HOURS = count_of("24", most=1e5)
_SECONDS = count_of("120", most=1e7)
_SIZE = count_of("64", most=1e6)  # vCPUs, GiB, Gbit/s, GB/s, MB/s


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """Machines outside the catalog, and how many of them there are."""

    hardware: Mapping[str, OwnMachine]  # of each name a machine with its hardware
    offers: Offers
    limits: tuple[QuotaLimit, ...]
    terms: tuple[BillingRule, ...] = ()  # of those whose rows state some


def read_offers(
    path: Path, memory_mib: Mapping[str, int], known: Collection[InstanceType], today: date
) -> OwnMachines:
    """Read own machines and quotes from a CSV file; `memory_mib` lists the known GPUs.

    Columns: `COLUMNS` (docs/own-machines.md). Hardware that a row omits is copied from one of the
    `known` machines with the same GPU.
    """
    table = read_csv(path, _REQUIRED, _OPTIONAL, _SYNONYMS)
    reader = _Reader(memory_mib, known, today.isoformat(), {})
    try:
        names = _names(table)
        machines = table.read(_HARDWARE, reader.machine)
        markets = table.read(("market",), _market)
        usd_per_hour = table.read(("usd_per_hour",), _usd_per_hour)
        dates = table.read(("as_of",), reader.date)
        terms = table.read((*_TERMS, "market"), reader.terms)
    except UsageError:
        read_each(table, reader.refuse)  # reports the mistakes of every row
        raise
    try:
        counts = table.read(("count",), _count)
    except UsageError:
        read_each(table, _count)
        raise
    counts = [
        1 if count is None and usd == _PAID_ANYWAY else count
        for count, usd in zip(counts, usd_per_hour, strict=True)
    ]
    regions = [region or "own" for region in table.column("region")]
    return OwnMachines(
        _by_name(names, machines, table.name),
        _own_offers(names, regions, markets, usd_per_hour, dates),
        _limits(names, regions, counts),
        _terms_by_name(names, terms, table.name),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the machines of rows, each kind of hardware as one."""

    memory_mib: Mapping[str, int]
    known: Collection[InstanceType]
    today: str
    made: dict[object, OwnMachine]

    def refuse(self, row: CsvRow) -> None:
        """Raise `UsageError` for the first thing that is wrong with a row."""
        needed_cell(row, "label")
        self.machine(row)
        _market(row)
        _usd_per_hour(row)
        self.date(row)
        self.terms(row)

    def terms(self, row: CsvRow) -> BillingRule | None:
        """On which terms a row's machine is rented; None where it does not say."""
        if not any(name in row.cells for name in _TERMS):
            return None
        hours = {name: _given(row, name, _HOURS) for name in _TERMS[:-1]}
        least, step, most, start = (None if h is None else 3600.0 * h for h in hours.values())
        if most is not None and most < (least or 0.0):
            raise UsageError(f"{row.where('maximum_h')} is less than minimum_h")
        return BillingRule(
            provider=OWN,
            market=_market(row),
            minimum_s=max(least or 0.0, step or 0.0),
            free_if_interrupted_within_s=0.0,
            notice_s=_given(row, "notice_s", _SECONDS) or 0.0,
            source=0,
            as_of=self.today,
            step_s=step or 1.0,
            maximum_s=most,
            lead_s=start or 0.0,
            wait_s=start,
        )

    def date(self, row: CsvRow) -> str:
        """The day of a row's price; today where it does not say."""
        text = row.cells.get("as_of", self.today)
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            where = row.where("as_of")
            raise UsageError(f"{where} {shown(text)} is not a date; write 2026-11-20") from None

    def machine(self, row: CsvRow) -> OwnMachine:
        """The machine of a row, or one before it that differs by name alone."""
        gpu, gpus = _gpu(row, self.memory_mib), _GPUS(needed_cell(row, "gpus"), row.where("gpus"))
        memory_gib = _optional(row, "gpu_memory_gib") or self.memory_mib[gpu] / 1024
        like = reference(gpu, gpus, self.known)
        given = replace(
            _hardware(row, like or bare(gpu, gpus)),
            gpu_memory_mib=round(memory_gib * 1024),
            as_of=self.today,
        )
        between = links(given, _links(row), self.known, row.where("intra"))
        whole = replace(given, intra_kind=between.kind, intra_gb_per_s=between.gb_per_s)
        machine = OwnMachine(
            **{each.name: getattr(whole, each.name) for each in fields(whole)},
            like=f"{like.provider} {like.instance_type}" if like else "",
            assumed=assumed(whole, row.cells),
        )
        return self.made.setdefault(_BUT_NAMES(machine), machine)


def _market(row: CsvRow) -> Market:
    return chosen_cell(row, "market", _SOLD_IN, "on-demand")


def _usd_per_hour(row: CsvRow) -> float:
    """What an hour costs; next to nothing if it is paid anyway."""
    where = row.where("usd_per_hour")
    return parse_money(needed_cell(row, "usd_per_hour"), where, zero=True) or _PAID_ANYWAY


def _count(row: CsvRow) -> int | None:
    """How many there are of a machine; None where its row does not say."""
    text = row.cells.get("count")
    return None if text is None else _COUNT(text, row.where("count"))


def _hardware(row: CsvRow, like: InstanceType) -> InstanceType:
    """A machine as its row describes it, without links; the rest is that of a similar machine."""
    name = _name(needed_cell(row, "label"), row.cells.get("instance_type", ""))
    network = _optional(row, "network_gbit_per_s")
    basis = "documented" if network else "scaled" if like.network_gbit_per_s else "unknown"
    network = network or like.network_gbit_per_s
    return replace(
        like,
        provider="own",
        instance_type=name,
        family=name,
        vcpus=round(_optional(row, "vcpus") or like.vcpus),
        memory_gib=_optional(row, "memory_gib") or like.memory_gib,
        arch="x86_64",
        network_gbit_per_s=network,
        network_peak_gbit_per_s=network,
        network_kind=chosen_cell(row, "network", _NETWORKS, like.network_kind),
        network_basis=basis,
        host_gb_per_s=_optional(row, "host_gb_per_s") or like.host_gb_per_s,
        local_disk_mb_per_s=_optional(row, "disk_mb_per_s") or like.local_disk_mb_per_s,
        quota_family=name,
        status="open",
        kind="quote",
        source=0,
    )


def _links(row: CsvRow) -> Links:
    kind = chosen_cell(row, "intra", _LINKS, "pcie") if "intra" in row.cells else ""
    return Links(kind, _optional(row, "intra_gb_per_s"))


def _own_offers(
    names: Sequence[str],
    regions: Sequence[str],
    markets: Sequence[Market],
    usd_per_hour: Sequence[float],
    dates: Sequence[str],
) -> Offers:
    rows = len(names)
    return Offers(
        provider=(OWN,) * rows,
        instance_type=names,
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
        as_of=dates,
    )


def _limits(
    names: Iterable[str], regions: Iterable[str], counts: Iterable[int | None]
) -> tuple[QuotaLimit, ...]:
    """How many there are of each machine, where the file says so."""
    rows = zip(names, regions, counts, strict=True)
    return tuple(
        QuotaLimit(OWN, name, "any", region, "machine", count)
        for name, region, count in rows
        if count is not None
    )


def _names(table: CsvTable) -> list[str]:
    labels, kinds = table.column("label"), table.column("instance_type")
    if "" in labels:
        needed_cell(table[labels.index("")], "label")
    return list(map(_name, labels, kinds))


def _name(label: str, kind: str) -> str:
    return f"{label}/{kind}" if kind else label


def _gpu(row: CsvRow, memory_mib: Mapping[str, int]) -> str:
    word = needed_cell(row, "gpu")
    same = [name for name in memory_mib if name.lower() == word.lower()]
    if not same:
        raise UsageError(f"{row.where('gpu')} {unknown('GPU', word, memory_mib)}")
    return same[0]


def _optional(row: CsvRow, column: str) -> float | None:
    return _given(row, column, _SIZE)


def _given(row: CsvRow, column: str, read: Callable[[str, str], float]) -> float | None:
    text = row.cells.get(column)
    return None if text is None else read(text, row.where(column))


def _terms_by_name(
    names: Iterable[str], terms: Iterable[BillingRule | None], file: str
) -> tuple[BillingRule, ...]:
    """The terms of each name in each market; refuses two of one name."""
    found: dict[tuple[str, str], BillingRule] = {}
    for name, rule in zip(names, terms, strict=True):
        if rule is not None:
            rule = replace(rule, instance_type=name)
            if found.setdefault((name, rule.market), rule) != rule:
                raise UsageError(f"{file}: '{name}' has two sets of terms; give different labels")
    return tuple(found.values())


def _by_name(
    names: Iterable[str], machines: Iterable[OwnMachine], file: str
) -> dict[str, OwnMachine]:
    """The hardware of each name; refuses a name of two kinds."""
    found: dict[str, OwnMachine] = {}
    for name, machine in zip(names, machines, strict=True):
        if found.setdefault(name, machine) is not machine:
            raise UsageError(
                f"{file}: '{name}' describes two different machines; give them different labels"
            )
    return found
