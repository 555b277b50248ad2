"""Which fetched offers are believed: each by itself, then against neighbours and last prices.

A cloud prices the sizes of one family (g5.xlarge to g5.48xlarge) in the same proportion in every
region. Measured on the prices of 2026 that ship, as the ratio of two sizes over its median over
regions: on-demand AWS 2,138 ratios within 0.1 %, Azure 611 within 0.2 %, GCP 855 within 3 %; spot
Azure 587 within 0.2 %, GCP 969 within 3 %. Spot prices of AWS keep no proportion (22 % of the
ratios are within 5 %). A size that leaves it by itself is misread, or of another product.

USD per GPU of the cheapest size of each number of GPUs differ within a family by 3.27 times at
most (g5g, whose one-GPU size has a quarter of the host; all others 2.1 or less).

How far a spot price of AWS moves was measured on 107 series of change points (P2 and P3, 92 days
of 2020 and 45 of 2023): of 9,249 nights none moved it by more than 1.22, of 9,142 pairs of nights
by more than 1.35, of 8,607 weeks 0.5 % by more than 1.42 and the farthest by 2.34. So a quote
that moved farther than any did in that time is held back, and the last good one stays with its
age; what lasts is believed, as the room grows with the age of what it is measured by.

What is not believed is quarantined by name with the rule that it broke. Bounds and where they
were measured: `recommender.catalogs.validation` and docs/refresh.md.
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

from recommender.catalogs.providers.contract import Harvest, Quarantined
from recommender.catalogs.schema import Gpu, InstanceType, Kind, Obtainable, Offer
from recommender.catalogs.validation import BOUNDS, type_problems

COMPARABLE_DAYS = 400  # an on-demand price older than this is no measure of today's

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


class Sieve:
    """Takes out rows and writes down why."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.out: list[Quarantined] = []
        self.held: set[Key] = set()
        self.alerts: list[str] = []
        self.ignored: Counter[str] = Counter()

    def refuse(self, offer: Offer, rule: str, reason: str) -> None:
        """Quarantine an offer."""
        said = f"{offer.usd_per_hour!r} USD/h: {reason}"
        self.out.append(Quarantined(self.known.provider, named(offer), said, rule))

    def hold(self, offer: Offer, rule: str, reason: str) -> None:
        """Quarantine an offer and keep the last good one in its place."""
        self.refuse(offer, rule, reason)
        self.held.add(held_as(offer))


def key_of(offer: Offer) -> Key:
    """What identifies an offer of a provider."""
    return offer.instance_type, offer.region, offer.zone, offer.market


def held_as(offer: Offer) -> Key:
    """What is held back with an offer: on-demand prices hold for all zones of a region."""
    zone = "" if offer.market == "on_demand" else offer.zone
    return offer.instance_type, offer.region, zone, offer.market


def place_of(offer: Offer) -> Place:
    """The machine and region of an offer."""
    return offer.instance_type, offer.region


def named(offer: Offer) -> str:
    """An offer in words, the same every night."""
    return f"{offer.instance_type} {offer.zone or offer.region} {offer.market}"


def days_old(offer: Offer, known: Known) -> int:
    """How many days ago a price was read."""
    try:
        return (known.today - date.fromisoformat(offer.as_of[:10])).days
    except ValueError:  # of an imported catalog
        return COMPARABLE_DAYS + 1


_OFF = 0.05
_REGIONS = 3  # in which a proportion must be known
_PER_GPU = 3.5

Prices = Mapping[Place, float]


