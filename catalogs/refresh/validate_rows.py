"""Checks fetched offers: each on its own, then against neighbours and last prices.

A refused offer is quarantined with the rule that it broke. Bounds and their sources:
`recommender.catalogs.registry` and docs/refresh.md.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import get_args

from recommender.catalogs.providers.contract import Fetched, Quarantined
from recommender.catalogs.refresh.reference import (
    Key,
    Reference,
    Verdicts,
    held_key,
    offer_key,
    offer_name,
)
from recommender.catalogs.refresh.validate_listed_prices import validate_listed_prices
from recommender.catalogs.refresh.validate_new_types import with_doubted_types
from recommender.catalogs.refresh.validate_spot_prices import validate_spot_prices
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.rentable import sold_as
from recommender.catalogs.schema import InstanceType, Kind, Obtainable, Offer
from recommender.catalogs.validation import type_problems

# A row that is there, and is not what it was: no machine withdrawn, none sold at the list price.
_DAMAGED = frozenset({"price", "duplicate", "zone", "date", "product"})


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """The accepted offers, and the fate of the others."""

    offers: tuple[Offer, ...]
    types: tuple[InstanceType, ...]  # new ones that are used
    held: frozenset[Key]  # by `held_key`: the last good price stays, with its age
    quarantined: tuple[Quarantined, ...]
    alerts: tuple[str, ...]
    ignored: Mapping[str, int]  # rows known not to be meant, by rule
    jumped: int  # spot prices far from the last ones ...
    compared: int  # ... of so many that could be compared


def validate_rows(fetched: Fetched, reference: Reference) -> ValidatedRows:
    """Keep the acceptable offers."""
    verdicts = Verdicts(reference)
    new = _types(fetched, verdicts)
    machines = {**reference.types, **new}
    alone = [o for o in fetched.offers if _stands_alone(o, fetched, machines, verdicts)]
    single = [_with_status(o, machines) for o in _without_duplicates(alone, verdicts)]
    priced = [o for o in single if o.market == "on_demand" and not _doubted(o, fetched, verdicts)]
    listed = validate_listed_prices(priced, machines, verdicts)
    single = with_doubted_types(single, listed, new, verdicts)
    kept_types = {each.instance_type for each in single}
    listed = [o for o in listed if o.instance_type in kept_types]
    quoted = [o for o in single if o.market == "spot"]
    spot = validate_spot_prices(quoted, listed, machines, verdicts)
    _hold_damaged(fetched, verdicts, {offer_key(offer) for offer in spot.offers})
    kept = [*listed, *spot.offers, *(o for o in single if o.market == "reserved_block")]
    used = {offer.instance_type for offer in kept}
    return ValidatedRows(
        offers=tuple(kept),
        types=tuple(machine for name, machine in new.items() if name in used),
        held=frozenset(verdicts.held),
        quarantined=tuple(verdicts.quarantined),
        alerts=tuple(verdicts.alerts),
        ignored=dict(verdicts.ignored),
        jumped=spot.jumped,
        compared=spot.compared,
    )


def _hold_damaged(fetched: Fetched, verdicts: Verdicts, read: set[Key]) -> None:
    """Keep the last good spot price where today's row is there but damaged.

    Else a zone would forget its price for a night, and a wrong one be measured by nothing.
    """
    rows = (*fetched.quarantined, *verdicts.quarantined)
    names = {row.what.partition(" (")[0] for row in rows if row.rule in _DAMAGED}
    for offer in verdicts.reference.last:
        if offer.market == "spot" and offer_name(offer) in names and offer_key(offer) not in read:
            verdicts.held.add(held_key(offer))


def _doubted(offer: Offer, fetched: Fetched, verdicts: Verdicts) -> bool:
    """A sum of parts that the provider's own price of the whole machine contradicts."""
    if offer.instance_type not in fetched.contradicted:
        return False
    verdicts.hold_back(
        offer, "composition", "the provider's own spot prices of it are not this sum's"
    )
    return True


def _with_status(offer: Offer, machines: Mapping[str, InstanceType]) -> Offer:
    """What the catalog knows of a type's sale wins over a price list, which lists anything."""
    really = sold_as(offer.provider, offer.instance_type, offer.market, offer.region)
    if really is not None:
        return replace(offer, obtainable=really)
    status = machines[offer.instance_type].status
    known = status in ("retired", "reservation_only", "on_request", "spot_only")
    return replace(offer, obtainable=status) if known else offer


