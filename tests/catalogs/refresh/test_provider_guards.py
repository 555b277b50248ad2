"""What is expected of a whole fetch: no market loses its rows, except one that sells out."""

from datetime import UTC, datetime
from typing import Any

import pytest

from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.refresh.provider_guards import (
    LastVersion,
    batch_problems,
    with_lost_regions,
)
from recommender.catalogs.refresh.validate_rows import ValidatedRows
from recommender.catalogs.store import FetchTime
from tests.catalogs.small import offer

NIGHT = datetime(2026, 11, 21, 3, tzinfo=UTC)


def found(market: Any, then: int, now: int) -> tuple[Fetched, ValidatedRows, LastVersion]:
    """A night after which `now` of `then` offers of a market are left, and one of another."""
    other = "on_demand" if market != "on_demand" else "spot"
    rows = [offer(market=market, zone=f"z{i}") for i in range(then)]
    offers = (offer(market=other), *rows[:now])
    fetched = Fetched("aws", NIGHT, NIGHT, frozenset({market, other}), offers, ())
    validated = ValidatedRows(offers, (), frozenset(), (), (), {}, 0, 0)
    seen = FetchTime("aws", market, "", "2026-11-20T03:00:00Z", "", by_refresh=True)
    return fetched, validated, LastVersion(rows, [seen])


@pytest.mark.parametrize("market", ["on_demand", "spot"])
def test_a_market_that_loses_its_rows_is_not_believed(market: Any) -> None:
    assert list(batch_problems(*found(market, 40, 0), accept=False)) == [
        f"{market}: 0 offers, 40 in the last refresh"
    ]
    assert [f.market for f in with_lost_regions(*found(market, 40, 0)).failed] == [market]


def test_blocks_of_capacity_that_are_all_booked_are_no_loss() -> None:
    assert list(batch_problems(*found("reserved_block", 40, 0), accept=False)) == []
    assert with_lost_regions(*found("reserved_block", 40, 0)).failed == ()