class Families:
    """Prices of one market by machine and region: today's, and the last good ones.

    Proportions are taken from the last good prices where they hold them, so that a size that is
    wrong in every region is seen as well.
    """

    def __init__(self, machines: Mapping[str, InstanceType], now: Prices, last: Prices) -> None:
        self._machines = machines
        self._here: Prices = {**last, **now}
        self._usual: dict[str, dict[str, float]] = defaultdict(dict)
        for (name, region), usd in {**now, **last}.items():
            if machines[name].gpu:
                self._usual[name][region] = usd
        self._sizes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name in sorted(self._usual):
            self._sizes[machines[name].family, machines[name].gpu].append(name)
        self._known: dict[tuple[str, str], float | None] = {}

    def out_of_proportion(self, place: Place, usd: float) -> str:
        """Say what a price should be by most other sizes of the family; empty where it fits."""
        ratios = [
            usd / (price * usual)
            for name, price in self._siblings(place)
            if (usual := self._proportion(place[0], name)) is not None
        ]
        off = [ratio for ratio in ratios if abs(ratio - 1) > _OFF]
        if 2 * len(off) <= len(ratios):
            return ""
        return f"{median(ratios) - 1:+.0%} beside {len(off)} of {len(ratios)} sizes of its family"

    def odd_per_gpu(self, place: Place, usd: float) -> str:
        """Say how far USD per GPU of the sizes here are apart; empty where they are usual."""
        gpus = self._machines[place[0]].gpus
        cheapest: dict[int, float] = {gpus: usd / gpus} if gpus else {}
        for name, price in self._siblings(place):
            count = self._machines[name].gpus
            cheapest[count] = min(price / count, cheapest.get(count, price / count))
        low, high = min(cheapest.values(), default=0.0), max(cheapest.values(), default=0.0)
        if high <= _PER_GPU * low:
            return ""
        return f"{low:.4g} to {high:.4g} USD per GPU in one family; usual is a factor of 3.3"

    def _siblings(self, place: Place) -> Iterator[tuple[str, float]]:
        name, region = place
        machine = self._machines[name]
        for other in self._sizes.get((machine.family, machine.gpu), ()):
            usd = self._here.get((other, region))
            if other != name and usd is not None:
                yield other, usd

    def _proportion(self, name: str, other: str) -> float | None:
        """The median over regions of one size's price over another's."""
        key = (name, other)
        if key not in self._known:
            mine, its = self._usual[name], self._usual[other]
            ratios = [mine[region] / its[region] for region in mine.keys() & its.keys()]
            self._known[key] = median(ratios) if len(ratios) >= _REGIONS else None
        return self._known[key]


HELD_CHANGE = 0.25  # on-demand prices changed in 8 of 3,599 nightly steps (GCP 2022-2026)
ALERT_CHANGE = 0.05
_MOVED = 0.001  # what is at the last good price is no news, however odd


@dataclass(frozen=True, slots=True)
class _Measure:
    """What on-demand prices are measured by."""

    last: Mapping[Place, Offer]
    typical: Mapping[str, float]  # median over regions, by machine
    families: Families


def believed_listed(
    offers: Sequence[Offer], machines: Mapping[str, InstanceType], sieve: Sieve
) -> list[Offer]:
    """On-demand prices near the last ones, and near those of other regions and sizes."""
    measure = _measure(offers, machines, sieve.known)
    kept, changed = [], 0
    for offer in _agreeing(offers, sieve):
        rule, reason = _doubt_listed(offer, measure, machines[offer.instance_type], sieve.known)
        if rule:
            sieve.hold(offer, rule, reason)
        else:
            before = measure.last.get(place_of(offer))
            changed += before is not None and abs(_change(offer, before)) > ALERT_CHANGE
            kept.append(offer)
    if changed:
        sieve.alerts.append(f"{changed} on-demand prices changed by more than {ALERT_CHANGE:.0%}")
    return kept


def _measure(
    offers: Sequence[Offer], machines: Mapping[str, InstanceType], known: Known
) -> _Measure:
    last = _last_listed(known)
    before = {} if known.accept else {place: o.usd_per_hour for place, o in last.items()}
    now = {place_of(offer): offer.usd_per_hour for offer in offers}
    return _Measure(last, _medians(now) | _medians(before), Families(machines, now, before))


def _doubt_listed(
    offer: Offer, measure: _Measure, machine: InstanceType, known: Known
) -> tuple[str, str]:
    """The rule that an on-demand price breaks, and how."""
    place, usd = place_of(offer), offer.usd_per_hour
    before = measure.last.get(place)
    change = abs(_change(offer, before)) if before else float("inf")
    if before and change > HELD_CHANGE and not known.accept:
        moved = f"{_change(offer, before):+.0%} since {before.as_of}"
        return "price_change", f"{moved}; --accept takes it after a look"
    if not machine.gpu:
        return "", ""
    low, high = BOUNDS[known.provider].region_spread
    spread = usd / measure.typical[offer.instance_type]
    if change > ALERT_CHANGE and not low <= spread <= high:
        return "region_spread", f"{spread:.2f} of the median over regions"
    if change > _MOVED:
        if reason := measure.families.out_of_proportion(place, usd):
            return "family", reason
        if reason := measure.families.odd_per_gpu(place, usd):
            return "per_gpu", reason
    return "", ""


def _change(offer: Offer, before: Offer) -> float:
    return offer.usd_per_hour / before.usd_per_hour - 1