def _types(fetched: Fetched, verdicts: Verdicts) -> dict[str, InstanceType]:
    good: dict[str, InstanceType] = {}
    for machine in fetched.types:
        problems = list(type_problems(machine, verdicts.reference.gpus))
        if machine.provider != verdicts.reference.provider or machine.instance_type in good:
            problems.append("described twice, or of another provider")
        if problems:
            what = f"instance type {machine.instance_type}"
            reason = "; ".join(problems)
            verdicts.quarantined.append(
                Quarantined(verdicts.reference.provider, what, reason, "type")
            )
        elif machine.instance_type not in verdicts.reference.types:
            good[machine.instance_type] = replace(machine, source=0)
    return good


def _stands_alone(
    offer: Offer, fetched: Fetched, machines: Mapping[str, InstanceType], verdicts: Verdicts
) -> bool:
    for rule, check in _ALONE:
        reason = check(offer, fetched, machines, verdicts.reference)
        if reason:
            verdicts.quarantine(offer, rule, reason)
            return False
    machine = machines[offer.instance_type]
    if offer.market == "on_demand" and machine.status in ("spot_only", "reservation_only"):
        verdicts.ignored["not sold on demand"] += 1
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


def _wrong_provider(offer: Offer, _h: object, _m: object, reference: Reference) -> str:
    return "" if offer.provider == reference.provider else f"an offer of {offer.provider}"


def _market(offer: Offer, fetched: Fetched, *_: object) -> str:
    return "" if offer.market in fetched.markets else f"market {offer.market} was not read"


def _machine(offer: Offer, _h: object, machines: Mapping[str, InstanceType], _k: object) -> str:
    return "" if offer.instance_type in machines else "no such instance type is known"


def _region(offer: Offer, _h: object, _m: object, reference: Reference) -> str:
    if re.fullmatch(CLOUDS[reference.provider].region_pattern, offer.region):
        return ""
    return f"{offer.region!r} is no region of {reference.provider}"


def _new_region(offer: Offer, _h: object, _m: object, reference: Reference) -> str:
    """A region may be new, or one whose name was changed on the way: a person looks first."""
    if offer.region in reference.regions or not reference.regions or reference.accept:
        return ""
    return f"{offer.region!r} was no region so far; --accept takes it"


def _zone(offer: Offer, _h: object, _m: object, reference: Reference) -> str:
    if not offer.zone:
        return ""
    info = CLOUDS[reference.provider]
    if info.zones == "id" and offer.market == "on_demand":
        return f"on-demand prices of {info.label} hold for a region"
    known = reference.zones.get(offer.zone, offer.region)
    if known != offer.region:
        return f"zone {offer.zone!r} is in {known}"
    if info.zones == "id":
        is_id = re.fullmatch(info.zone_pattern, offer.zone)
        return "" if is_id else f"{offer.zone!r} is no zone id"
    inside = info.zones == "region" and offer.zone.startswith(f"{offer.region}-")
    return "" if inside else f"zone {offer.zone!r} is not in {offer.region}"


def _date(offer: Offer, fetched: Fetched, _m: object, reference: Reference) -> str:
    today = reference.today.isoformat()
    good = (fetched.since or today) <= offer.as_of <= today
    return "" if good else f"read today, but dated {offer.as_of!r}"


def _words(offer: Offer, fetched: Fetched, *_: object) -> str:
    if offer.kind not in get_args(Kind) or offer.obtainable not in get_args(Obtainable):
        return f"kind {offer.kind!r} or obtainable {offer.obtainable!r} is no such word"
    if not 0 <= offer.uncertainty < 1:
        return f"uncertainty {offer.uncertainty!r} is not in [0, 1)"
    listed = any(source.source == offer.source for source in fetched.sources)
    return "" if listed else f"source {offer.source} is not listed"


_Check = Callable[[Offer, Fetched, Mapping[str, InstanceType], Reference], str]
_ALONE: tuple[tuple[str, _Check], ...] = (
    ("words", _typed),
    ("price", _price),
    ("provider", _wrong_provider),
    ("market", _market),
    ("unknown_type", _machine),
    ("region", _region),
    ("new_region", _new_region),
    ("zone", _zone),
    ("date", _date),
    ("words", _words),
)


def _without_duplicates(offers: Iterable[Offer], verdicts: Verdicts) -> list[Offer]:
    """One offer of each key; where prices differ, none."""
    found: dict[Key, list[Offer]] = defaultdict(list)
    for offer in offers:
        found[offer_key(offer)].append(offer)
    single = []
    for twins in found.values():
        if len({offer.usd_per_hour for offer in twins}) == 1:
            single.append(twins[0])
            continue
        for offer in twins:
            verdicts.quarantine(offer, "duplicate", "offered twice at different prices")
    return single
