"""The catalog that ships, read once for all tests of a process."""

from functools import cache

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.load import load_snapshot


@cache
def snapshot() -> Catalog:
    """The shipped snapshot; nothing of a catalog changes once it is read."""
    return load_snapshot()
