"""What is really sold: a price list is a tariff, not a promise of machines."""

import re
from collections.abc import Iterable
from dataclasses import replace

from recommender.catalogs.schema import Offer
from tests.research.snapshot.reading import Cells, read_hand


def as_sold(offers: Iterable[Offer]) -> list[Offer]:
    """Mark the offers that a list has and that hardly anybody can rent (`hand/rentable.csv`)."""
    rows = read_hand("rentable")
    return [_as_sold(offer, rows) for offer in offers]


def _as_sold(offer: Offer, rows: list[Cells]) -> Offer:
    for row in rows:
        if (
            row["provider"] == offer.provider
            and row["market"] == offer.market
            and re.fullmatch(row["pattern"], offer.instance_type)
            and (row["regions"] == "*" or offer.region in row["regions"].split())
        ):
            return replace(offer, obtainable=row["obtainable"])
    return offer
