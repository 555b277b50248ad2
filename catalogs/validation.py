"""Validity rules of a catalog, for use and for publication.

`hard_problems` apply to every catalog, including a user's own, at each load; `publication_problems`
to the public clouds, before publication. The bounds of a provider's prices are in its
`ProviderInfo`: measured on good catalogs of 2026, with some margin; each has caught a catalog that
a provider published wrong (docs/catalog.md). A user's own machines have no bounds.
"""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from statistics import median

from recommender.catalogs.bounds import check_table, read_plain_file
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.schema import InstanceType

_CANARY = 0.10
_MAX_LOST = 0.5  # of a provider's offers, in one version
_MAX_BYTES = 1_000_000  # of a table of canaries; ours has 2,000


def hard_problems(catalog: "Catalog") -> list[str]:
    """List what makes a catalog unusable; empty for a valid one."""
    return [
        *_bad_types(catalog),
        *_bad_speeds(catalog),
        *_bad_prices(catalog),
        *_unknown_types(catalog),
        *_spot_above_on_demand(catalog),
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
    if not all(0 <= error < 1 for error in set(offers.uncertainty)):
        for index, error in enumerate(offers.uncertainty):
            if not 0 <= error < 1:
                yield f"{_name(catalog, index)}: uncertainty {error} is not in [0, 1)"


def _unknown_types(catalog: "Catalog") -> Iterator[str]:
    offers = catalog.offers
    named = set(zip(offers.provider, offers.instance_type, strict=True))
    for provider, name in sorted(named - catalog.instance_types.keys()):
        yield f"{provider} {name}: offered, but no such instance type"


def _spot_above_on_demand(catalog: "Catalog") -> Iterator[str]:
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
            yield f"{_name(catalog, index)}: spot is more expensive than on-demand ({limit})"


def _positive(value: float) -> bool:
    return isfinite(value) and value > 0


def _name(catalog: "Catalog", index: int) -> str:
    offers = catalog.offers
    place = offers.zone[index] or offers.region[index]
    return f"{offers.provider[index]} {offers.instance_type[index]} {place} {offers.market[index]}"


CANARIES = Path(__file__).parent / "canaries.csv"


Prices = dict[tuple[str, str, str], float]  # on-demand USD by (provider, type, region)


def publication_problems(catalog: Catalog) -> list[str]:
    """List what prevents publication; empty for a good catalog."""
    prices = on_demand_prices(catalog)
    return [
        *hard_problems(catalog),
        *missing_offers(catalog),
        *odd_spot_prices(catalog, prices),
        *odd_regions(catalog, prices),
        *odd_between_clouds(catalog, prices),
        *falling_prices(catalog, prices),
        *dead_canaries(prices),
    ]


def new_problems(
    candidate: Catalog, last: Catalog, provider: str, canaries: Iterable["Canary"]
) -> list[str]:
    """List what prevents the publication of a provider's new offers next to the others' last ones.

    Problems that the last good catalog has too are ignored.
    """
    known = {_kind(each) for each in _with_provider(last, provider, ())}
    found = [
        *lost_offers(candidate, last, [provider]),
        *_with_provider(candidate, provider, canaries),
    ]
    return [problem for problem in found if _kind(problem) not in known]


def _kind(problem: str) -> str:
    """A problem without its figures, which move from night to night."""
    return problem.partition("{")[0]


def _with_provider(catalog: Catalog, provider: str, canaries: Iterable["Canary"]) -> Iterator[str]:
    prices = on_demand_prices(catalog)
    own = {key: usd for key, usd in prices.items() if key[0] == provider}
    yield from missing_offers(catalog, [provider])
    yield from odd_between_clouds(catalog, prices)
    yield from falling_prices(catalog, own)
    yield from dead_canaries(own, [c for c in canaries if c.provider == provider])


def on_demand_prices(catalog: Catalog) -> Prices:
    """Collect the on-demand price of each machine in each region."""
    o = catalog.offers
    rows = zip(o.provider, o.instance_type, o.region, o.market, o.usd_per_hour, strict=True)
    return {
        (provider, name, region): usd
        for provider, name, region, market, usd in rows
        if market == "on_demand"
    }


def missing_offers(catalog: Catalog, providers: Iterable[str] = CLOUDS) -> Iterator[str]:
    """Find providers with too few regions, a missing GPU or a missing market."""
    for provider in providers:
        bounds = CLOUDS[provider].bounds
        gpus = {name: t.gpu for (p, name), t in catalog.instance_types.items() if p == provider}
        o = catalog.offers
        rows = zip(o.provider, o.instance_type, o.region, o.market, strict=True)
        found = {row[1:] for row in rows if row[0] == provider and gpus[row[1]]}
        regions = {region for _, region, _ in found}
        if len(regions) < bounds.regions:
            yield f"{provider}: {len(regions)} regions; at least {bounds.regions} are expected"
        missing = bounds.gpus - {gpus[name] for name, _, _ in found}
        if missing:
            yield f"{provider}: no offer with {', '.join(sorted(missing))}"
        sold = {"on_demand", "spot"} if bounds.spot else {"on_demand"}
        for market in sorted(sold - {market for _, _, market in found}):
            yield f"{provider}: no {market} offer"


def lost_offers(
    catalog: Catalog, last: Catalog, providers: Iterable[str] = CLOUDS
) -> Iterator[str]:
    """Find providers that lost about half of their offers, which no renewal explains."""
    now, before = Counter(catalog.offers.provider), Counter(last.offers.provider)
    for provider in providers:
        if now[provider] < (1 - _MAX_LOST) * before[provider]:
            yield f"{provider}: {now[provider]} offers, {before[provider]} before"


def odd_spot_prices(catalog: Catalog, prices: Prices) -> Iterator[str]:
    """Find spot prices outside the usual share, or of machines not known as spot-only."""
    for offer in catalog.offers:
        if offer.market == "spot" and offer.provider in CLOUDS:
            name = f"{offer.provider} {offer.instance_type} {offer.zone or offer.region}"
            listed = prices.get((offer.provider, offer.instance_type, offer.region))
            if listed is None:
                if offer.obtainable != "spot_only":
                    yield f"{name}: spot without an on-demand price"
                continue
            bounds = CLOUDS[offer.provider].bounds.spot
            if bounds is None:
                yield f"{name}: {offer.provider} is not known to sell spot machines"
                continue
            low, high = bounds.share
            if not low <= offer.usd_per_hour / listed <= high:
                share = offer.usd_per_hour / listed
                yield f"{name}: spot is {share:.2f} of on-demand; usual is {low} to {high}"


def odd_regions(catalog: Catalog, prices: Prices) -> Iterator[str]:
    """Find on-demand prices far from the median of the type over its regions."""
    by_type = defaultdict(list)
    for (provider, name, _), usd in prices.items():
        by_type[provider, name].append(usd)
    for (provider, name, region), usd in prices.items():
        if provider in CLOUDS and catalog.instance_types[provider, name].gpu:
            ratio = usd / median(by_type[provider, name])
            low, high = CLOUDS[provider].bounds.region_spread
            if not low <= ratio <= high:
                yield f"{provider} {name} {region}: {ratio:.2f} of the median over regions"


def odd_between_clouds(catalog: Catalog, prices: Prices) -> Iterator[str]:
    """Find GPUs whose price at a cloud is far from that at the others, by its own bounds.

    Clouds differ in what they sell with a GPU: the same H100 costs 2.7 USD/h at one and 10 at
    another. So each is compared with the median of the others.
    """
    by_type = defaultdict(list)
    for (provider, name, _), usd in prices.items():
        by_type[provider, name].append(usd)
    cheapest: dict[str, dict[str, float]] = defaultdict(dict)
    for (provider, name), known in by_type.items():
        machine = catalog.instance_types[provider, name]
        if machine.gpu and provider in CLOUDS:
            usd = median(known) / machine.gpus
            clouds = cheapest[machine.gpu]
            clouds[provider] = min(usd, clouds.get(provider, usd))
    for gpu, clouds in cheapest.items():
        for provider, usd in clouds.items():
            stores = (name for name in clouds if not CLOUDS[name].marketplace)
            others = [clouds[name] for name in stores if name != provider]
            low, high = CLOUDS[provider].bounds.level
            if others and not low <= usd / median(others) <= high:
                yield f"{gpu} at {provider}: USD per GPU is far from that of other clouds: {clouds}"


def falling_prices(catalog: Catalog, prices: Prices) -> Iterator[str]:
    """Find machines that cost no more than others with fewer of the same GPUs.

    Host size drives the price of small machines, so the cheapest of each GPU count is compared.
    """
    cheapest: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for (provider, name, region), usd in prices.items():
        machine = catalog.instance_types[provider, name]
        if machine.gpu and provider in CLOUDS and CLOUDS[provider].bounds.rises_with_gpus:
            counts = cheapest[provider, machine.gpu, region]
            counts[machine.gpus] = min(usd, counts.get(machine.gpus, usd))
    for (provider, gpu, region), counts in cheapest.items():
        rising = [counts[n] for n in sorted(counts)]
        if any(more <= fewer for fewer, more in zip(rising, rising[1:], strict=False)):
            yield f"{provider} {gpu} {region}: more GPUs do not cost more: {counts}"


def dead_canaries(prices: Prices, canaries: Iterable["Canary"] | None = None) -> Iterator[str]:
    """Find well-known prices that are missing or off by more than a tenth."""
    for canary in read_canaries(CANARIES) if canaries is None else canaries:
        found = prices.get((canary.provider, canary.instance_type, canary.region))
        if found is None or abs(found / canary.usd_per_hour - 1) > _CANARY:
            yield (
                f"{canary.provider} {canary.instance_type} {canary.region}: {found}; "
                f"{canary.source} says {canary.usd_per_hour} ({canary.as_of})"
            )


@dataclass(frozen=True, slots=True)
class Canary:
    """An on-demand price from an independent reader, with its date and source."""

    provider: str
    instance_type: str
    region: str
    usd_per_hour: float
    as_of: str
    source: str


def read_canaries(path: Path) -> tuple[Canary, ...]:
    """Read well-known prices from a CSV file.

    Raises:
        CatalogError: the file is not such a table.
    """
    try:
        text = read_plain_file(path, _MAX_BYTES).decode()
        check_table(text)
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        return tuple(_canary(row) for row in rows)
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise CatalogError(f"{path}: not a table of well-known prices: {error}") from error


def _canary(row: Mapping[str, str]) -> Canary:
    """A row that could never sing is refused: a wrong price would pass it in silence."""
    usd = float(row["usd_per_hour"])
    if not (isfinite(usd) and usd > 0):
        raise ValueError(f"price {row['usd_per_hour']!r} is not a positive number")
    if row["provider"] not in CLOUDS:
        raise ValueError(f"provider {row['provider']!r} is none of {', '.join(sorted(CLOUDS))}")
    return Canary(
        provider=row["provider"],
        instance_type=row["instance_type"],
        region=row["region"],
        usd_per_hour=usd,
        as_of=row["as_of"],
        source=row["source"],
    )
