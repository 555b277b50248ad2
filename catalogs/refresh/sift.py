"""Which offers of a harvest are believed: each row by itself, then beside its neighbours.

What is not believed is quarantined by name with the rule that it broke. Bounds and where they
were measured: `catalogs.publication` and docs/refresh.md.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import isfinite
from statistics import median
from types import MappingProxyType
from typing import get_args

from catalogs.guards import type_problems
from catalogs.publication import BOUNDS
from catalogs.refresh.harvest import Harvest, Quarantined
from catalogs.schema import Gpu, InstanceType, Kind, Obtainable, Offer

HELD_CHANGE = 0.25  # on-demand prices changed in 8 of 3,599 nightly steps (GCP 2022-2026)
ALERT_CHANGE = 0.05
NO_BARGAIN = 0.9 - 1e-9  # at this share of the list price and above there is no spot offer
FLOORS = MappingProxyType({"aws": 0.10, "azure": 0.185})  # spot share of unsold capacity
_AT_FLOOR = 0.0005
SPOT_JUMP = MappingProxyType({"aws": 3.0, "gcp": 1.35, "azure": 1.35})  # alert, publish flagged
_COMPARABLE_DAYS = 400  # an on-demand price older than this is no measure of today's
_COMPARABLE_SPOT_DAYS = 31
# No local, wavelength or edge zones, no multi-regions, no government regions of Azure.
_REGION = MappingProxyType(
    {
        "aws": re.compile(r"[a-z]{2}(?!-iso)(-[a-z]+)+-\d"),
        "gcp": re.compile(r"[a-z]+-[a-z]+\d+"),
        "azure": re.compile(
            r"(?!usgov|usdod)(?=.{6})[a-z]*(east|west|north|south|central)[a-z]*\d?"
        ),
    }
)
_AWS_ZONE = re.compile(r"[a-z]+\d-az\d+")

Key = tuple[str, str, str, str]  # instance type, region, zone, market
Place = tuple[str, str]  # instance type, region


@dataclass(frozen=True, slots=True)
class Known:
    """What a harvest is measured against."""

    provider: str
    types: Mapping[str, InstanceType]
    gpus: Mapping[str, Gpu]
    last: Sequence[Offer]  # of this provider, in the last good version
    usd_per_gpu: Mapping[str, float]  # typical on-demand price of a GPU, over all providers
    today: date
    accept: bool = False  # a person has looked at the changes


@dataclass(frozen=True, slots=True)
class Sifted:
    """The offers that are believed, and what became of the others."""

    offers: tuple[Offer, ...]
    types: tuple[InstanceType, ...]  # new ones that are used
    held: frozenset[Place]  # the last good on-demand price stays, with its age
    quarantined: tuple[Quarantined, ...]
    alerts: tuple[str, ...]
    ignored: Mapping[str, int]  # rows known not to be meant, by rule
    jumped: int  # spot prices far from the last ones ...
    compared: int  # ... of so many that could be compared


class _Sieve:
    """Takes out rows and writes down why."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.out: list[Quarantined] = []
        self.held: set[Place] = set()
        self.alerts: list[str] = []
        self.ignored: Counter[str] = Counter()

    def refuse(self, offer: Offer, rule: str, reason: str) -> None:
        """Quarantine an offer."""
        said = f"{offer.usd_per_hour!r} USD/h: {reason}"
        self.out.append(Quarantined(self.known.provider, named(offer), said, rule))

    def hold(self, offer: Offer, rule: str, reason: str) -> None:
        """Quarantine an offer and keep the last good one in its place."""
        self.refuse(offer, rule, reason)
        self.held.add(place_of(offer))


def key_of(offer: Offer) -> Key:
    """What identifies an offer of a provider."""
    return offer.instance_type, offer.region, offer.zone, offer.market


def place_of(offer: Offer) -> Place:
    """The machine and region of an offer."""
    return offer.instance_type, offer.region


