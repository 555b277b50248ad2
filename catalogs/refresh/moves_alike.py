"""Detects implausible joint price moves: all by one factor, or from one region to another.

A tax, a currency or a discount on a whole list moves every price by the same factor, far less than
any bound of a single price; two regions whose names were swapped each have valid prices of the
other. Both are visible only in comparison with the last good prices as a whole. Real price changes
come by machine: of 3,599 nightly steps of on-demand prices (GCP 2022-2026) 8 moved at all.

Posted spot prices do move by region: on 31 of 124 dates of 2022-2026 Google moved all of a region
by one step (0.85 to 1.15) without its on-demand prices. So in a region they are implausible only
together with those, and otherwise reported; auction prices never move alike. Sizes of one family
may move as one: a region needs at least two families to be judged.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from recommender.catalogs.providers.contract import Failed
from recommender.catalogs.refresh.reference import offer_key
from recommender.catalogs.registry import SPOT_AUCTIONS
from recommender.catalogs.schema import InstanceType, Offer

_MOVED = 0.005  # an exchange rate moves by as much in a day
_SAME_FACTOR = 0.002
_ALIKE = 0.8  # of the prices that can be compared
_MIN = 20
_MIN_IN_REGION = 8
_SPOT_STEP = 1.2  # of a region's posted spot prices; Google's were 0.85 to 1.15
_SWAPPED = 0.95  # of the prices that moved in a region are those of another
_MIN_SWAPPED = 3
_EQUAL = 1e-6


def factors_in_common(offers: Sequence[Offer], last: Sequence[Offer]) -> Iterator[str]:
    """For each market whose prices moved by one factor, this factor."""
    for market, ratios in sorted(_ratios(offers, last, lambda o: (o.market,)).items()):
        factor, share = _in_common(ratios)
        if len(ratios) >= _MIN and share >= _ALIKE and abs(factor - 1) > _MOVED:
            yield (
                f"{market[0]}: {share:.0%} of {len(ratios)} prices moved by the same factor "
                f"x{factor:.4g}; a tax, a currency, a discount?"
            )


def odd_regions(
    offers: Sequence[Offer], last: Sequence[Offer], machines: Mapping[str, InstanceType]
) -> Iterator[Failed]:
    """Treat regions whose prices moved by one factor, or to another's, as failed."""
    for step in _in_step(offers, last, machines):
        if not _usual(step, offers):
            yield Failed(step.region, "", step.message)
    swapped = dict(_swapped(offers, last))
    for region, other in sorted(swapped.items()):
        if other in swapped:  # else its prices were aligned with those of a region that stayed
            yield Failed(region, "", f"its prices are those that {other} had")


def spot_steps(
    offers: Sequence[Offer], last: Sequence[Offer], machines: Mapping[str, InstanceType]
) -> Iterator[str]:
    """Report regions whose posted spot prices moved by one factor."""
    for step in _in_step(offers, last, machines):
        if _usual(step, offers):
            yield f"{step.region}: {step.message}"


@dataclass(frozen=True, slots=True)
class _Step:
    """A market of a region whose prices moved by one factor."""

    market: str
    region: str
    factor: float
    message: str


def _usual(step: _Step, offers: Sequence[Offer]) -> bool:
    posted = step.market == "spot" and offers[0].provider not in SPOT_AUCTIONS
    return posted and 1 / _SPOT_STEP < step.factor < _SPOT_STEP


def _in_step(
    offers: Sequence[Offer], last: Sequence[Offer], machines: Mapping[str, InstanceType]
) -> Iterator[_Step]:
    """Markets and regions of two families at least whose prices moved by one factor."""
    by_family = _ratios(
        offers, last, lambda o: (o.market, o.region, machines[o.instance_type].family)
    )
    by_region: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for (market, region, _), found in by_family.items():
        by_region[market, region].append(found)
    for (market, region), families in sorted(by_region.items()):
        ratios = [ratio for found in families for ratio in found]
        factor, share = _in_common(ratios)
        enough = len(ratios) >= _MIN_IN_REGION and len(families) > 1
        if enough and share >= _ALIKE and abs(factor - 1) > 10 * _MOVED:
            message = f"{share:.0%} of its {market} prices moved by the same factor x{factor:.4g}"
            yield _Step(market, region, factor, message)


def _ratios(
    offers: Sequence[Offer], last: Sequence[Offer], group: Callable[[Offer], tuple[str, ...]]
) -> dict[tuple[str, ...], list[float]]:
    before = {offer_key(o): o.usd_per_hour for o in last if o.kind != "derived"}
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for offer in offers:
        usd = before.get(offer_key(offer))
        if usd is not None:
            found[group(offer)].append(offer.usd_per_hour / usd)
    return found


def _in_common(ratios: Sequence[float]) -> tuple[float, float]:
    """The median ratio, and the share of ratios that are it."""
    factor = median(ratios)
    return factor, sum(abs(r / factor - 1) <= _SAME_FACTOR for r in ratios) / len(ratios)


def _swapped(offers: Sequence[Offer], last: Sequence[Offer]) -> Iterator[tuple[str, str]]:
    """Each region that seems to hold another's prices, and which."""
    now, before = _by_region(offers), _by_region(last)
    for region, prices in now.items():
        own = before.get(region, {})
        moved = {key: usd for key, usd in prices.items() if key in own and _differ(usd, own[key])}
        if len(moved) < _MIN_SWAPPED:
            continue
        likeness: Counter[str] = Counter()
        for other, theirs in before.items():
            if other != region:
                same = sum(key in theirs and not _differ(moved[key], theirs[key]) for key in moved)
                likeness[other] = same
        for other, same in likeness.most_common(1):
            if same >= _SWAPPED * len(moved):
                yield region, other


def _by_region(offers: Sequence[Offer]) -> Mapping[str, Mapping[str, float]]:
    """On-demand prices: those of spot auctions differ every night."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for offer in offers:
        if offer.market == "on_demand":
            found[offer.region][offer.instance_type] = offer.usd_per_hour
    return found


def _differ(one: float, other: float) -> bool:
    return abs(one / other - 1) > _EQUAL
