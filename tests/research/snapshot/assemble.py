"""Puts all tables of the snapshot together."""

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from recommender.catalogs.rentable import sold_as
from recommender.catalogs.schema import InstanceType, Offer
from recommender.catalogs.tables import Row
from tests.research.snapshot.achieved import achieved_rows
from tests.research.snapshot.aws import aws_offers
from tests.research.snapshot.azure import azure_offers
from tests.research.snapshot.cpu import cpu_offers
from tests.research.snapshot.gcp import gcp_offers
from tests.research.snapshot.gpu_clouds import cloud_machines, cloud_offers
from tests.research.snapshot.gpus import gpu_rows
from tests.research.snapshot.machines import Machines
from tests.research.snapshot.quotas import quota_rows
from tests.research.snapshot.reserved import reserved_offers
from tests.research.snapshot.sources import SourceBook, renumber


def snapshot_tables(reference: Path) -> dict[str, Sequence[Row]]:
    """Build every table of the snapshot from the reference tables."""
    book = SourceBook()
    tables: dict[str, Sequence[Row]] = dict(_fact_tables(reference, book))
    machines = Machines(reference, book)
    gpus = gpu_rows(reference, book)
    listed = [
        *aws_offers(reference, machines, book),
        *gcp_offers(reference, machines, book),
        *azure_offers(reference, machines, book),
        *cpu_offers(reference, machines, book),
    ]
    offers = [_as_sold(offer) for offer in listed]
    clouds = cloud_machines(reference, gpus, book)
    tables |= {
        "offers": [*offers, *cloud_offers(book), *reserved_offers(book)],
        "instance_types": [*_types(offers, machines), *clouds],
        "gpus": gpus,
        "achieved": achieved_rows(reference, gpus, book),
        "quotas": quota_rows(book),
    }
    keys = book.final_keys()
    final: dict[str, Sequence[Row]] = {n: renumber(rows, keys) for n, rows in tables.items()}
    return {**final, "sources": book.rows()}


def _as_sold(offer: Offer) -> Offer:
    really = sold_as(offer.provider, offer.instance_type, offer.market, offer.region)
    return offer if really is None else replace(offer, obtainable=really)


def _types(offers: list[Offer], machines: Machines) -> list[InstanceType]:
    """Describe every type that is offered, and those that only a booking can get."""
    named = {(offer.provider, offer.instance_type) for offer in offers}
    booked = {("aws", "trn2.3xlarge"), ("aws", "trn2.48xlarge")}
    return [machines.row(provider, name) for provider, name in sorted(named | booked)]  # type: ignore[arg-type]


def _fact_tables(reference: Path, book: SourceBook) -> Mapping[str, list[Row]]:
    """Ask every `facts_*` module next to this one for its tables."""
    tables: dict[str, list[Row]] = {}
    here = [str(Path(__file__).parent)]
    for module in sorted(found.name for found in pkgutil.iter_modules(here)):
        if module.startswith("facts_"):
            new = import_module(f"tests.research.snapshot.{module}").tables(reference, book)
            twice = tables.keys() & new.keys()
            if twice:
                raise ValueError(f"{module}: {', '.join(twice)} is built by another module too")
            tables |= new
    return tables
