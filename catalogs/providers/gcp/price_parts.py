"""Composes prices of Google Cloud machines from the prices of a core, a GiB and a GPU.

A description is matched completely; what is neither a part of the catalog's machines nor of a kind
known to be irrelevant is quarantined by name. Descriptions as of 2026-08; both older names
("Preemptible", "H100 Mega 80GB") and newer ones ("Spot Preemptible", "H100 80GB Plus") are known,
because regions are renamed one by one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from recommender.catalogs.providers.contract import PartPrice, Quarantined
from recommender.catalogs.schema import InstanceType, Market

Component = Literal["core", "ram", "gpu", "slice", "ssd"]  # a slice is a GPU with its host's share
Key = tuple[Component, str, Market]  # what, of which family or GPU, in which market

HOURS_PER_MONTH = 730.0  # as Google's price pages convert monthly prices
_GIB_PER_GB = 2**30 / 1e9
_UNITS: Mapping[Component, Mapping[str, float]] = MappingProxyType(
    {
        "core": {"h": 1.0},
        "ram": {"GiBy.h": 1.0, "GBy.h": _GIB_PER_GB},
        "gpu": {"h": 1.0},
        "slice": {"h": 1.0},
        "ssd": {"GiBy.mo": 1.0 / HOURS_PER_MONTH},
    }
)
# Every word of a place has a capital: no "in Calendar Mode" may follow it.
_PLACE = r"(?:[A-Z]\S*(?: [A-Z]\S*){0,2}|[a-z]+-[a-z]+\d+)"
_SPOT = r"(?P<spot>(?:Spot )?Preemptible )?"
_SPOT_VMS = r"(?P<spot> attached to (?:Spot )?Preemptible VMs)?"
_FAMILIES = "A2|A3|A3Plus|A3Ultra|G2|G4|E2|N1 Predefined|N2|C3|T2D AMD"
_GPUS = MappingProxyType(
    {
        **{name: name for name in ("T4", "P4", "P100", "V100", "L4", "A100", "A100 80GB")},
        "H100 80GB": "H100",
        "H100 80GB Mega": "H100 Mega",
        "H100 Mega 80GB": "H100 Mega",
        "H100 80GB Plus": "H100 Mega",
        "H200 141GB": "H200",
        "RTX 6000 96GB": "RTX 6000",
    }
)
_HOST = re.compile(rf"{_SPOT}(?P<name>{_FAMILIES}) Instance (?P<what>Core|Ram) running in {_PLACE}")
_C2 = re.compile(rf"{_SPOT}Compute optimized (?:Instance )?(?P<what>Core|Ram) running in {_PLACE}")
_GPU = re.compile(
    rf"(?:Nvidia )?(?:Tesla )?(?P<name>{'|'.join(_GPUS)})(?: GPU)?{_SPOT_VMS} running in {_PLACE}"
)
_SLICE = re.compile(rf"{_SPOT}A4 Nvidia (?P<name>B200) \(1 gpu slice\) running in {_PLACE}")
_SSD = re.compile(rf"SSD backed Local Storage{_SPOT_VMS}(?: (?:running )?in {_PLACE})?")
_OWN_SSD = re.compile(rf"{_SPOT}(?P<name>{_FAMILIES}) Instance Local SSD running in {_PLACE}")
# Reservations, commitments, other tenancies and modes: never the price of a plain machine.
_OTHER_TERMS = re.compile(
    r"Commitment|Reserved |Calendar Mode|DWS|Defined Duration|Flex[ -]?[Ss]tart|Sole Tenan"
    r"|Custom|Premium|VM state|Capacity Optimized|Virtual Workstation|Licens|\bfor \d Year"
)
# Machines that the catalog does not hold: other series without GPUs, shared cores, TPUs.
_OTHER_MACHINES = re.compile(
    rf"{_SPOT}(?:"
    rf"[B-FH-Z]\d+[A-Za-z0-9]* (?:AMD |Arm |Predefined |Memory-optimized )?Instance "
    rf"(?:Core|Ram|Local SSD) running in {_PLACE}"
    rf"|Memory-optimized Instance (?:Core|Ram) running in {_PLACE}"
    rf"|(?:Micro|Small) Instance with .+|T[Pp][Uu].+)"
)
_FRACTION = re.compile(r"\b\d+/\d+ v?GPU\b", re.I)
_MACHINE_GROUPS = frozenset({"CPU", "RAM", "GPU", "N1Standard", "LocalSSD"})
_GPU_WORDS = re.compile(r"\bNvidia\b|\bGPU\b", re.I)


@dataclass(frozen=True, slots=True)
class Sku:
    """A row of the price list of any kind."""

    description: str
    group: str
    usage: str  # "OnDemand", "Preemptible", "Commit1Yr", ...
    regions: tuple[str, ...]
    unit: str
    currency: str
    rates: tuple[tuple[float, float], ...]  # amount from which on, USD per unit
    odd: tuple[str, str] | None = None  # rule and reason: a field is not what it always was


@dataclass(frozen=True, slots=True)
class Part:
    """A price per hour of a part of a machine: one vCPU, GiB, GPU or slice."""

    key: Key
    regions: tuple[str, ...]
    usd_per_hour: float
    unit: str
    description: str


@dataclass(frozen=True, slots=True)
class PartPrices:
    """The price of each part by region, without doubtful ones."""

    usd: Mapping[Key, Mapping[str, float]]
    regions: frozenset[str]  # that any SKU of a machine names
    quarantined: tuple[Quarantined, ...]
    ignored: int

    def of_sums(self, machines: Iterable[InstanceType]) -> Iterator[PartPrice]:
        """Each part's price, with the machines that it is a part of."""
        users: dict[tuple[str, str], set[str]] = defaultdict(set)
        for machine in machines:
            for component, name, _ in _wanted(machine, shape_of(machine)):
                users[component, name].add(machine.instance_type)
                if component == "ssd":
                    users[component, ""].add(machine.instance_type)
        for (component, name, market), by_region in self.usd.items():
            for region, usd in by_region.items():
                used = tuple(sorted(users[component, name]))
                yield PartPrice(f"{name} {component}".strip(), region, market, usd, used)

    def of(self, component: Component, name: str, market: Market, region: str) -> float | None:
        """The price of a part in a region; None if it is not certain."""
        return self.usd.get((component, name, market), {}).get(region)


