"""Facts of Compute Engine about machines: shape, zones, and recent spot prices."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Quarantined, UnknownType
from recommender.catalogs.providers.gcp.client import Settings, guarded
from recommender.catalogs.providers.gcp.price_parts import Shape
from recommender.catalogs.providers.http import Web
from recommender.catalogs.providers.quotas import Places
from recommender.catalogs.schema import InstanceType, Offer

_SCOPE = "https://www.googleapis.com/auth/compute.readonly"
_SSD_GIB = 375.0  # of one partition of a bundled local disk
_CARDS = MappingProxyType(
    {
        "T4": "nvidia-tesla-t4",
        "P4": "nvidia-tesla-p4",
        "P100": "nvidia-tesla-p100",
        "V100": "nvidia-tesla-v100",
    }
)
_REGIONS = 2  # whose spot prices must be known to judge a machine's composition
_PRICE_TOLERANCE = 0.02  # between Google's own price of a spot machine and the sum of its parts


@dataclass(frozen=True, slots=True)
class Facts:
    """The zones of machines, and charged parts that differ from the shipped table."""

    places: Places
    shapes: Mapping[str, Shape]
    mixed_shapes: frozenset[str] = frozenset()  # machines of several shapes
    unknown: tuple[UnknownType, ...] = ()
    warnings: tuple[str, ...] = ()


def token_of(settings: Settings) -> str:
    """An access token of the application default credentials.

    Raises:
        ProviderError: there are no credentials, or they cannot be refreshed.
    """

    def read() -> str:
        import google.auth
        from google.auth.transport.requests import Request

        credentials, _ = google.auth.default(scopes=[_SCOPE])
        credentials.refresh(Request())  # type: ignore[no-untyped-call]
        return str(credentials.token)

    return guarded(read, settings)


def machine_facts(
    web: Web, settings: Settings, types: Mapping[str, InstanceType], shipped: Places
) -> Facts:
    """Read which machines exist in which zones, and their parts.

    Raises:
        ProviderError: Compute Engine cannot be read.
    """
    machines, unasked = _listed(web, settings, "machineTypes")
    cards, more = _listed(web, settings, "acceleratorTypes")
    try:
        return _facts(machines, cards, unasked | more, types, shipped)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"machine types have no known form ({type(error).__name__})"
        raise ProviderError("gcp", "format", reason) from error


def _facts(
    machines: Mapping[str, list[Any]],
    cards: Mapping[str, list[Any]],
    down: set[str],
    types: Mapping[str, InstanceType],
    shipped: Places,
) -> Facts:
    rows = {zone: {m["name"]: m for m in found} for zone, found in machines.items()}
    limits = {
        zone: {c["name"]: int(c.get("maximumCardsPerInstance", 0)) for c in found}
        for zone, found in cards.items()
    }
    places = {
        name: _with_unreached(_zones(machine, rows, limits), shipped.get(name, {}), down)
        for name, machine in types.items()
    }
    shapes: dict[str, Shape] = {}
    mixed_shapes: set[str] = set()
    for found in rows.values():
        for name in found.keys() & types.keys():
            shape = _shape(found[name])
            if shapes.setdefault(name, shape) != shape:
                mixed_shapes.add(name)
    return Facts(
        places,
        shapes,
        frozenset(mixed_shapes),
        _unknown(rows, types),
        (f"zones that could not be read, as shipped: {', '.join(sorted(down))}",) if down else (),
    )


def _listed(web: Web, settings: Settings, what: str) -> tuple[dict[str, list[Any]], set[str]]:
    """The rows of each zone, and the zones that could not be reached."""
    address = f"{settings.compute}/compute/v1/projects/{settings.project}/aggregated/{what}"
    found: dict[str, list[Any]] = defaultdict(list)
    down: set[str] = set()
    start = f"{address}?maxResults=500&returnPartialSuccess=true"
    for page in web.pages(start, "items", "nextPageToken"):
        try:
            for scope, part in page.get("items", {}).items():
                zone = scope.rpartition("/")[2]
                found[zone] += [row for row in part.get(what, ()) if _is_current(row)]
                if part.get("warning", {}).get("code", "") == "UNREACHABLE":
                    down.add(zone)
            down |= {name.rpartition("/")[2] for name in page.get("unreachables", ())}
        except (AttributeError, TypeError, KeyError) as error:
            raise ProviderError("gcp", "format", f"{what}: the answer has no known form") from error
    return found, down


def _is_current(row: Mapping[str, Any]) -> bool:
    state = row.get("deprecated", {}).get("state", "")
    return bool(row["name"]) and state not in ("OBSOLETE", "DELETED")


def _zones(
    machine: InstanceType,
    rows: Mapping[str, Mapping[str, Any]],
    limits: Mapping[str, Mapping[str, int]],
) -> dict[str, tuple[str, ...]]:
    host, _, attached = machine.instance_type.partition("+")
    found = defaultdict(list)
    for zone in sorted(rows):
        cards = limits.get(zone, {}).get(_CARDS.get(machine.gpu, ""), 0) if attached else 0
        if host in rows[zone] and (not attached or cards >= machine.gpus):
            found[zone.rpartition("-")[0]].append(zone)
    return {region: tuple(zones) for region, zones in found.items()}


def _with_unreached(
    found: Mapping[str, tuple[str, ...]], shipped: Mapping[str, tuple[str, ...]], down: set[str]
) -> dict[str, tuple[str, ...]]:
    """The zones found, and shipped ones that could not be reached."""
    places = dict(found)
    for region, zones in shipped.items():
        unasked = {zone for zone in zones if zone in down}
        if unasked:
            places[region] = tuple(sorted({*places.get(region, ()), *unasked}))
    return places


def _shape(row: Mapping[str, Any]) -> Shape:
    accelerators = row.get("accelerators", ())
    disks = row.get("bundledLocalSsds", {}).get("partitionCount", 0)
    return Shape(
        vcpus=float(row["guestCpus"]),
        memory_gib=float(row["memoryMb"]) / 1024,
        gpus=sum(int(a["guestAcceleratorCount"]) for a in accelerators),
        ssd_gib=float(disks) * _SSD_GIB,
    )


def _unknown(
    rows: Mapping[str, Mapping[str, Any]], types: Mapping[str, InstanceType]
) -> tuple[UnknownType, ...]:
    regions: dict[str, set[str]] = defaultdict(set)
    seen: dict[str, Mapping[str, Any]] = {}
    for zone, found in rows.items():
        for name, row in found.items():
            if row.get("accelerators") and name not in types:
                regions[name].add(zone.rpartition("-")[0])
                seen[name] = row["accelerators"][0]
    return tuple(
        UnknownType(
            instance_type=name,
            gpu=str(seen[name].get("guestAcceleratorType", "")),
            gpus=float(seen[name].get("guestAcceleratorCount", 0)),
            regions=len(regions[name]),
            reason="the catalog does not describe it",
        )
        for name in sorted(seen)
    )


@dataclass(frozen=True, slots=True)
class History:
    """The comparison of composed spot prices with the provider's own history."""

    contradicted: tuple[Quarantined, ...]
    places: frozenset[tuple[str, str]]  # machine and region, of the doubted offers
    machines: tuple[str, ...]  # doubted in most regions: their parts are not what they are
    warnings: tuple[str, ...]


