"""What is expected of a whole harvest: no market loses its rows, except one that sells out."""

from datetime import UTC, datetime
from typing import Any

import pytest

from recommender.catalogs.providers.contract import Harvest
from recommender.catalogs.refresh.validate_batch import Before, row_problems, with_lost_regions
from recommender.catalogs.refresh.validate_rows import Sifted
from recommender.catalogs.store import Fetched
from tests.catalogs.small import offer

NIGHT = datetime(2026, 11, 21, 3, tzinfo=UTC)


def found(market: Any, then: int, now: int) -> tuple[Harvest, Sifted, Before]:
    """A night after which `now` of `then` offers of a market are left, and one of another."""
    other = "on_demand" if market != "on_demand" else "spot"
    rows = [offer(market=market, zone=f"z{i}") for i in range(then)]
    offers = (offer(market=other), *rows[:now])
    harvest = Harvest("aws", NIGHT, NIGHT, frozenset({market, other}), offers, ())
    sifted = Sifted(offers, (), frozenset(), (), (), {}, 0, 0)
    seen = Fetched("aws", market, "", "2026-11-20T03:00:00Z", "", by_refresh=True)
    return harvest, sifted, Before(rows, [seen])


@pytest.mark.parametrize("market", ["on_demand", "spot"])
def test_a_market_that_loses_its_rows_is_not_believed(market: Any) -> None:
    assert list(row_problems(*found(market, 40, 0), accept=False)) == [
        f"{market}: 0 offers, 40 in the last refresh"
    ]
    assert [f.market for f in with_lost_regions(*found(market, 40, 0)).failed] == [market]


def test_blocks_of_capacity_that_are_all_booked_are_no_loss() -> None:
    assert list(row_problems(*found("reserved_block", 40, 0), accept=False)) == []
    assert with_lost_regions(*found("reserved_block", 40, 0)).failed == ()
