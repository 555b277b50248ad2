"""The catalog that ships, read once for all tests of a process."""

from array import array
from dataclasses import fields, replace
from functools import cache
from itertools import compress
from typing import Any

from recommender.catalogs.catalog import Catalog, Offers
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.registry import OWN_CLIENTS


@cache
def every_cloud() -> Catalog:
    """The shipped snapshot; nothing of a catalog changes once it is read."""
    return load_snapshot()


@cache
def snapshot() -> Catalog:
    """Its part of AWS, Google Cloud and Azure: what a test means that names no GPU cloud."""
    whole = every_cloud()
    keep = [provider in OWN_CLIENTS for provider in whole.offers.provider]
    columns: dict[str, Any] = {}
    for each in fields(Offers):
        column = getattr(whole.offers, each.name)
        kept = compress(column, keep)
        columns[each.name] = array("d", kept) if isinstance(column, array) else tuple(kept)
    types = {key: t for key, t in whole.instance_types.items() if key[0] in OWN_CLIENTS}
    return replace(whole, offers=Offers(**columns), instance_types=types)
