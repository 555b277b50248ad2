"""Checks a provider's new offers as part of the whole catalog: counts, canaries, other clouds.

What fails one of these checks is not published; the provider's last good offers stay.
"""

from collections.abc import Iterator, Mapping, Sequence

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.validation import (
    Canary,
    Prices,
    dead_canaries,
    falling_prices,
    lost_offers,
    missing_offers,
    odd_between_clouds,
    on_demand_prices,
)


def catalog_problems(
    candidate: Catalog, last: Catalog, provider: str, canaries: Sequence[Canary]
) -> list[str]:
    """Find problems of a catalog with this provider's new offers and the others' last ones.

    Problems that the last good catalog has too are ignored.
    """
    known = {_kind(each) for each in _catalog_problems(last, on_demand_prices(last), provider, ())}
    prices = on_demand_prices(candidate)
    found = [
        *lost_offers(candidate, last, [provider]),
        *_catalog_problems(candidate, prices, provider, canaries),
    ]
    return [problem for problem in found if _kind(problem) not in known]


def _kind(problem: str) -> str:
    """A problem without its figures, which move from night to night."""
    return problem.partition("{")[0]


def _catalog_problems(
    catalog: Catalog, prices: Prices, provider: str, canaries: Sequence[Canary]
) -> Iterator[str]:
    yield from missing_offers(catalog, [provider])
    yield from odd_between_clouds(catalog, prices)
    own = {key: usd for key, usd in prices.items() if key[0] == provider}
    yield from falling_prices(catalog, own)
    yield from dead_canaries(own, [c for c in canaries if c.provider == provider])


def merged_canaries(shipped: Sequence[Canary], own: Sequence[Canary]) -> tuple[Canary, ...]:
    """The shipped canaries, with updates from the store."""
    by_key: Mapping[tuple[str, str, str], Canary] = {
        (c.provider, c.instance_type, c.region): c for c in [*shipped, *own]
    }
    return tuple(by_key.values())
