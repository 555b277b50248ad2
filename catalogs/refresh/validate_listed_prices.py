"""Checks on-demand prices against the last ones and those of other regions and sizes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from recommender.catalogs.refresh.family_proportions import MOVED, FamilyProportions
from recommender.catalogs.refresh.reference import (
    COMPARABLE_DAYS,
    Place,
    Reference,
    Verdicts,
    days_old,
    place_of,
)
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.schema import InstanceType, Offer

HELD_CHANGE = 0.25  # on-demand prices changed in 8 of 3,599 nightly steps (GCP 2022-2026)
ALERT_CHANGE = 0.05


@dataclass(frozen=True, slots=True)
class _Measure:
    """What on-demand prices are measured by."""

    last: Mapping[Place, Offer]
    typical: Mapping[str, float]  # median over regions, by machine
    families: FamilyProportions


def validate_listed_prices(
    offers: Sequence[Offer], machines: Mapping[str, InstanceType], verdicts: Verdicts
) -> list[Offer]:
    """Accept on-demand prices near the last ones and those of other regions and sizes."""
    measure = _measure(offers, machines, verdicts.reference)
    kept, changed = [], 0
    for offer in _agreeing(offers, verdicts):
        rule, reason = _doubt_listed(
            offer, measure, machines[offer.instance_type], verdicts.reference
        )
        if rule:
            verdicts.hold_back(offer, rule, reason)
        else:
            before = measure.last.get(place_of(offer))
            changed += before is not None and abs(_change(offer, before)) > ALERT_CHANGE
            kept.append(offer)
    if changed:
        verdicts.alerts.append(
            f"{changed} on-demand prices changed by more than {ALERT_CHANGE:.0%}"
        )
    return kept


def _measure(
    offers: Sequence[Offer], machines: Mapping[str, InstanceType], reference: Reference
) -> _Measure:
    last = _last_listed(reference)
    before = {} if reference.accept else {place: o.usd_per_hour for place, o in last.items()}
    now = {place_of(offer): offer.usd_per_hour for offer in offers}
    return _Measure(
        last, _medians(now) | _medians(before), FamilyProportions(machines, now, before)
    )


def _doubt_listed(
    offer: Offer, measure: _Measure, machine: InstanceType, reference: Reference
) -> tuple[str, str]:
    """The rule that an on-demand price breaks, and how."""
    place, usd = place_of(offer), offer.usd_per_hour
    before = measure.last.get(place)
    change = abs(_change(offer, before)) if before else float("inf")
    if before and change > HELD_CHANGE and not reference.accept:
        moved = f"{_change(offer, before):+.0%} since {before.as_of}"
        return "price_change", f"{moved}; --accept takes it after a look"
    if not machine.gpu:
        return "", ""
    low, high = CLOUDS[reference.provider].bounds.region_spread
    spread = usd / measure.typical[offer.instance_type]
    if change > ALERT_CHANGE and not low <= spread <= high:
        return "region_spread", f"{spread:.2f} of the median over regions"
    if change > MOVED:
        if reason := measure.families.out_of_proportion(place, usd):
            return "family", reason
        if reason := measure.families.odd_per_gpu(place, usd):
            return "per_gpu", reason
    return "", ""


def _change(offer: Offer, before: Offer) -> float:
    return offer.usd_per_hour / before.usd_per_hour - 1


def _agreeing(offers: Iterable[Offer], verdicts: Verdicts) -> Iterator[Offer]:
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
            verdicts.hold_back(offer, "zones_differ", "on-demand prices of one region differ")


def _last_listed(reference: Reference) -> dict[Place, Offer]:
    return {
        place_of(offer): offer
        for offer in reference.last
        if offer.market == "on_demand"
        and offer.kind in ("quote", "composed")
        and days_old(offer, reference) <= COMPARABLE_DAYS
    }


def _medians(prices: Mapping[Place, float]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for (name, _), usd in prices.items():
        found[name].append(usd)
    return {name: median(each) for name, each in found.items()}
