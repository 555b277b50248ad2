"""Checks spot prices: the usual share of on-demand, and no excessive move.

How far a spot price of AWS moves was measured on 107 series of change points (P2 and P3, 92 days
of 2020 and 45 of 2023): of 9,249 nights none moved it by more than 1.22, of 9,142 pairs of nights
by more than 1.35, of 8,607 weeks 0.5 % by more than 1.42 and the farthest by 2.34. So a quote
that moved farther than any did in that time is held back, and the last good one stays with its
age; what lasts is believed, as the room grows with the age of what it is measured by. The same
holds for Azure, whose spot prices moved by 0.8 to 1.1 in two months of 2026.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recommender.catalogs.refresh.family_proportions import MOVED, FamilyProportions
from recommender.catalogs.refresh.reference import Key, Verdicts, days_old, offer_key, place_of
from recommender.catalogs.registry import CLOUDS, SpotBounds
from recommender.catalogs.schema import InstanceType, Offer

MAX_SPOT_SHARE = 0.9 - 1e-9  # at this share of the list price and above there is no spot offer
_AT_FLOOR = 0.0005
_COMPARABLE_DAYS = 31
_ONE_NIGHT, _MORE_A_NIGHT, _MAX = 1.25, 1.12, 3.0
_ROUNDED = 1e-3  # a fall to 0.8 is 1.2502 in prices of four digits


@dataclass(frozen=True, slots=True)
class ValidatedSpot:
    """The accepted spot offers, and how many of the comparable ones have jumped."""

    offers: list[Offer]
    jumped: int
    compared: int


def validate_spot_prices(
    offers: Sequence[Offer],
    listed: Sequence[Offer],
    machines: Mapping[str, InstanceType],
    verdicts: Verdicts,
) -> ValidatedSpot:
    """Accept spot prices with the usual share of on-demand; flag those that jumped."""
    reference = verdicts.reference
    bounds = CLOUDS[reference.provider].bounds.spot
    if bounds is None:
        for offer in offers:
            verdicts.quarantine(
                offer, "market", f"{reference.provider} is not known to sell spot machines"
            )
        return ValidatedSpot([], 0, 0)
    prices = {place_of(o): o.usd_per_hour for o in reference.last if o.market == "on_demand"}
    prices |= {place_of(o): o.usd_per_hour for o in listed}
    last = _last(verdicts)
    families = None if bounds.auction else _families(offers, last, machines, verdicts)
    kept, jumped, compared, held = [], 0, 0, 0
    for offer in offers:
        price = prices.get(place_of(offer))
        if not _usual_share(offer, price, machines[offer.instance_type], bounds, verdicts):
            continue
        before = last.get(offer_key(offer))
        factor = _factor(offer, before) if before else 1.0
        if reason := _doubt_spot(offer, before, families, bounds, verdicts):
            verdicts.hold_back(offer, *reason)
            held += 1
        else:
            flagged = replace(offer, flag="jump") if factor > bounds.jump else offer
            kept.append(_with_floor_flag(flagged, price, bounds.floor))
        compared += before is not None
        jumped += factor > bounds.jump or bool(reason)
    if jumped:
        verdicts.alerts.append(
            f"{jumped} of {compared} spot prices jumped: {held} held back, the others flagged"
        )
    return ValidatedSpot(kept, jumped, compared)


def allowed_factor(days: int) -> float:
    """The allowed move of a spot price since it was read, from 1.25 within a night."""
    return min(_MAX, _ONE_NIGHT * _MORE_A_NIGHT ** (max(days, 1) - 1))


def _last(verdicts: Verdicts) -> dict[Key, Offer]:
    return {
        offer_key(o): o
        for o in verdicts.reference.last
        if o.market == "spot"
        and o.kind != "derived"
        and days_old(o, verdicts.reference) <= _COMPARABLE_DAYS
    }


def _families(
    offers: Sequence[Offer],
    last: Mapping[Key, Offer],
    machines: Mapping[str, InstanceType],
    verdicts: Verdicts,
) -> FamilyProportions:
    """The proportions between sizes; prices of an auction keep none."""
    before = {place_of(o): o.usd_per_hour for o in last.values()}
    now = {place_of(o): o.usd_per_hour for o in offers}
    return FamilyProportions(machines, now, {} if verdicts.reference.accept else before)


def _doubt_spot(
    offer: Offer,
    before: Offer | None,
    families: FamilyProportions | None,
    bounds: SpotBounds,
    verdicts: Verdicts,
) -> tuple[str, str] | None:
    """The rule that a spot price breaks, and how."""
    factor = _factor(offer, before) if before else float("inf")
    if families is not None and factor >= 1 + MOVED:
        reason = families.out_of_proportion(place_of(offer), offer.usd_per_hour, bounds.family)
        if reason:
            return "family", reason
    if before is None or verdicts.reference.accept or not bounds.hold_jumps:
        return None
    days = days_old(before, verdicts.reference)
    moved = offer.usd_per_hour / before.usd_per_hour
    most = allowed_factor(days)
    if most < _MAX and not (1 - _ROUNDED) / most <= moved <= most:
        return "spot_move", f"x{moved:.2f} since {before.as_of}; a move that lasts is believed"
    return None


def _factor(offer: Offer, before: Offer) -> float:
    factor = offer.usd_per_hour / before.usd_per_hour
    return max(factor, 1 / factor)


def _usual_share(
    offer: Offer,
    listed: float | None,
    machine: InstanceType,
    bounds: SpotBounds,
    verdicts: Verdicts,
) -> bool:
    low, high = bounds.share
    if listed is None and machine.status == "spot_only":
        # Not sold on demand: the same GPU's price elsewhere is used, with the tolerance that
        # the clouds keep among each other (0.4 to 2.5).
        typical = verdicts.reference.usd_per_gpu.get(machine.gpu)
        listed, low, high = (typical or 0.0) * machine.gpus, 0.4 * low, 1.0
    if not listed:
        verdicts.quarantine(
            offer, "no_on_demand", "spot without an on-demand price to measure it by"
        )
        return False
    share = offer.usd_per_hour / listed
    usual = f"{share:.3f} of on-demand; usual is {low} to {high}"
    if share > 1 + 1e-9:
        verdicts.quarantine(
            offer, "spot_above_on_demand", f"more expensive than on-demand ({listed:.6g})"
        )
    elif share < low:
        verdicts.hold_back(offer, "spot_share", usual)
    elif high < share < MAX_SPOT_SHARE:
        verdicts.quarantine(offer, "spot_share", usual)
    elif share >= MAX_SPOT_SHARE:
        verdicts.ignored["spot at the on-demand price"] += 1
    else:
        return True
    return False


def _with_floor_flag(offer: Offer, listed: float | None, floor: float | None) -> Offer:
    if floor is None or listed is None or offer.flag not in ("", "jump"):
        return offer
    at_floor = abs(offer.usd_per_hour / listed - floor) < _AT_FLOOR
    return replace(offer, flag="floor") if at_floor else offer