def named(offer: Offer) -> str:
    """An offer in words, the same every night."""
    return f"{offer.instance_type} {offer.zone or offer.region} {offer.market}"


def sift(harvest: Harvest, known: Known) -> Sifted:
    """Keep the offers that are believed."""
    sieve = _Sieve(known)
    new = _types(harvest, sieve)
    machines = {**known.types, **new}
    alone = [o for o in harvest.offers if _stands_alone(o, harvest, machines, sieve)]
    single = [_with_status(o, machines) for o in _without_twins(alone, sieve)]
    listed = _listed([o for o in single if o.market == "on_demand"], machines, sieve)
    spot = [o for o in single if o.market == "spot"]
    spot, jumped, compared = _spot(spot, listed, machines, sieve)
    kept = [*listed, *spot, *(o for o in single if o.market == "reserved_block")]
    used = {offer.instance_type for offer in kept}
    return Sifted(
        offers=tuple(kept),
        types=tuple(machine for name, machine in new.items() if name in used),
        held=frozenset(sieve.held),
        quarantined=tuple(sieve.out),
        alerts=tuple(sieve.alerts),
        ignored=dict(sieve.ignored),
        jumped=jumped,
        compared=compared,
    )


def _with_status(offer: Offer, machines: Mapping[str, InstanceType]) -> Offer:
    """What the catalog knows of a type's sale wins over a price list, which lists anything."""
    status = machines[offer.instance_type].status
    known = status in ("retired", "reservation_only", "spot_only")
    return replace(offer, obtainable=status) if known else offer


def _types(harvest: Harvest, sieve: _Sieve) -> dict[str, InstanceType]:
    good: dict[str, InstanceType] = {}
    for machine in harvest.types:
        problems = list(type_problems(machine, sieve.known.gpus))
        if machine.provider != sieve.known.provider or machine.instance_type in good:
            problems.append("described twice, or of another provider")
        if problems:
            what = f"instance type {machine.instance_type}"
            reason = "; ".join(problems)
            sieve.out.append(Quarantined(sieve.known.provider, what, reason, "type"))
        elif machine.instance_type not in sieve.known.types:
            good[machine.instance_type] = replace(machine, source=0)
    return good


def _stands_alone(
    offer: Offer, harvest: Harvest, machines: Mapping[str, InstanceType], sieve: _Sieve
) -> bool:
    for rule, check in _ALONE:
        reason = check(offer, harvest, machines, sieve.known)
        if reason:
            sieve.refuse(offer, rule, reason)
            return False
    machine = machines[offer.instance_type]
    if offer.market == "on_demand" and machine.status in ("spot_only", "reservation_only"):
        sieve.ignored["not sold on demand"] += 1
        return False
    return True


def _typed(offer: Offer, *_: object) -> str:
    texts = (
        offer.provider, offer.instance_type, offer.region, offer.zone, offer.market,
        offer.obtainable, offer.kind, offer.flag, offer.as_of,
    )  # fmt: skip
    good = all(isinstance(text, str) for text in texts) and isinstance(offer.uncertainty, float)
    return "" if good else "a field is of the wrong type"


def _price(offer: Offer, *_: object) -> str:
    usd = offer.usd_per_hour
    good = isinstance(usd, float) and isfinite(usd) and usd > 0
    return "" if good else "the price is not a positive number"


def _wrong_provider(offer: Offer, _h: object, _m: object, known: Known) -> str:
    return "" if offer.provider == known.provider else f"an offer of {offer.provider}"


def _market(offer: Offer, harvest: Harvest, *_: object) -> str:
    return "" if offer.market in harvest.markets else f"market {offer.market} was not read"


def _machine(offer: Offer, _h: object, machines: Mapping[str, InstanceType], _k: object) -> str:
    return "" if offer.instance_type in machines else "no such instance type is known"


def _region(offer: Offer, _h: object, _m: object, known: Known) -> str:
    pattern = _REGION.get(known.provider)
    if pattern is None or pattern.fullmatch(offer.region):
        return ""
    return f"{offer.region!r} is no region of {known.provider}"


