"""What a catalog must satisfy before anybody plans with it.

These guards hold for every catalog, somebody's own included, and are checked at each load.
What a published catalog of the public clouds must satisfy besides is in `publication`.
"""

from collections.abc import Container, Iterator
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
        *_unknown_types(catalog),
        *_dear_spot(catalog),
    ]


def _bad_types(catalog: "Catalog") -> Iterator[str]:
    for machine in catalog.instance_types.values():
        for problem in type_problems(machine, catalog.gpus):
            yield f"{machine.provider} {machine.instance_type}: {problem}"


def type_problems(machine: InstanceType, gpus: Container[str]) -> Iterator[str]:
    """List what is wrong with the description of a machine."""
    facts = (bool(machine.gpu), machine.gpus > 0, machine.gpu_memory_mib > 0)
    if any(facts) and not all(facts):
        yield "GPU name, count and memory must be all set or all unset"
    if machine.vcpus <= 0 or not _positive(machine.memory_gib):
        yield "needs vCPUs and memory"
    if machine.gpu and machine.gpu not in gpus:
        yield f"no facts about its GPU {machine.gpu!r}"
    if not all(_positive(rate) for rate in _rates(machine)):
        yield "rates must be positive and finite, or empty if unknown"


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
    # Most catalogs are good: look at all prices at once before looking for the bad one.
    if not (all(map(isfinite, offers.usd_per_hour)) and min(offers.usd_per_hour, default=1) > 0):
        for index, usd in enumerate(offers.usd_per_hour):
            if not _positive(usd):
                yield f"{_name(catalog, index)}: price {usd} is not a positive number"
    for error in sorted(set(offers.uncertainty)):
        if not 0 <= error < 1:
            name = _name(catalog, offers.uncertainty.index(error))
            yield f"{name}: uncertainty {error} is not in [0, 1)"


def _unknown_types(catalog: "Catalog") -> Iterator[str]:
    offers = catalog.offers
    named = set(zip(offers.provider, offers.instance_type, strict=True))
    for provider, name in sorted(named - catalog.instance_types.keys()):
        yield f"{provider} {name}: offered, but no such instance type"


def _dear_spot(catalog: "Catalog") -> Iterator[str]:
    """Spot above the on-demand price of the same machine and region is an error."""
    offers = catalog.offers
    keys = list(zip(offers.provider, offers.instance_type, offers.region, strict=True))
    listed: dict[tuple[str, str, str], float] = {}
    spot: list[int] = []
    for index, market in enumerate(offers.market):
        if market == "on_demand":
            listed[keys[index]] = offers.usd_per_hour[index]
        elif market == "spot":
            spot.append(index)
    for index in spot:
        limit = listed.get(keys[index])
        if limit is not None and offers.usd_per_hour[index] > limit * (1 + 1e-9):
            yield f"{_name(catalog, index)}: spot is dearer than on-demand ({limit})"


def _positive(value: float) -> bool:
    return isfinite(value) and value > 0


def _name(catalog: "Catalog", index: int) -> str:
    offers = catalog.offers
    place = offers.zone[index] or offers.region[index]
    return f"{offers.provider[index]} {offers.instance_type[index]} {place} {offers.market[index]}"
