"""Spot offers of AWS: zone quotes, and prices derived where none is known.

In order: the zone's own quote; the median of the region's other zones; the ratio of a
sibling size in the region times the own list price; the spot advisor's saving. A derived
price is set at the upper third of its error, so that it does not win by luck.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from recommender.catalogs.schema import Offer
from tests.research.snapshot.machines import Machines
from tests.research.snapshot.reading import Cells, read_table
from tests.research.snapshot.sources import SourceBook, cite

# Median absolute errors of each rule against quotes (computed on the tables of 2026-08).
_ZONE_MEDIAN_ERROR, _SIBLING_ERROR, _ADVISOR_ERROR_G, _ADVISOR_ERROR_P = 0.115, 0.22, 0.27, 0.48
_ADVISOR_BIAS_G = -0.14  # the advisor's savings give prices that are too low by that much
# A median absolute error of 0.6745 sd puts the upper third (z = 0.4307) at 0.64 of it.
_UPPER_THIRD = 0.4307 / 0.6745
_NO_BARGAIN = 0.9 - 1e-9  # at this share of the list price and above there is no spot offer
_ADVISOR_DATE = "2025-06-28"
_OLD_QUOTES_DATE = "2025-12-01"  # "late 2025" is all that is known
_ZONE = re.compile(r"[a-z]+\d-az\d+")  # not the ids of local zones: use1-atl2-az1


@dataclass(frozen=True, slots=True)
class Quote:
    """What is known of a type's spot price in one zone; no price: about the list price."""

    instance_type: str
    region: str
    zone: str
    usd_per_hour: float | None
    at_floor: bool
    as_of: str
    source: int

    @property
    def is_market(self) -> bool:
        """A price that somebody's demand has made."""
        return self.usd_per_hour is not None and not self.at_floor


@dataclass(frozen=True, slots=True)
class Advice:
    """What the spot advisor says of a type in a region."""

    saving: float
    interruption_range: int


Place = tuple[str, str]  # (instance type, region)


def spot_offers(
    folder: Path, listed: list[Offer], machines: Machines, book: SourceBook
) -> list[Offer]:
    """Build the spot offers of every training type."""
    fresh = _quotes(read_table(folder / "extra_aws_spot_by_zone.csv"), book)
    covered = {quote.instance_type for quote in fresh}
    old = _old_quotes(read_table(folder / "aws_spot_by_zone.csv"), covered, book)
    quotes = [q for q in fresh + old if machines.trains("aws", q.instance_type)]
    advice = _advice(read_table(folder / "aws_spot_advisor.csv"))
    offers = [
        *quoted_offers(quotes, machines),
        *zone_offers(quotes, listed),
        *regional_offers(quotes, listed, advice, cite(book, "AWS Spot Advisor")),
    ]
    return [_with_range(offer, advice) for offer in offers]


def quoted_offers(quotes: list[Quote], machines: Machines) -> list[Offer]:
    """Turn quotes into offers; a quote at the floor takes the price of the region's others."""
    market = _by_place(quote for quote in quotes if quote.is_market)
    offers = []
    for quote in quotes:
        if quote.usd_per_hour is not None:
            offer = _offer(quote, quote.zone, quote.usd_per_hour)
            status = machines.status("aws", quote.instance_type)
            offer = replace(offer, obtainable=status, flag="floor" if quote.at_floor else "")
            others = market.get((quote.instance_type, quote.region))
            if quote.at_floor and others:
                usd = median(q.usd_per_hour or 0.0 for q in others)
                offer = replace(
                    offer, usd_per_hour=usd, kind="derived", uncertainty=_ZONE_MEDIAN_ERROR
                )
            offers.append(offer)
    return offers


def zone_offers(quotes: list[Quote], listed: list[Offer]) -> list[Offer]:
    """Derive a price in zones where only other sizes of a G family were transcribed.

    The list of quotes is complete for P families: there a missing zone has no offer.
    """
    prices = _list_prices(listed)
    zones: dict[tuple[str, str], set[str]] = {}
    for quote in quotes:
        zones.setdefault((_family(quote.instance_type), quote.region), set()).add(quote.zone)
    offers = []
    for (name, region), group in sorted(_by_place(quotes).items()):
        priced = [q.usd_per_hour for q in group if q.is_market and q.usd_per_hour]
        usd = _upper_third(median(priced), _ZONE_MEDIAN_ERROR) if priced else 0.0
        if name.startswith("g") and 0 < usd < _NO_BARGAIN * prices.get((name, region), 0.0):
            for zone in sorted(zones[_family(name), region] - {q.zone for q in group}):
                offers.append(_derived(_offer(group[0], zone, usd), "zone_median"))
    return offers