def _agreeing(offers: Iterable[Offer], sieve: Sieve) -> Iterator[Offer]:
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
        and days_old(offer, known) <= COMPARABLE_DAYS
    }


def _medians(prices: Mapping[Place, float]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for (name, _), usd in prices.items():
        found[name].append(usd)
    return {name: median(each) for name, each in found.items()}


NO_BARGAIN = 0.9 - 1e-9  # at this share of the list price and above there is no spot offer
FLOORS = MappingProxyType({"aws": 0.10, "azure": 0.185})  # spot share of unsold capacity
_AT_FLOOR = 0.0005
SPOT_JUMP = MappingProxyType({"aws": 1.5, "gcp": 1.35, "azure": 1.35})  # alert, publish flagged
_COMPARABLE_DAYS = 31
_ONE_NIGHT, _MORE_A_NIGHT, _MOST = 1.25, 1.12, 3.0  # of AWS


@dataclass(frozen=True, slots=True)
class BelievedSpot:
    """The spot offers that are believed, and how many of those that compare have jumped."""

    offers: list[Offer]
    jumped: int
    compared: int


def believed_spot(
    offers: Sequence[Offer],
    listed: Sequence[Offer],
    machines: Mapping[str, InstanceType],
    sieve: Sieve,
) -> BelievedSpot:
    """Spot prices in the usual share of the on-demand price; those that jumped are flagged."""
    known = sieve.known
    prices = {place_of(o): o.usd_per_hour for o in known.last if o.market == "on_demand"}
    prices |= {place_of(o): o.usd_per_hour for o in listed}
    last = _last(sieve)
    families = _families(offers, last, machines, sieve)
    kept, jumped, compared, held = [], 0, 0, 0
    for offer in offers:
        price = prices.get(place_of(offer))
        if not _usual_share(offer, price, machines[offer.instance_type], sieve):
            continue
        before = last.get(key_of(offer))
        factor = _factor(offer, before) if before else 1.0
        if reason := _doubt_spot(offer, before, families, sieve):
            sieve.hold(offer, *reason)
            held += 1
        else:
            far = factor > SPOT_JUMP[known.provider]
            kept.append(_flagged(replace(offer, flag="jump") if far else offer, price))
        compared += before is not None
        jumped += factor > SPOT_JUMP[known.provider] or bool(reason)
    if jumped:
        sieve.alerts.append(
            f"{jumped} of {compared} spot prices jumped: {held} held back, the others flagged"
        )
    return BelievedSpot(kept, jumped, compared)


def room(days: int) -> float:
    """How far a spot price of AWS may have moved since it was read."""
    return min(_MOST, _ONE_NIGHT * _MORE_A_NIGHT ** (max(days, 1) - 1))


def _last(sieve: Sieve) -> dict[Key, Offer]:
    return {
        key_of(o): o
        for o in sieve.known.last
        if o.market == "spot"
        and o.kind != "derived"
        and days_old(o, sieve.known) <= _COMPARABLE_DAYS
    }


def _families(
    offers: Sequence[Offer],
    last: Mapping[Key, Offer],
    machines: Mapping[str, InstanceType],
    sieve: Sieve,
) -> Families | None:
    """The proportions between sizes; AWS keeps none."""
    if sieve.known.provider == "aws":
        return None
    before = {place_of(o): o.usd_per_hour for o in last.values()}
    now = {place_of(o): o.usd_per_hour for o in offers}
    return Families(machines, now, {} if sieve.known.accept else before)


def _doubt_spot(
    offer: Offer, before: Offer | None, families: Families | None, sieve: Sieve
) -> tuple[str, str] | None:
    """The rule that a spot price breaks, and how."""
    factor = _factor(offer, before) if before else float("inf")
    if families is not None:
        if factor < 1 + _MOVED:
            return None
        reason = families.out_of_proportion(place_of(offer), offer.usd_per_hour)
        return ("family", reason) if reason else None
    if before is None or sieve.known.accept:
        return None
    days = days_old(before, sieve.known)
    if room(days) < _MOST and factor > room(days):
        moved = offer.usd_per_hour / before.usd_per_hour
        return "spot_move", f"x{moved:.2f} since {before.as_of}; a move that lasts is believed"
    return None


def _factor(offer: Offer, before: Offer) -> float:
    factor = offer.usd_per_hour / before.usd_per_hour
    return max(factor, 1 / factor)


def _usual_share(offer: Offer, listed: float | None, machine: InstanceType, sieve: Sieve) -> bool:
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
    usual = f"{share:.3f} of on-demand; usual is {low} to {high}"
    if share > 1 + 1e-9:
        sieve.refuse(offer, "spot_dearer", f"dearer than on-demand ({listed:.6g})")
    elif share < low:
        sieve.hold(offer, "spot_share", usual)
    elif high < share < NO_BARGAIN:
        sieve.refuse(offer, "spot_share", usual)
    elif share >= NO_BARGAIN:
        sieve.ignored["spot at the on-demand price"] += 1
    else:
        return True
    return False


def _flagged(offer: Offer, listed: float | None) -> Offer:
    floor = FLOORS.get(offer.provider)
    if floor is None or listed is None or offer.flag not in ("", "jump"):
        return offer
    at_floor = abs(offer.usd_per_hour / listed - floor) < _AT_FLOOR
    return replace(offer, flag="floor") if at_floor else offer


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
# A row that is there, and is not what it was: no machine withdrawn, none sold at the list price.
_DAMAGED = frozenset({"price", "duplicate", "zone", "date", "product"})
_AWS_ZONE = re.compile(r"[a-z]+\d-az\d+")


@dataclass(frozen=True, slots=True)
class Sifted:
    """The offers that are believed, and what became of the others."""

    offers: tuple[Offer, ...]
    types: tuple[InstanceType, ...]  # new ones that are used
    held: frozenset[Key]  # by `held_as`: the last good price stays, with its age
    quarantined: tuple[Quarantined, ...]
    alerts: tuple[str, ...]
    ignored: Mapping[str, int]  # rows known not to be meant, by rule
    jumped: int  # spot prices far from the last ones ...
    compared: int  # ... of so many that could be compared


def sift(harvest: Harvest, known: Known) -> Sifted:
    """Keep the offers that are believed."""
    sieve = Sieve(known)
    new = _types(harvest, sieve)
    machines = {**known.types, **new}
    alone = [o for o in harvest.offers if _stands_alone(o, harvest, machines, sieve)]
    single = [_with_status(o, machines) for o in _without_twins(alone, sieve)]
    priced = [o for o in single if o.market == "on_demand" and not _doubted(o, harvest, sieve)]
    listed = believed_listed(priced, machines, sieve)
    quoted = [o for o in single if o.market == "spot"]
    spot = believed_spot(quoted, listed, machines, sieve)
    _hold_damaged(harvest, sieve, {key_of(offer) for offer in spot.offers})
    kept = [*listed, *spot.offers, *(o for o in single if o.market == "reserved_block")]
    used = {offer.instance_type for offer in kept}
    return Sifted(
        offers=tuple(kept),
        types=tuple(machine for name, machine in new.items() if name in used),
        held=frozenset(sieve.held),
        quarantined=tuple(sieve.out),
        alerts=tuple(sieve.alerts),
        ignored=dict(sieve.ignored),
        jumped=spot.jumped,
        compared=spot.compared,
    )


def _hold_damaged(harvest: Harvest, sieve: Sieve, read: set[Key]) -> None:
    """Keep the last good spot price where today's row is there but damaged.

    Else a zone would forget its price for a night, and a wrong one be measured by nothing.
    """
    rows = (*harvest.quarantined, *sieve.out)
    names = {row.what.partition(" (")[0] for row in rows if row.rule in _DAMAGED}
    for offer in sieve.known.last:
        if offer.market == "spot" and named(offer) in names and key_of(offer) not in read:
            sieve.held.add(held_as(offer))


def _doubted(offer: Offer, harvest: Harvest, sieve: Sieve) -> bool:
    """A sum of parts that the provider's own price of the whole machine contradicts."""
    if offer.instance_type not in harvest.doubted:
        return False
    sieve.hold(offer, "composition", "the provider's own spot prices of it are not this sum's")
    return True


def _with_status(offer: Offer, machines: Mapping[str, InstanceType]) -> Offer:
    """What the catalog knows of a type's sale wins over a price list, which lists anything."""
    status = machines[offer.instance_type].status
    known = status in ("retired", "reservation_only", "spot_only")
    return replace(offer, obtainable=status) if known else offer


def _types(harvest: Harvest, sieve: Sieve) -> dict[str, InstanceType]:
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
    offer: Offer, harvest: Harvest, machines: Mapping[str, InstanceType], sieve: Sieve
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


def _without_twins(offers: Iterable[Offer], sieve: Sieve) -> list[Offer]:
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
