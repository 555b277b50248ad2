"""Offers added, removed and repriced between two catalogs."""

from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.history import difference
from recommender.catalogs.load import load
from tests.catalogs import small


def catalog(folder: Path, *offers: Any) -> Catalog:
    def change(tables: dict[str, list[Any]]) -> None:
        tables["offers"] = list(offers)

    return load(small.written(folder, change))


def test_the_same_catalog_has_no_difference(tmp_path: Path) -> None:
    one = catalog(tmp_path / "a", small.offer(), small.spot())
    assert difference(one, one).counts() == {}


def test_each_kind_of_change_is_counted(tmp_path: Path) -> None:
    before = catalog(tmp_path / "a", small.offer(), small.spot(), small.spot(zone="use1-az2"))
    after = catalog(
        tmp_path / "b",
        small.offer(usd_per_hour=0.5),
        small.spot(usd_per_hour=0.3),
        small.spot(zone="use1-az4"),
    )
    found = difference(before, after)
    assert found.counts() == {("aws", "on_demand"): (0, 0, 1), ("aws", "spot"): (1, 1, 1)}
    assert [c.ratio for c in found.changed] == [pytest.approx(1.5), pytest.approx(0.5 / 0.526)]
    assert [o.zone for o in found.added] == ["use1-az4"]
    assert [o.zone for o in found.removed] == ["use1-az2"]
    assert found.new_types == found.removed_types == ()


def test_a_price_that_differs_in_the_eighth_digit_is_the_same(tmp_path: Path) -> None:
    before = catalog(tmp_path / "a", small.offer(usd_per_hour=21.957642))
    after = catalog(tmp_path / "b", small.offer(usd_per_hour=21.95764))
    assert difference(before, after).changed == ()