class _Unpriced(Exception):
    """A SKU of a part that has no price that can be trusted."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule = rule
        super().__init__(reason)


def read_parts(skus: Iterable[Sku]) -> PartPrices:
    """Keep the prices of machine parts, and return what was refused."""
    parts: list[Part] = []
    refused: list[Quarantined] = []
    ignored = 0
    for sku in skus:
        try:
            found = _matched(sku)
            if found is not None:
                parts.append(_part(sku, *found))
            elif _is_unknown(sku):
                rule = "fractional_gpu" if _FRACTION.search(sku.description) else ""
                raise _Unpriced(rule or "unknown_description", "matches no known part")
            else:
                ignored += 1
        except _Unpriced as error:
            refused.append(_quarantined(sku.description, error.rule, str(error)))
    sound = _of_one_unit(parts, refused)
    return PartPrices(
        usd=_by_region(sound, refused),
        regions=frozenset(region for part in sound for region in part.regions),
        quarantined=tuple(refused),
        ignored=ignored,
    )


def _quarantined(what: str, rule: str, reason: str) -> Quarantined:
    return Quarantined("gcp", what, reason, rule)


def _matched(sku: Sku) -> tuple[Component, str, bool] | None:
    """The part that a description names, of which family or GPU, and whether as spot."""
    text = sku.description
    if sku.usage.startswith("Commit") or _OTHER_TERMS.search(text):
        return None
    if found := _HOST.fullmatch(text):
        name = found["name"].partition(" ")[0]
        return ("core" if found["what"] == "Core" else "ram"), name, bool(found["spot"])
    if found := _C2.fullmatch(text):
        return ("core" if found["what"] == "Core" else "ram"), "C2", bool(found["spot"])
    if found := _GPU.fullmatch(text):
        return "gpu", _GPUS[found["name"]], bool(found["spot"])
    if found := _SLICE.fullmatch(text):
        return "slice", found["name"], bool(found["spot"])
    if found := _OWN_SSD.fullmatch(text):
        return "ssd", found["name"].partition(" ")[0], bool(found["spot"])
    if found := _SSD.fullmatch(text):
        return "ssd", "", bool(found["spot"])
    return None


def _is_unknown(sku: Sku) -> bool:
    text = sku.description
    if sku.usage.startswith("Commit") or _OTHER_TERMS.search(text):
        return False
    if _OTHER_MACHINES.fullmatch(text):
        return False
    return sku.group in _MACHINE_GROUPS or _GPU_WORDS.search(text) is not None


def _part(sku: Sku, component: Component, name: str, spot: bool) -> Part:
    """Price a part.

    The text decides what is spot: B200 and local disks are sold as spot under the usage type
    "OnDemand". The other way round nothing can be told.
    """
    if not spot and sku.usage != "OnDemand":
        raise _Unpriced("market", f"usage type {sku.usage!r}, but the description says on-demand")
    if sku.odd is not None:
        raise _Unpriced(*sku.odd)
    if not sku.rates:
        raise _Unpriced("no_price", "has no price")
    factor = _UNITS[component].get(sku.unit)
    if factor is None:
        expected = " or ".join(_UNITS[component])
        raise _Unpriced("unit", f"unit {sku.unit!r}; {expected} is expected")
    if not sku.regions:
        raise _Unpriced("region", "names no region")
    if sku.currency != "USD":
        raise _Unpriced("currency", f"priced in {sku.currency!r}, not in USD")
    if len(sku.rates) != 1 or sku.rates[0][0] != 0:
        raise _Unpriced("tiers", "the price depends on the amount used")
    usd = sku.rates[0][1]
    if not usd > 0:
        raise _Unpriced("zero_price", f"costs {usd!r} USD; a preview or a placeholder")
    market: Market = "spot" if spot else "on_demand"
    key: Key = (component, name, market)
    return Part(key, sku.regions, usd * factor, sku.unit, sku.description)


def _of_one_unit(parts: list[Part], refused: list[Quarantined]) -> list[Part]:
    """Without parts in another unit than most of their kind: one of the two is mislabelled."""
    units: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for part in parts:
        units[part.key[:2]][part.unit] += 1
    usual = {kind: _most(found) for kind, found in units.items()}
    for part in parts:
        if part.unit != usual[part.key[:2]]:
            message = f"unit {part.unit!r}, {usual[part.key[:2]] or 'several'!r} elsewhere"
            refused.append(_quarantined(part.description, "unit", message))
    return [part for part in parts if part.unit == usual[part.key[:2]]]


def _most(units: Counter[str]) -> str:
    (first, count), *others = units.most_common(2)
    return "" if others and others[0][1] == count else first


def _by_region(parts: Iterable[Part], refused: list[Quarantined]) -> dict[Key, dict[str, float]]:
    found: dict[tuple[Key, str], list[Part]] = defaultdict(list)
    for part in parts:
        for region in part.regions:
            found[part.key, region].append(part)
    prices: dict[Key, dict[str, float]] = defaultdict(dict)
    for (key, region), best_of_each_kind in found.items():
        usd = _agreed(best_of_each_kind)
        if usd is None:
            refused += _doubled(region, best_of_each_kind)
        else:
            prices[key][region] = usd
    return prices


def _agreed(best_of_each_kind: list[Part]) -> float | None:
    """The one price in a region: a SKU of this region alone wins over one of many regions."""
    texts: dict[str, set[float]] = defaultdict(set)
    for part in best_of_each_kind:
        texts[part.description].add(part.usd_per_hour)
    if any(len(prices) > 1 for prices in texts.values()):
        return None
    own = [part for part in best_of_each_kind if len(part.regions) == 1] or best_of_each_kind
    prices = {part.usd_per_hour for part in own}
    return prices.pop() if len(prices) == 1 else None


def _doubled(region: str, best_of_each_kind: list[Part]) -> Iterator[Quarantined]:
    for part in best_of_each_kind:
        what = f"{part.description} ({region}, {part.usd_per_hour:.6g} USD/h)"
        yield _quarantined(what, "duplicate", "priced twice and differently; neither is used")


@dataclass(frozen=True, slots=True)
class Shape:
    """The charged parts of a machine."""

    vcpus: float
    memory_gib: float
    gpus: int
    ssd_gib: float


@dataclass(frozen=True, slots=True)
class _Recipe:
    """Which SKUs price a family: its host's and its GPU's."""

    host: str  # "" where a slice of the machine comes with each GPU
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """The price of a machine, or its parts without a price."""

    usd_per_hour: float
    missing: tuple[str, ...] = ()


_RECIPES: Mapping[str, _Recipe] = MappingProxyType(
    {
        "a2-highgpu": _Recipe("A2", "A100"),
        "a2-megagpu": _Recipe("A2", "A100"),
        "a2-ultragpu": _Recipe("A2", "A100 80GB"),
        "a3-highgpu": _Recipe("A3", "H100"),
        "a3-megagpu": _Recipe("A3Plus", "H100 Mega"),
        "a3-ultragpu": _Recipe("A3Ultra", "H200"),
        "a4-highgpu": _Recipe("", "B200"),
        "g2-standard": _Recipe("G2", "L4"),
        "g4-standard": _Recipe("G4", "RTX 6000"),
        "n1-standard": _Recipe("N1"),  # any GPU may be attached
        "n1-highmem": _Recipe("N1"),
        "n2-standard": _Recipe("N2"),
        "e2-standard": _Recipe("E2"),
        "c2-standard": _Recipe("C2"),
        "c3-standard": _Recipe("C3"),
        "t2d-standard": _Recipe("T2D"),
    }
)
_ATTACHED = frozenset({"T4", "P4", "P100", "V100"})  # GPUs that N1 machines take


def shape_of(machine: InstanceType) -> Shape:
    """The charged parts of a machine, from the catalog's table."""
    return Shape(machine.vcpus, machine.memory_gib, machine.gpus, machine.local_disk_gib)


