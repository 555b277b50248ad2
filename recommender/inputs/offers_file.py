"""Reads machines and prices outside the catalog from a user's CSV file, and writes an example."""

import csv
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeVar

from recommender.catalogs.catalog import Offers
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import ONE_HOST, BillingRule, InstanceType, Market, OwnMachine
from recommender.errors import UsageError
from recommender.inputs.csv_text import (
    CsvRow,
    CsvTable,
    chosen_cell,
    needed_cell,
    read_csv,
    read_each,
)
from recommender.inputs.own_hardware import LINKS, Links, assumed, bare, links, reference
from recommender.inputs.units import count_of, parse_currency, parse_money, whole_of
from recommender.inputs.units.machines import MARKETS
from recommender.plan.limits import QuotaLimit
from recommender.text import shown, unknown

T = TypeVar("T")

_REQUIRED = ("label", "gpu", "gpus", "usd_per_hour")
with files(__package__).joinpath("offers_columns.csv").open("r", encoding="utf-8") as _file:
    _ROWS = tuple(csv.DictReader(_file))
COLUMNS = {row["column"]: row["meaning"] for row in _ROWS}  # and what each means
_OPTIONAL = tuple(name for name in COLUMNS if name not in _REQUIRED)
_TERMS, _HARDWARE = (
    tuple(row["column"] for row in _ROWS if row["part"] == part) for part in ("terms", "hardware")
)
_TIMES = ("minimum_h", "step_h", "maximum_h", "start_h")
_NAMES = ("instance_type", "family", "quota_family")
_BUT_NAMES = attrgetter(*(each.name for each in fields(OwnMachine) if each.name not in _NAMES))
_SOLD_IN: dict[str, Market] = {**MARKETS, "reserved": "reserved_block"}
_SYNONYMS = {"provider": "label", "price": "usd_per_hour", "machines": "count"}
_NETWORKS = {"tcp": "tcp", "ethernet": "tcp", "rdma": "rdma", "infiniband": "rdma", "efa": "rdma"}
_YES = {"yes": True, "no": False, "true": True, "false": False}
_COUNTRIES = re.compile(r"[A-Z]{2}( [A-Z]{2})*")
_LAUNCHER = re.compile(r"[a-z][a-z0-9_/-]*")
_GB_PER_GIB = 2.0**30 / 1e9
_LINKS = {kind: kind for kind in LINKS}
_TWO_MACHINES = "describes two different machines; give them different labels"
_TWO_TERMS = "has two sets of terms; give different labels"
EXAMPLES = (
    {"label": "lab", "gpu": "H100", "gpus": "8", "usd_per_hour": "12.50", "count": "2",
     "network_gbit_per_s": "400", "network": "rdma"},
    {"label": "workstation", "gpu": "L40S", "gpus": "4", "usd_per_hour": "1.90", "count": "1"},
)  # fmt: skip
_INTRODUCTION = (
    "Machines that you own, or rent from a provider that recommend has no prices for.",
    "recommend JOB --offers offers.csv adds them to the clouds; --provider own uses only them.",
    "Required: label, gpu, gpus, usd_per_hour. Other hardware that a row leaves empty is copied",
    "from the catalog machine with the same GPUs and the slowest network; answers name it.",
    "Lines that begin with # are ignored.",
)
# USD per hour of machines that cost nothing more: plans are compared by ratios of costs, so of
# two that are paid anyway the one with fewer machine-hours is the cheaper one.
_PAID_ANYWAY = 1e-9
_GPUS = whole_of("8", most=1024)
_COUNT = whole_of("4", most=100_000)
_ACCOUNT = count_of("4", "0 (on request)", most=1e5)
_HOURS = count_of("24", most=1e5)
_SECONDS = count_of("120", most=1e7)
_SIZE = count_of("64", most=1e6)  # vCPUs, GiB, Gbit/s, GB/s, MB/s
# Sevenths of the processors and GB of memory (NVIDIA, "MIG User Guide", read 2026-11).
_PROFILE = re.compile(r"[ :-](mig[ -])?(?P<sevenths>[1-7])g\.(?P<gib>\d+)gb$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """Machines outside the catalog, and how many of them there are."""

    hardware: Mapping[str, OwnMachine]  # of each name a machine with its hardware
    offers: Offers
    limits: tuple[QuotaLimit, ...]
    terms: tuple[BillingRule, ...] = ()  # of those whose rows state some
    older: int = 0  # rows that one with a newer date replaces


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
        usd_per_hour = table.read(("usd_per_hour", "currency"), _usd_per_hour)
        dates = table.read(("as_of",), reader.date)
        terms = table.read((*_TERMS, "market", "instance_type"), reader.terms)
    except UsageError:
        read_each(table, reader.refuse)  # reports the mistakes of every row
        raise
    try:
        counts = table.read(("count", "one_host"), _count)
    except UsageError:
        read_each(table, _count)
        raise
    counts = [
        1 if count is None and usd == _PAID_ANYWAY else count
        for count, usd in zip(counts, usd_per_hour, strict=True)
    ]
    regions = [region or "own" for region in table.column("region")]
    rules = [replace(t, instance_type=n) for n, t in zip(names, terms, strict=True) if t]
    named = [(rule.instance_type, rule.market) for rule in rules]
    kept = _newest(list(zip(names, regions, markets, strict=True)), dates)
    return OwnMachines(
        _one_of_each(names, machines, table.name, _TWO_MACHINES),
        _own_offers(*_some(kept, names, regions, markets, usd_per_hour, dates)),
        _limits(*_some(kept, names, regions, counts)),
        tuple(_one_of_each(named, rules, table.name, _TWO_TERMS).values()),
        older=len(names) - len(kept),
    )


def _newest(offers: Sequence[object], dates: Sequence[str]) -> list[int]:
    """The rows that hold: of one machine in one place and market those of the newest date."""
    newest: dict[object, str] = {}
    for offer, day in zip(offers, dates, strict=True):
        newest[offer] = max(day, newest.get(offer, day))
    pairs = enumerate(zip(offers, dates, strict=True))
    return [row for row, (offer, day) in pairs if day == newest[offer]]


def _some(rows: Sequence[int], *columns: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Some rows of columns."""
    for column in columns:
        yield column if len(rows) == len(column) else [column[row] for row in rows]


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
        hours = (_given(row, name, _HOURS) for name in _TIMES)
        least, step, most, start = (None if h is None else 3600.0 * h for h in hours)
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
            upfront=chosen_cell(row, "upfront", _YES, "no"),
            egress_usd_per_gb=_given(row, "egress_per_gb", _usd(row)),
            disk_usd_per_gib_month=_per_gib(_given(row, "disk_per_gb_month", _usd(row))),
            currency=row.cells.get("currency", "USD"),
            countries=tuple(_like(row, "country", _COUNTRIES, "DE, or DE FR").split()),
            new_account=_given(row, "new_account", _account),
            launcher=_like(row, "launcher", _LAUNCHER, "lambda, as in sky launch --infra lambda"),
            rented_as=row.cells.get("instance_type", ""),
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
        gpu, part = _gpu(row, self.memory_mib)
        gpus = _GPUS(needed_cell(row, "gpus"), row.where("gpus"))
        if part and gpus > 1:
            raise UsageError(f"{row.where('gpus')} slices of a GPU cannot share a job; write 1")
        usual_gib = part.memory_gib if part else self.memory_mib[gpu] / 1024
        memory_gib = _optional(row, "gpu_memory_gib") or usual_gib
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
            gpu_share=part.share if part else 1.0,
        )
        return self.made.setdefault(_BUT_NAMES(machine), machine)