def _zone(offer: Offer, _h: object, _m: object, known: Known) -> str:
    if not offer.zone:
        return ""
    if known.provider == "aws" and offer.market == "on_demand":
        return "on-demand prices of AWS hold for a region"
    if known.provider == "aws":
        return "" if _AWS_ZONE.fullmatch(offer.zone) else f"{offer.zone!r} is no zone id"
    inside = known.provider == "gcp" and offer.zone.startswith(f"{offer.region}-")
    return "" if inside else f"zone {offer.zone!r} is not in {offer.region}"


def _date(offer: Offer, _h: object, _m: object, known: Known) -> str:
    good = offer.as_of == known.today.isoformat()
    return "" if good else f"read today, but dated {offer.as_of!r}"


def _words(offer: Offer, harvest: Harvest, *_: object) -> str:
    if offer.kind not in get_args(Kind) or offer.obtainable not in get_args(Obtainable):
        return f"kind {offer.kind!r} or obtainable {offer.obtainable!r} is no such word"
    if not 0 <= offer.uncertainty < 1:
        return f"uncertainty {offer.uncertainty!r} is not in [0, 1)"
    listed = any(source.source == offer.source for source in harvest.sources)
    return "" if listed else f"source {offer.source} is not listed"


_Check = Callable[[Offer, Harvest, Mapping[str, InstanceType], Known], str]
_ALONE: tuple[tuple[str, _Check], ...] = (
    ("words", _typed),
    ("price", _price),
    ("provider", _wrong_provider),
    ("market", _market),
    ("unknown_type", _machine),
    ("region", _region),
    ("zone", _zone),
    ("date", _date),
    ("words", _words),
)


def _without_twins(offers: Iterable[Offer], sieve: _Sieve) -> list[Offer]:
    """One offer of each key; where prices differ, none."""
    found: dict[Key, list[Offer]] = defaultdict(list)
    for offer in offers:
        found[key_of(offer)].append(offer)
    single = []
    for twins in found.values():
        if len({offer.usd_per_hour for offer in twins}) == 1:
            single.append(twins[0])
            continue
        for offer in twins:
            sieve.refuse(offer, "duplicate", "offered twice at different prices")
    return single


def _listed(
    offers: Sequence[Offer], machines: Mapping[str, InstanceType], sieve: _Sieve
) -> list[Offer]:
    """On-demand prices near those of other regions, and near the last ones."""
    last = _last_listed(sieve.known)
    typical = _medians(offers) | ({} if sieve.known.accept else _medians(last.values()))
    low, high = BOUNDS[sieve.known.provider].region_spread
    kept, changed = [], 0
    for offer in _agreeing(offers, sieve):
        before = last.get(place_of(offer))
        change = offer.usd_per_hour / before.usd_per_hour - 1 if before else 0.0
        spread = offer.usd_per_hour / typical[offer.instance_type]
        strange = bool(machines[offer.instance_type].gpu) and not low <= spread <= high
        if not sieve.known.accept and before and abs(change) > HELD_CHANGE:
            reason = f"{change:+.0%} since {before.as_of}"
            sieve.hold(offer, "price_change", f"{reason}; --accept takes it after a look")
        elif strange and (before is None or abs(change) > ALERT_CHANGE):
            sieve.hold(offer, "region_spread", f"{spread:.2f} of the median over regions")
        else:
            changed += abs(change) > ALERT_CHANGE
            kept.append(offer)
    if changed:
        sieve.alerts.append(f"{changed} on-demand prices changed by more than {ALERT_CHANGE:.0%}")
    return kept


def _agreeing(offers: Iterable[Offer], sieve: _Sieve) -> Iterator[Offer]:
    """On-demand prices do not differ between zones; where they do, something else is among them."""
    places: dict[Place, list[Offer]] = defaultdict(list)
    for offer in offers:
        places[place_of(offer)].append(offer)
    for found in places.values():
        prices = [offer.usd_per_hour for offer in found]
        if max(prices) <= min(prices) * (1 + 1e-6):
            yield from found
            continue
        for offer in found:
            sieve.hold(offer, "zones_differ", "on-demand prices of one region differ")