def check_history(web: Web, settings: Settings, offers: Sequence[Offer]) -> History:
    """Compare composed spot prices with Google's prices of whole machines.

    Calls the beta API `capacityHistory` once per machine and region; attached GPUs have none.
    Preemption rates (share of the spot machines that stopped because they were preempted, mean of
    30 days) have no column in the catalog and go into the warnings.
    """
    spot = {
        (o.instance_type, o.region): o.usd_per_hour
        for o in offers
        if o.market == "spot" and "+" not in o.instance_type
    }
    contradicted: list[Quarantined] = []
    places: set[tuple[str, str]] = set()
    without_history = 0
    rates: dict[str, list[float]] = defaultdict(list)
    compared: Counter[str] = Counter()
    for (name, region), usd in sorted(spot.items()):
        try:
            answer = _asked(web, settings, name, region)
            google_usd, preempted = _last_price(answer), _mean_rate(answer)
        except ProviderError as error:
            if error.fault in ("credentials", "timeout"):
                warning = (f"history: {error.reason}",)
                return History(tuple(contradicted), frozenset(places), (), warning)
            without_history += 1
            continue
        if preempted is not None:
            rates[name].append(preempted)
        compared[name] += google_usd is not None
        if google_usd is not None and abs(usd / google_usd - 1) > _PRICE_TOLERANCE:
            what = f"{name} {region} spot {usd!r} USD/h"
            reason = f"Google's own history says {google_usd:.6g} USD/h"
            contradicted.append(Quarantined("gcp", what, reason, "capacity_history"))
            places.add((name, region))
        without_history += google_usd is None
    machines = tuple(_miscomposed(places, compared))
    return History(
        tuple(contradicted),
        frozenset(places),
        machines,
        tuple(_history_notes(rates, without_history)),
    )


def _miscomposed(places: Iterable[tuple[str, str]], compared: Mapping[str, int]) -> Iterator[str]:
    """Machines contradicted in most of several regions: not one price is wrong but the sum."""
    contradicted = Counter(name for name, _ in places)
    for name, count in sorted(contradicted.items()):
        if compared[name] >= _REGIONS and 2 * count > compared[name]:
            yield name


def _history_notes(rates: Mapping[str, list[float]], without_history: int) -> Iterator[str]:
    for name, found in rates.items():
        yield f"{name}: preemption rate {min(found):.2f} to {max(found):.2f} by region"
    if without_history:
        yield f"no price history for {without_history} machines in a region"


def _asked(web: Web, settings: Settings, name: str, region: str) -> Any:
    path = f"compute/beta/projects/{settings.project}/regions/{region}/advice/capacityHistory"
    scheduling = {"provisioningModel": "SPOT"}
    body = {
        "instanceProperties": {"machineType": name, "scheduling": scheduling},
        "types": ["PREEMPTION", "PRICE"],
    }
    return web.json(f"{settings.compute}/{path}", body)


def _last_price(answer: Any) -> float | None:
    try:
        rows = sorted(answer.get("priceHistory", ()), key=lambda row: row["interval"]["endTime"])
        if not rows:
            return None
        price = rows[-1]["listPrice"]
        usd = float(price.get("units", 0)) + float(price.get("nanos", 0)) / 1e9
        return usd if price.get("currencyCode") == "USD" and usd > 0 else None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProviderError("gcp", "format", "the history has no known form") from error


def _mean_rate(answer: Any) -> float | None:
    try:
        rates = [float(row["preemptionRate"]) for row in answer.get("preemptionHistory", ())]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProviderError("gcp", "format", "the history has no known form") from error
    return sum(rates) / len(rates) if rates else None