def can_compose(machine: InstanceType) -> bool:
    """Whether the parts of a machine are known."""
    recipe = _recipe(machine)
    return recipe is not None and bool(recipe.gpu) == bool(machine.gpu)


def composed(
    machine: InstanceType, shape: Shape, prices: PartPrices, market: Market, region: str
) -> Sum:
    """The price of a machine: vCPU·core + GiB·RAM + n·GPU + GiB·SSD, per hour.

    A machine with a missing part has no price: a sum without it would look like a bargain.
    """
    wanted = _wanted(machine, shape)
    if not wanted:
        return Sum(0.0, ("known family",))
    total, missing = 0.0, []
    for component, name, amount in wanted:
        if component == "ssd" and prices.of(component, name, market, region) is None:
            name = ""  # a family without disks of its own takes the common ones
        usd = prices.of(component, name, market, region)
        if usd is None or not amount > 0:
            missing.append(f"{name} {component}".strip())
        else:
            total += usd * amount
    return Sum(round(total, 6), tuple(missing))


def _wanted(machine: InstanceType, shape: Shape) -> list[tuple[Component, str, float]]:
    """The parts of a machine, of which family or GPU, and how much of each."""
    recipe = _recipe(machine)
    if recipe is None:
        return []
    wanted: list[tuple[Component, str, float]] = []
    if recipe.host:
        wanted.append(("core", recipe.host, shape.vcpus))
        wanted.append(("ram", recipe.host, shape.memory_gib))
    if machine.gpu:
        wanted.append(("gpu" if recipe.host else "slice", recipe.gpu, shape.gpus))
    if shape.ssd_gib and recipe.host:  # a slice brings its share of the disks
        wanted.append(("ssd", recipe.host, shape.ssd_gib))
    return wanted


def _recipe(machine: InstanceType) -> _Recipe | None:
    recipe = _RECIPES.get(machine.family)
    if recipe is not None and recipe.host == "N1" and machine.gpu in _ATTACHED:
        return _Recipe("N1", machine.gpu)
    return recipe
