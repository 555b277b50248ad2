"""Checks a provider's fetch as a whole: counts, lowest prices, canaries, other clouds.

A fetch that fails one of these checks is not published; the provider's last good offers stay.
Bounds of prices are in `recommender.catalogs.registry`, bounds of counts below; docs/refresh.md and
docs/research/refresh.md explain them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.providers.contract import Failed, Fetched
from recommender.catalogs.refresh.draft import failure_reason
from recommender.catalogs.refresh.moves_alike import odd_regions, spot_steps
from recommender.catalogs.refresh.validate_rows import ValidatedRows
from recommender.catalogs.schema import InstanceType, Market, Offer
from recommender.catalogs.store import FetchTime
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

_LOST = 0.05  # of a provider's rows in a market since the last refresh
_LOST_IN_REGION = 0.20
_SMALL_REGION = 10  # rows; below, one machine withdrawn is a fifth
_QUARANTINED = 0.10  # of the offers handed over
_FEW = 20
_JUMPED = 0.20  # of the spot prices that can be compared


@dataclass(frozen=True, slots=True)
class LastVersion:
    """The last good version's rows of a provider, and the markets that a refresh had read."""

    offers: Sequence[Offer]
    fetch_times: Sequence[FetchTime]

    def comparable(self, market: str) -> bool:
        """Whether the rows of a market came from a refresh, so that counts compare."""
        return any(f.market == market and f.by_refresh for f in self.fetch_times)


# Blocks of capacity are bookings: all of them may be taken, which is no fault of the reading.
SELLS_OUT = frozenset({"reserved_block"})


def with_lost_regions(fetched: Fetched, validated: ValidatedRows, before: LastVersion) -> Fetched:
    """Treat a region that silently lost a fifth of its rows as failed."""
    lost = list(_lost_regions(fetched, validated, before))
    return replace(fetched, failed=(*fetched.failed, *lost)) if lost else fetched


def without_odd_regions(
    fetched: Fetched,
    validated: ValidatedRows,
    before: LastVersion,
    machines: Mapping[str, InstanceType],
) -> tuple[Fetched, ValidatedRows]:
    """Treat regions with implausible moves as failed, and drop their rows."""
    odd = tuple(odd_regions(validated.offers, before.offers, machines))
    steps = spot_steps(validated.offers, before.offers, machines)
    regions = {place.region for place in odd}
    kept = tuple(offer for offer in validated.offers if offer.region not in regions)
    alerts = (*validated.alerts, *steps)
    return (
        replace(fetched, failed=(*fetched.failed, *odd)),
        replace(validated, offers=kept, alerts=alerts),
    )


def _lost_regions(
    fetched: Fetched, validated: ValidatedRows, before: LastVersion
) -> Iterator[Failed]:
    now = Counter((o.market, o.region) for o in validated.offers)
    then = Counter((o.market, o.region) for o in before.offers if fetched.replaces(o))
    for (market, region), count in sorted(then.items()):
        read = market in fetched.markets - SELLS_OUT and before.comparable(market)
        if read and count >= _SMALL_REGION and not failure_reason(fetched.failed, region, market):
            rows = now[market, region]
            if rows < (1 - _LOST_IN_REGION) * count:
                yield Failed(region, market, f"{rows} offers, {count} before")


def batch_problems(
    fetched: Fetched, validated: ValidatedRows, before: LastVersion, accept: bool
) -> Iterator[str]:
    """Find whether too many rows were lost, refused or moved."""
    for market in sorted(fetched.markets - SELLS_OUT):
        if not accept and before.comparable(market):
            yield from _lost_rows(market, fetched, validated, before)
    handed, refused = len(fetched.offers), len(validated.quarantined)
    if not validated.offers:
        yield f"{handed} offers, of which none is believed"
    if refused > max(_FEW, _QUARANTINED * handed):
        counts = Counter(row.rule for row in validated.quarantined)
        rules = ", ".join(f"{count} {rule}" for rule, count in counts.most_common())
        yield f"{refused} of {handed} offers are not believed ({rules})"
    if (
        not accept
        and validated.compared >= _FEW
        and validated.jumped > _JUMPED * validated.compared
    ):
        yield f"{validated.jumped} of {validated.compared} spot prices jumped at once"


def _lost_rows(
    market: Market, fetched: Fetched, validated: ValidatedRows, before: LastVersion
) -> Iterator[str]:
    then = [o for o in before.offers if o.market == market and fetched.replaces(o)]
    then = [o for o in then if not failure_reason(fetched.failed, o.region, market)]
    now = sum(o.market == market for o in validated.offers)
    if now < (1 - _LOST) * len(then):
        yield f"{market}: {now} offers, {len(then)} in the last refresh"


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