def _market(row: CsvRow) -> Market:
    return chosen_cell(row, "market", _SOLD_IN, "on-demand")


def _usd_per_hour(row: CsvRow) -> float:
    """What an hour costs; next to nothing if it is paid anyway."""
    where = row.where("usd_per_hour")
    return _usd(row)(needed_cell(row, "usd_per_hour"), where) or _PAID_ANYWAY


def _usd(row: CsvRow) -> Callable[[str, str], float]:
    """What reads an amount of a row's currency, as USD."""
    text, rate = row.cells.get("currency", "USD"), 1.0
    if text.upper() != "USD":
        _, rate, _ = parse_currency(text, row.where("currency"))
    return lambda amount, where: parse_money(amount, where, zero=True) / rate


def _per_gib(usd_per_gb: float | None) -> float | None:
    return None if usd_per_gb is None else usd_per_gb * _GB_PER_GIB


def _account(text: str, where: str) -> float:
    """How many machines a new account may rent: 0 where it has to ask."""
    return 0.0 if text == "0" else _ACCOUNT(text, where)


def _like(row: CsvRow, column: str, form: re.Pattern[str], example: str) -> str:
    text = row.cells.get(column, "")
    if text and not form.fullmatch(text):
        raise UsageError(f"{row.where(column)} {shown(text)} is none; write {example}")
    return text


