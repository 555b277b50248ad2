"""Booked capacity and commitments, kept by hand in `hand/reserved.csv`.

Prices of price pages: a block's price is an hour of the whole machine. Google's page shows one
region; what others cost is not known, so there is no offer of them.
"""

from recommender.catalogs.schema import Offer
from tests.research.snapshot.reading import read_hand
from tests.research.snapshot.sources import SourceBook, cite


def reserved_offers(book: SourceBook) -> list[Offer]:
    """Build the offers of every row in each of its regions."""
    return [
        Offer(
            provider=row["provider"],
            instance_type=row["instance_type"],
            region=region,
            zone="",
            market=row["market"],  # type: ignore[arg-type]
            usd_per_hour=float(row["usd_per_hour"]),
            obtainable="open",
            kind="quote",
            flag="",
            uncertainty=0.0,
            interruption_range=None,
            source=cite(book, row["source"]),
            as_of=row["as_of"],
        )
        for row in read_hand("reserved")
        for region in row["regions"].split()
    ]