def _last_listed(known: Known) -> dict[Place, Offer]:
    return {
        place_of(offer): offer
        for offer in known.last
        if offer.market == "on_demand"
        and offer.kind in ("quote", "composed")
        and _days(offer, known) <= _COMPARABLE_DAYS
    }


def _days(offer: Offer, known: Known) -> int:
    try:
        return (known.today - date.fromisoformat(offer.as_of[:10])).days
    except ValueError:  # of an imported catalog
        return _COMPARABLE_DAYS + 1


def _medians(offers: Iterable[Offer]) -> dict[str, float]:
    prices: dict[str, list[float]] = defaultdict(list)
    for offer in offers:
        prices[offer.instance_type].append(offer.usd_per_hour)
    return {name: median(found) for name, found in prices.items()}


def _spot(
    offers: Sequence[Offer],
    listed: Sequence[Offer],
    machines: Mapping[str, InstanceType],
    sieve: _Sieve,
) -> tuple[list[Offer], int, int]:
    """Spot prices in the usual share of the on-demand price; those that jumped are flagged."""
    known = sieve.known
    prices = {place_of(o): o.usd_per_hour for o in known.last if o.market == "on_demand"}
    prices |= {place_of(o): o.usd_per_hour for o in listed}
    last = {key_of(o): o for o in known.last if o.market == "spot"}
    kept, jumped, compared = [], 0, 0
    for offer in offers:
        machine = machines[offer.instance_type]
        if not _usual_share(offer, prices.get(place_of(offer)), machine, sieve):
            continue
        before = last.get(key_of(offer))
        if before and before.kind != "derived" and _days(before, known) <= _COMPARABLE_SPOT_DAYS:
            compared += 1
            if _jumped(offer, before):
                jumped += 1
                offer = replace(offer, flag=offer.flag or "jump")
        kept.append(_flagged(offer, prices.get(place_of(offer))))
    if jumped:
        sieve.alerts.append(f"{jumped} of {compared} spot prices jumped and are flagged")
    return kept, jumped, compared


def _usual_share(offer: Offer, listed: float | None, machine: InstanceType, sieve: _Sieve) -> bool:
    low, high = BOUNDS[sieve.known.provider].spot_share
    if listed is None and machine.status == "spot_only":
        # Not sold on demand: the same GPU's price elsewhere stands in, with the room that
        # the clouds keep among each other (0.4 to 2.5).
        typical = sieve.known.usd_per_gpu.get(machine.gpu)
        listed, low, high = (typical or 0.0) * machine.gpus, 0.4 * low, 1.0
    if not listed:
        sieve.refuse(offer, "no_on_demand", "spot without an on-demand price to measure it by")
        return False
    share = offer.usd_per_hour / listed
    if share > 1 + 1e-9:
        sieve.refuse(offer, "spot_dearer", f"dearer than on-demand ({listed:.6g})")
    elif share < low or high < share < NO_BARGAIN:
        sieve.refuse(offer, "spot_share", f"{share:.3f} of on-demand; usual is {low} to {high}")
    elif share >= NO_BARGAIN:
        sieve.ignored["spot at the on-demand price"] += 1
    else:
        return True
    return False


def _jumped(offer: Offer, before: Offer) -> bool:
    factor = offer.usd_per_hour / before.usd_per_hour
    return max(factor, 1 / factor) > SPOT_JUMP[offer.provider]


def _flagged(offer: Offer, listed: float | None) -> Offer:
    floor = FLOORS.get(offer.provider)
    if floor is None or listed is None or offer.flag not in ("", "jump"):
        return offer
    at_floor = abs(offer.usd_per_hour / listed - floor) < _AT_FLOOR
    return replace(offer, flag="floor") if at_floor else offer