def regional_offers(
    quotes: list[Quote], listed: list[Offer], advice: dict[Place, Advice], source: int
) -> list[Offer]:
    """Derive one price for a region in which no zone of a type was quoted."""
    quoted = _by_place(quotes).keys()
    complete = {q.instance_type for q in quotes if not q.instance_type.startswith("g")}
    ratios = _sibling_ratios(quotes, listed)
    offers = []
    for offer in listed:
        place = (offer.instance_type, offer.region)
        if offer.obtainable != "open" or place in quoted or offer.instance_type in complete:
            continue
        ratio = ratios.get((_family(offer.instance_type), offer.region))
        if ratio is not None:
            offers += _regional(offer, ratio[0], "sibling", ratio[1], ratio[2])
        elif place in advice:
            share = (1 - advice[place].saving) / (1 + _advisor_bias(offer.instance_type))
            offers += _regional(offer, share, "advisor", source, _ADVISOR_DATE)
    return offers


def _regional(offer: Offer, share: float, flag: str, source: int, as_of: str) -> list[Offer]:
    error = _error(flag, offer.instance_type)
    usd = _upper_third(offer.usd_per_hour * share, error)
    if not 0 < usd < _NO_BARGAIN * offer.usd_per_hour:
        return []
    spot = replace(offer, market="spot", usd_per_hour=usd, source=source, as_of=as_of)
    return [_derived(spot, flag)]


def _quotes(table: list[Cells], book: SourceBook) -> list[Quote]:
    return [
        Quote(
            instance_type=row["instance_type"],
            region=row["region"],
            zone=row["az_id"],
            usd_per_hour=None if _at_list_price(row) else float(row["spot_usd_per_hour"]),
            at_floor=row["spot_quote"] == "at_floor",
            as_of=row["as_of"],
            source=cite(book, row["source"]),
        )
        for row in table
        if _ZONE.fullmatch(row["az_id"])
    ]


def _at_list_price(row: Cells) -> bool:
    """Say whether a quote is no bargain: that is known of its zone, so nothing is derived there."""
    share = row["spot_over_ondemand"]
    dear = row["spot_quote"] == "market" and bool(share) and float(share) >= _NO_BARGAIN
    return dear or row["spot_quote"] in ("at_cap", "none")


def _old_quotes(table: list[Cells], covered: set[str], book: SourceBook) -> list[Quote]:
    """Take the quotes of late 2025 only for types that the newer list lacks."""
    dated = {"as_of": _OLD_QUOTES_DATE, "source": "AWS spot late 2025"}
    return _quotes([{**r, **dated} for r in table if r["instance_type"] not in covered], book)


def _advice(table: list[Cells]) -> dict[Place, Advice]:
    return {
        (row["instance_type"], row["region"]): Advice(
            float(row["savings_pct"]) / 100, int(row["range_index"])
        )
        for row in table
        if row["snapshot_not_later_than"] == _ADVISOR_DATE and float(row["savings_pct"]) > 0
    }


def _sibling_ratios(
    quotes: list[Quote], listed: list[Offer]
) -> dict[tuple[str, str], tuple[float, int, str]]:
    """Spot over list price of the quoted sizes of each family in each region."""
    prices = _list_prices(listed)
    groups: dict[tuple[str, str], list[Quote]] = {}
    for quote in quotes:
        if quote.is_market and (quote.instance_type, quote.region) in prices:
            groups.setdefault((_family(quote.instance_type), quote.region), []).append(quote)
    return {
        key: (
            median((q.usd_per_hour or 0) / prices[q.instance_type, q.region] for q in group),
            group[0].source,
            group[0].as_of,
        )
        for key, group in groups.items()
    }


def _list_prices(listed: list[Offer]) -> dict[Place, float]:
    return {(offer.instance_type, offer.region): offer.usd_per_hour for offer in listed}


def _by_place(quotes: Iterable[Quote]) -> dict[Place, list[Quote]]:
    places: dict[Place, list[Quote]] = {}
    for quote in quotes:
        places.setdefault((quote.instance_type, quote.region), []).append(quote)
    return places


def _offer(quote: Quote, zone: str, usd: float) -> Offer:
    return Offer(
        provider="aws",
        instance_type=quote.instance_type,
        region=quote.region,
        zone=zone,
        market="spot",
        usd_per_hour=usd,
        obtainable="open",
        kind="quote",
        flag="",
        uncertainty=0.0,
        interruption_range=None,
        source=quote.source,
        as_of=quote.as_of,
    )


def _derived(offer: Offer, flag: str) -> Offer:
    error = _error(flag, offer.instance_type)
    usd = round(offer.usd_per_hour, 4)
    return replace(offer, usd_per_hour=usd, kind="derived", flag=flag, uncertainty=error)


def _error(flag: str, instance_type: str) -> float:
    if flag == "advisor":
        return _ADVISOR_ERROR_G if instance_type.startswith("g") else _ADVISOR_ERROR_P
    return {"zone_median": _ZONE_MEDIAN_ERROR, "sibling": _SIBLING_ERROR}[flag]


def _advisor_bias(instance_type: str) -> float:
    return _ADVISOR_BIAS_G if instance_type.startswith("g") else 0.0


def _upper_third(usd: float, error: float) -> float:
    return usd * (1 + _UPPER_THIRD * error)


def _with_range(offer: Offer, advice: dict[Place, Advice]) -> Offer:
    known = advice.get((offer.instance_type, offer.region))
    return replace(offer, interruption_range=known.interruption_range) if known else offer


def _family(instance_type: str) -> str:
    return instance_type.partition(".")[0]
