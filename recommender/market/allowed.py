"""Selects the offers that plans may use, and counts why others are excluded."""

from collections import Counter
from fnmatch import fnmatchcase

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.countries import countries_of
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN, is_confidential
from recommender.catalogs.schema import BOOKED, InstanceType
from recommender.plan.limits import MARKETS, Choice, GpuFilter

# What is sold in a market though its machines are not open to everybody.
_ONLY_IN: dict[str, str] = {"spot": "spot_only", **dict.fromkeys(BOOKED, "reservation_only")}
GIB_PER_MIB = 1.0 / 1024.0
# A GPU sold as "80 GB" reports a little less: 81,559 of 81,920 MiB on H100 (EC2 GpuInfo, 2026).
NOMINAL = 0.94


@dataclass(frozen=True, slots=True)
class Allowed:
    """The catalog rows that plans may use, and how many were excluded for which reason."""

    rows: tuple[int, ...]
    left_out: tuple[tuple[str, int], ...]


def allowed_offers(catalog: Catalog, choice: Choice) -> Allowed:
    """Select offers that can be rented and that the user did not exclude."""
    types, o = _type_exclusions(catalog, choice), catalog.offers
    stated = _stated_countries(catalog) if choice.countries else {}
    names = zip(o.provider, o.market, o.instance_type, strict=True)
    where = [stated.get(name, ()) for name in names] if stated else [()] * len(o)
    places = list(
        zip(o.provider, o.region, o.zone, o.market, o.obtainable, o.kind, where, strict=True)
    )
    some = {place: row for row, place in enumerate(places)}
    there = {
        place: _offer_exclusion(catalog, row, choice, place[-1]) for place, row in some.items()
    }
    kinds = zip(o.provider, o.instance_type, strict=True)
    why = [
        types.get(kind, "no hardware facts") or there[place]
        for kind, place in zip(kinds, places, strict=True)
    ]
    reasons = Counter(filter(None, why))
    rows = tuple(row for row, reason in enumerate(why) if not reason)
    return Allowed(rows, tuple(sorted(reasons.items())))


def _type_exclusions(catalog: Catalog, choice: Choice) -> dict[tuple[str, str], str]:
    """Why each instance type is left out; "" if it is not."""
    types = catalog.instance_types
    if choice.instances or choice.deny:
        return {key: _type_exclusion(t, catalog, choice) for key, t in types.items()}
    like = {key: catalog.like(key) for key in types}
    alike = {key: _type_exclusion(types[key], catalog, choice) for key in {*like.values()}}
    return {key: alike[first] for key, first in like.items()}


def _type_exclusion(t: InstanceType, catalog: Catalog, choice: Choice) -> str:
    """Why an instance type is left out; "" if it is not.

    What was not asked for counts as that: its other properties explain nothing.
    """
    if choice.instances and not any(_matches(t.instance_type, i) for i in choice.instances):
        return "not among --instance"
    if choice.gpus and not any(_matches_gpu(t, gpu_filter) for gpu_filter in choice.gpus):
        return "not among --gpu"
    if not t.gpu:
        return "no GPU"
    gpu = catalog.gpus.get(t.gpu)
    if gpu is None:
        return "no GPU facts"
    listed = t.provider == OWN and choice.accelerator == Choice().accelerator
    if choice.accelerator not in ("any", gpu.vendor) and not listed:
        return f"not {choice.accelerator} (--accelerator)"
    if choice.arch not in ("any", t.arch):
        return f"not {choice.arch} (--arch)"
    if is_confidential(t.provider, t.instance_type) != choice.confidential:
        return "not confidential" if choice.confidential else "confidential (--confidential)"
    if any(_matches(t.instance_type, d) or _matches(t.gpu, d) for d in choice.deny):
        return "denied"
    return ""


def _matches(value: str, pattern: str) -> bool:
    return fnmatchcase(value.lower(), pattern.lower())


def _matches_gpu(t: InstanceType, gpu_filter: GpuFilter) -> bool:
    if gpu_filter.name and not _matches(t.gpu, gpu_filter.name):
        return False
    if gpu_filter.per_machine is not None and t.gpus != gpu_filter.per_machine:
        return False
    return t.gpu_memory_mib * GIB_PER_MIB >= gpu_filter.memory_gib * NOMINAL


def _stated_countries(catalog: Catalog) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Where machines may be whose terms say so, by provider, market and name."""
    rows = catalog.billing
    return {(b.provider, b.market, b.instance_type): b.countries for b in rows if b.countries}


def _is_in(countries: tuple[str, ...], provider: str, where: frozenset[str]) -> bool:
    """Whether a machine is surely in one of these countries; one's own are where one put them."""
    return where <= set(countries) if where else provider == OWN


def _offer_exclusion(catalog: Catalog, row: int, choice: Choice, countries: tuple[str, ...]) -> str:
    """Why an offer of an allowed type is left out; "" if it is not. `countries` are stated."""
    o = catalog.offers
    market, state = o.market[row], o.obtainable[row]
    if state not in ("open", _ONLY_IN.get(market)):
        return "of unknown status" if state == "unknown" else state.replace("_", " ")
    if market not in MARKETS[choice.market]:
        return f"market {market}"
    if choice.providers and o.provider[row] not in choice.providers:
        return "not among --provider"
    if choice.regions and not any(_matches(o.region[row], r) for r in choice.regions):
        return "not among --region"
    where = frozenset(countries) or countries_of(o.provider[row], o.region[row])
    if choice.countries and not _is_in(choice.countries, o.provider[row], where):
        return "not among --country"
    if choice.zones and not any(_matches(o.zone[row], z) for z in choice.zones):
        return "not among --zone"
    if any(_matches(o.region[row], d) or o.provider[row] == d for d in choice.deny):
        return "denied"
    if choice.quoted_only and o.kind[row] == "derived":
        return "derived price"
    return ""