def _count(row: CsvRow) -> int | None:
    """How many there are of a machine; None where its row does not say."""
    text = row.cells.get("count", "1" if _one_host(row) else None)
    return None if text is None else _COUNT(text, row.where("count"))


def _one_host(row: CsvRow) -> bool:
    return chosen_cell(row, "one_host", _YES, "no")


def _hardware(row: CsvRow, like: InstanceType) -> InstanceType:
    """A machine as its row describes it, without links; the rest is that of a similar machine."""
    name = _name(needed_cell(row, "label"), row.cells.get("instance_type", ""))
    network = _optional(row, "network_gbit_per_s")
    alone = _one_host(row)
    if alone and network:
        raise UsageError(f"{row.where('one_host')} yes, but network_gbit_per_s leads to others")
    basis = "documented" if network else "scaled" if like.network_gbit_per_s else "unknown"
    basis = ONE_HOST if alone else basis
    network = None if alone else network or like.network_gbit_per_s
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


@dataclass(frozen=True, slots=True)
class _Slice:
    """A MIG slice: its share of the GPU's processors, and its memory."""

    share: float
    memory_gib: float


def _gpu(row: CsvRow, memory_mib: Mapping[str, int]) -> tuple[str, _Slice | None]:
    """The GPU of a row, and which slice of it: "H100 3g.40gb"."""
    word = needed_cell(row, "gpu")
    profile = _PROFILE.search(word)
    whole = word[: profile.start()] if profile else word
    same = [name for name in memory_mib if name.lower() == whole.lower()]
    if not same:
        raise UsageError(f"{row.where('gpu')} {unknown('GPU', whole, memory_mib)}")
    if profile is None:
        return same[0], None
    return same[0], _Slice(int(profile["sevenths"]) / 7, float(profile["gib"]))


def _optional(row: CsvRow, column: str) -> float | None:
    return _given(row, column, _SIZE)


def _given(row: CsvRow, column: str, read: Callable[[str, str], float]) -> float | None:
    text = row.cells.get(column)
    return None if text is None else read(text, row.where(column))


def _one_of_each(names: Iterable[Any], values: Iterable[T], file: str, what: str) -> dict[Any, T]:
    """The value of each name; refuses a name of two values."""
    found: dict[Any, T] = {}
    for name, value in zip(names, values, strict=True):
        kept = found.setdefault(name, value)
        if kept is not value and kept != value:
            raise UsageError(f"{file}: '{name if isinstance(name, str) else name[0]}' {what}")
    return found


def offers_template(gpus: Iterable[str]) -> str:
    """Write the file; `gpus` are those of the catalog."""
    width = max(map(len, COLUMNS))
    lines = [f"# {line}" for line in _INTRODUCTION]
    lines += ["#", *(f"# {name:{width}}  {meaning}" for name, meaning in COLUMNS.items()), "#"]
    names = wrap(f"GPUs: {', '.join(sorted(gpus))}", 98, break_on_hyphens=False)
    lines += [f"# {line}" for line in names]
    lines += ["", ",".join(COLUMNS)]
    lines += [",".join(row.get(name, "") for name in COLUMNS) for row in EXAMPLES]
    return "\n".join(lines) + "\n"
