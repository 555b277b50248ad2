"""What a catalog must satisfy before anybody plans with it.

`hard_problems` holds for every catalog and is checked at each load. `publication_problems`
holds for a catalog of the public clouds and is checked before one is published: ranges of
prices, required regions and GPUs, and canaries read from elsewhere.
"""

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING

from catalogs.schema import InstanceType

if TYPE_CHECKING:
    from catalogs.catalog import Catalog


def hard_problems(catalog: "Catalog") -> list[str]:
    """List what makes a catalog unusable; empty for a good one."""
    return [
        *_bad_types(catalog),
        *_bad_speeds(catalog),
        *_bad_prices(catalog),
        *_unresolved(catalog),
        *_dear_spot(catalog),
    ]


def _bad_types(catalog: "Catalog") -> Iterator[str]:
    for machine in catalog.instance_types.values():
        name = f"{machine.provider} {machine.instance_type}"
        facts = (bool(machine.gpu), machine.gpus > 0, machine.gpu_memory_mib > 0)
        if any(facts) and not all(facts):
            yield f"{name}: GPU name, count and memory must be all set or all unset"
        if machine.vcpus <= 0 or not _positive(machine.memory_gib):
            yield f"{name}: needs vCPUs and memory"
        if machine.gpu and machine.gpu not in catalog.gpus:
            yield f"{name}: no facts about its GPU {machine.gpu!r}"
        if not all(_positive(rate) for rate in _rates(machine)):
            yield f"{name}: rates must be positive and finite, or empty if unknown"


def _rates(machine: InstanceType) -> Iterator[float]:
    known = (
        machine.network_gbit_per_s,
        machine.network_peak_gbit_per_s,
        machine.intra_gb_per_s,
        machine.host_gb_per_s if machine.gpu else None,
    )
    return (rate for rate in known if rate is not None)


def _bad_speeds(catalog: "Catalog") -> Iterator[str]:
    for speed in catalog.achieved.values():
        if not 0 < speed.low_tflops <= speed.tflops <= speed.high_tflops < float("inf"):
            yield f"{speed.gpu} {speed.precision}: needs 0 < low <= achieved <= high"
    for gpu in catalog.gpus.values():
        if gpu.memory_mib <= 0 or not _positive(gpu.memory_gb_per_s):
            yield f"GPU {gpu.gpu}: needs memory and its bandwidth"


def _bad_prices(catalog: "Catalog") -> Iterator[str]:
    offers = catalog.offers
    for index, usd in enumerate(offers.usd_per_hour):
        if not _positive(usd):
            yield f"{_name(catalog, index)}: price {usd} is not a positive number"
    for index, error in enumerate(offers.uncertainty):
        if not 0 <= error < 1:
            yield f"{_name(catalog, index)}: uncertainty {error} is not in [0, 1)"


def _unresolved(catalog: "Catalog") -> Iterator[str]:
    offers = catalog.offers
    named = set(zip(offers.provider, offers.instance_type, strict=True))
    for provider, name in sorted(named - catalog.instance_types.keys()):
        yield f"{provider} {name}: offered, but no such instance type"
    if catalog.sources:
        for source in sorted(set(offers.source) - catalog.source_by_key.keys()):
            yield f"offers name source {source}, which is not listed"


def _dear_spot(catalog: "Catalog") -> Iterator[str]:
    """Spot above the cheapest on-demand price of the same machine and region is an error."""
    offers = catalog.offers
    listed: dict[tuple[str, str, str], float] = {}
    keys = list(zip(offers.provider, offers.instance_type, offers.region, strict=True))
    for key, market, usd in zip(keys, offers.market, offers.usd_per_hour, strict=True):
        if market == "on_demand":
            listed[key] = max(usd, listed.get(key, 0.0))
    for index, key in enumerate(keys):
        if offers.market[index] == "spot":
            limit = listed.get(key)
            if limit is not None and offers.usd_per_hour[index] > limit * (1 + 1e-9):
                yield f"{_name(catalog, index)}: spot is dearer than on-demand ({limit})"


def _positive(value: float) -> bool:
    return isfinite(value) and value > 0


def _name(catalog: "Catalog", index: int) -> str:
    offers = catalog.offers
    place = offers.zone[index] or offers.region[index]
    return f"{offers.provider[index]} {offers.instance_type[index]} {place} {offers.market[index]}"


def publication_problems(catalog: "Catalog") -> list[str]:
    """List what keeps a catalog of the public clouds from being published."""
    return hard_problems(catalog)
