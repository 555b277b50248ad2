"""FLOPP: matrix-multiplication FLOP per dollar of each offer, best first (DeepVM's metric)."""

from recommender.catalogs.catalog import OWN_BENCH_SOURCE, Catalog
from recommender.catalogs.frozen import dataclass
from recommender.performance.measurements.pool import OfferFlopp

_SOLD = ("open", "spot_only")
_VENDOR = "nvidia"
_NO_PRICE = ("floor",)  # an empty auction: no machine can be had at that price


@dataclass(frozen=True, slots=True)
class FloppFilter:
    """Which offers to rank; empty: all."""

    gpu: str = ""
    market: str = ""
    region: str = ""
    precision: str = "bf16"


def flopp_of_offers(catalog: Catalog, wanted: FloppFilter) -> list[OfferFlopp]:
    """Rank offers by FLOP per dollar: GPUs · achieved FLOP/s · 3600 s/h / (USD/h).

    Only the cheapest zone of a type in a region and market is listed. Accelerators of vendors other
    than NVIDIA are listed only if named, as in default answers.
    """
    best: dict[tuple[str, str, str, str], OfferFlopp] = {}
    for offer in catalog.offers:
        machine = catalog.type_of(offer)
        if machine.gpu not in catalog.gpus:
            continue
        speed = catalog.achieved.get((machine.gpu, wanted.precision))
        if not wanted.gpu and catalog.gpus[machine.gpu].vendor != _VENDOR:
            continue
        if speed is None or not _fits(wanted, machine.gpu, offer.market, offer.region):
            continue
        if offer.obtainable not in _SOLD or offer.flag in _NO_PRICE:
            continue
        per_usd = machine.gpus * speed.tflops * 1e12 * 3600 / offer.usd_per_hour
        kind = "yours" if speed.source == OWN_BENCH_SOURCE.source else speed.kind
        row = OfferFlopp(
            offer.provider, offer.instance_type, offer.region, offer.zone, offer.market,
            machine.gpu, machine.gpus, offer.usd_per_hour, speed.tflops, per_usd, kind,
        )  # fmt: skip
        key = (offer.provider, offer.instance_type, offer.region, offer.market)
        if key not in best or best[key].flop_per_usd < per_usd:
            best[key] = row
    return sorted(best.values(), key=lambda r: (-r.flop_per_usd, r.instance_type, r.region))


def _fits(wanted: FloppFilter, gpu: str, market: str, region: str) -> bool:
    return (
        (not wanted.gpu or gpu.lower() == wanted.gpu.lower())
        and (not wanted.market or market == wanted.market)
        and (not wanted.region or region == wanted.region)
    )


def price_of(
    catalog: Catalog, provider: str, instance_type: str, region: str, market: str
) -> float | None:
    """The price of the current machine in its cheapest zone; None if unknown."""
    if not instance_type:
        return None
    prices = [
        offer.usd_per_hour
        for offer in catalog.offers
        if offer.instance_type == instance_type
        and provider in ("", offer.provider)
        and region in ("", offer.region)
        and offer.market == (market or "on_demand")
    ]
    return min(prices, default=None)
