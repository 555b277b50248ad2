"""Quotas and own machines that users hand in as files: `--quota FILE`, `--offers FILE`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, TypeVar, cast

from recommender.catalogs.registry import CLOUDS, OWN
from recommender.catalogs.schema import InstanceType, Market, Offer
from recommender.errors import UsageError
from recommender.inputs.csv_text import Row, read_csv, refuse_all
from recommender.inputs.files import read_text
from recommender.inputs.units import PROVIDERS, count_of, parse_money, whole_of
from recommender.inputs.yaml_text import load_yaml
from recommender.plan.limits import QuotaLimit
from recommender.text import shown, unknown

T = TypeVar("T")
QuotaUnit = Literal["vcpu", "gpu", "machine"]

_MARKETS = {
    "any": "any", "both": "any", "spot": "spot", "preemptible": "spot",
    "on-demand": "on_demand", "on_demand": "on_demand", "ondemand": "on_demand",
}  # fmt: skip
_UNITS: dict[str, QuotaUnit] = {
    "vcpu": "vcpu", "vcpus": "vcpu", "cpu": "vcpu", "gpu": "gpu", "gpus": "gpu",
    "machine": "machine", "machines": "machine", "instances": "machine",
}  # fmt: skip
_USUAL_UNIT: dict[str, QuotaUnit] = {
    **{info.name: info.quota_unit for info in CLOUDS.values()},
    OWN: "machine",
}
_QUOTA_REQUIRED = ("provider", "family", "amount")
_QUOTA_OPTIONAL = ("market", "region", "unit")
_QUOTA_SYNONYMS = {
    "quota": "family", "quota_family": "family", "quota_name": "family", "name": "family",
    "limit": "amount", "value": "amount",
}  # fmt: skip
_OFFER_REQUIRED = ("label", "gpu", "gpus", "usd_per_hour")
_OFFER_OPTIONAL = (
    "instance_type", "region", "market", "vcpus", "memory_gib", "network_gbit_per_s", "network",
    "intra", "gpu_memory_gib", "count", "as_of",
)  # fmt: skip
_OFFER_SYNONYMS = {"provider": "label", "price": "usd_per_hour", "machines": "count"}
_NETWORKS = {"tcp": "tcp", "ethernet": "tcp", "rdma": "rdma", "infiniband": "rdma", "efa": "rdma"}
_INTRA = {"pcie": "pcie", "nvlink": "nvlink", "nvswitch": "nvswitch"}
# What the smallest cloud machines give each GPU (g5, a2, NC A100 v4: 8-24 vCPU, 32-220 GiB).
_VCPUS_PER_GPU, _MEMORY_GIB_PER_GPU = 8, 64
_AMOUNT = count_of("192", most=1e7)
_GPUS = whole_of("8", most=1024)
_COUNT = whole_of("4", most=100_000)
_SIZE = count_of("64", most=1e6)  # vCPUs, GiB, Gbit/s
_HOST_GB_PER_S = 12.0  # PCIe 3.0 x16 as measured; the slowest that is common


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """Machines outside the catalog, and how many of them there are."""

    rows: tuple[tuple[InstanceType, Offer], ...]
    limits: tuple[QuotaLimit, ...]


def read_quotas(path: Path) -> tuple[QuotaLimit, ...]:
    """Read what an account may run, from a CSV or YAML file.

    Columns: provider, family (or the quota's own name), amount; optional market (any, spot,
    on-demand), region (empty: every region) and unit (vcpu, gpu, machine; by default the unit
    in which the provider counts).
    """
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        rows = _yaml_rows(path)
    else:
        rows = read_csv(path, _QUOTA_REQUIRED, _QUOTA_OPTIONAL, _QUOTA_SYNONYMS)
    return _each(rows, _quota)


def _yaml_rows(path: Path) -> list[Row]:
    tree = load_yaml(read_text(path), shown(path.name))
    if isinstance(tree, dict):
        tree = tree.get("quotas")
    if not isinstance(tree, list):
        raise UsageError(f"{shown(path.name)}: not a list of quotas; write quotas: [{{…}}, …]")
    rows: list[Row] = []
    problems: list[str] = []
    for number, item in enumerate(tree, 1):
        place = f"{shown(path.name)}, entry {number}"
        found, cells = _entry(item, place)
        problems += found
        rows.append(Row(place, cells))
    refuse_all(problems)
    return rows


def _entry(item: object, place: str) -> tuple[list[str], dict[str, str]]:
    if not isinstance(item, dict):
        return [f"{place}: not a quota; write {{provider: aws, family: …, amount: …}}"], {}
    known = (*_QUOTA_REQUIRED, *_QUOTA_OPTIONAL)
    cells = {_QUOTA_SYNONYMS.get(str(k), str(k)): v for k, v in item.items() if v is not None}
    odd = [k for k, v in cells.items() if not isinstance(v, str)]
    problems = [f"{place}: {unknown('key', k, known)}" for k in cells if k not in known]
    problems += [f"{place}, column {k}: is missing" for k in _QUOTA_REQUIRED if k not in cells]
    problems += [f"{place}, column {k}: must be one value" for k in odd]
    return problems, cells


def _each(rows: list[Row], read: Callable[[Row], T]) -> tuple[T, ...]:
    values: list[T] = []
    problems: list[str] = []
    for row in rows:
        try:
            values.append(read(row))
        except UsageError as error:
            problems += error.problems
    refuse_all(problems)
    return tuple(values)


def _needed(row: Row, column: str) -> str:
    if column not in row.cells:
        raise UsageError(f"{row.where(column)} is empty")
    return row.cells[column]


def _chosen(row: Row, column: str, choices: Mapping[str, T], default: str) -> T:
    word = row.cells.get(column, default)
    if word.lower() not in choices:
        raise UsageError(f"{row.where(column)} {unknown('value', word, tuple(choices))}")
    return choices[word.lower()]


def _quota(row: Row) -> QuotaLimit:
    provider = _chosen(row, "provider", {p: p for p in PROVIDERS}, _needed(row, "provider"))
    amount = _needed(row, "amount")
    market = _chosen(row, "market", _MARKETS, "any")
    region = row.cells.get("region", "")
    return QuotaLimit(
        provider=provider,
        quota_family=_needed(row, "family"),
        market=cast("Literal['on_demand', 'spot', 'any']", market),
        region="" if region.lower() in ("*", "any", "all") else region,
        unit=_chosen(row, "unit", _UNITS, _USUAL_UNIT[provider]),
        # A quota of zero is the usual state of a new account, and no mistake.
        amount=0.0 if amount in ("0", "0.0") else _AMOUNT(amount, row.where("amount")),
        place=row.place,
    )


def read_offers(path: Path, memory_mib: Mapping[str, int], today: date) -> OwnMachines:
    """Read own machines and quotes from a CSV file; `memory_mib` names the known GPUs.

    Columns: label (or provider), gpu, gpus, usd_per_hour; optional instance_type, region,
    market, vcpus, memory_gib, network_gbit_per_s, network (tcp, rdma), intra (pcie, nvlink,
    nvswitch), gpu_memory_gib, count (how many machines there are) and as_of.
    """
    rows = read_csv(path, _OFFER_REQUIRED, _OFFER_OPTIONAL, _OFFER_SYNONYMS)
    machines = _each(rows, lambda row: _own_machine(row, memory_mib, today.isoformat()))
    limits = _each([row for row in rows if "count" in row.cells], _own_limit)
    _refuse_twins(machines, shown(path.name))
    return OwnMachines(machines, limits)


def _own_machine(row: Row, memory_mib: Mapping[str, int], today: str) -> tuple[InstanceType, Offer]:
    gpu = _gpu(row, memory_mib)
    gpus = _GPUS(_needed(row, "gpus"), row.where("gpus"))
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
        network_kind=_chosen(row, "network", _NETWORKS, "tcp"),
        network_basis="documented" if network else "unknown",
        intra_kind=_chosen(row, "intra", _INTRA, "pcie") if gpus > 1 else "",
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


def _own_offer(row: Row, machine: InstanceType) -> Offer:
    markets = {key: market for key, market in _MARKETS.items() if market != "any"}
    return Offer(
        provider="own",
        instance_type=machine.instance_type,
        region=row.cells.get("region", "own"),
        zone="",
        market=cast(Market, _chosen(row, "market", markets, "on-demand")),
        usd_per_hour=parse_money(_needed(row, "usd_per_hour"), row.where("usd_per_hour")),
        obtainable="open",
        kind="quote",
        flag="imported",
        uncertainty=0.0,
        interruption_range=None,
        source=0,
        as_of=machine.as_of,
    )


def _own_limit(row: Row) -> QuotaLimit:
    count = _COUNT(row.cells["count"], row.where("count"))
    return QuotaLimit("own", _name(row), "any", row.cells.get("region", "own"), "machine", count)


def _name(row: Row) -> str:
    label, kind = _needed(row, "label"), row.cells.get("instance_type")
    return f"{label}/{kind}" if kind else label


def _gpu(row: Row, memory_mib: Mapping[str, int]) -> str:
    word = _needed(row, "gpu")
    same = [name for name in memory_mib if name.lower() == word.lower()]
    if not same:
        raise UsageError(f"{row.where('gpu')} {unknown('GPU', word, memory_mib)}")
    return same[0]


def _optional(row: Row, column: str) -> float | None:
    text = row.cells.get(column)
    return None if text is None else _SIZE(text, row.where(column))


def _date(row: Row, today: str) -> str:
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
