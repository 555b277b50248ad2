"""Whole machines of Google Cloud, added up from their parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from catalogs.refresh.gcp_parts import Component, PartPrices
from catalogs.schema import InstanceType, Market


@dataclass(frozen=True, slots=True)
class Shape:
    """What is charged of a machine."""

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
    """The price of a machine, or the parts that have none."""

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
    """What is charged of a machine, by the catalog's table."""
    return Shape(machine.vcpus, machine.memory_gib, machine.gpus, machine.local_disk_gib)


def can_compose(machine: InstanceType) -> bool:
    """Whether it is known which parts a machine is made of."""
    recipe = _recipe(machine)
    return recipe is not None and bool(recipe.gpu) == bool(machine.gpu)


def composed(
    machine: InstanceType, shape: Shape, prices: PartPrices, market: Market, region: str
) -> Sum:
    """Add up a machine: vCPU·core + GiB·RAM + n·GPU + GiB·SSD, per hour.

    A machine with a part missing has no price: a sum without it would look like a bargain.
    """
    recipe = _recipe(machine)
    if recipe is None:
        return Sum(0.0, ("known family",))
    wanted: list[tuple[Component, str, float]] = []
    if recipe.host:
        wanted.append(("core", recipe.host, shape.vcpus))
        wanted.append(("ram", recipe.host, shape.memory_gib))
    if machine.gpu:
        wanted.append(("gpu" if recipe.host else "slice", recipe.gpu, shape.gpus))
    if shape.ssd_gib and recipe.host:  # a slice brings its share of the disks
        own = prices.of("ssd", recipe.host, market, region) is not None
        wanted.append(("ssd", recipe.host if own else "", shape.ssd_gib))
    total, missing = 0.0, []
    for component, name, amount in wanted:
        usd = prices.of(component, name, market, region)
        if usd is None or not amount > 0:
            missing.append(f"{name} {component}".strip())
        else:
            total += usd * amount
    return Sum(round(total, 6), tuple(missing))


def _recipe(machine: InstanceType) -> _Recipe | None:
    recipe = _RECIPES.get(machine.family)
    if recipe is not None and recipe.host == "N1" and machine.gpu in _ATTACHED:
        return _Recipe("N1", machine.gpu)
    return recipe
