"""`catalog update` as a whole: all lists at once, and each of them down in turn."""

from dataclasses import replace
from pathlib import Path

import pytest

from recommender.catalogs.load import load
from recommender.catalogs.providers.public import gpuhunt
from recommender.catalogs.refresh.report import RefreshReport
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import Store
from tests.catalogs.providers.gcp.skus import NOW
from tests.catalogs.providers.public.world import (
    SKY_NAMES,
    World,
    readers,
    served,
    whole_world,
)
from tests.recommender.optimize.samples import sampled

LISTS = tuple(n for n in (*gpuhunt.NAMES, *SKY_NAMES, "ovh") if n != "gcp")  # of GPU clouds
DAY_BEFORE = "2026-11-20"


@pytest.fixture(scope="module")
def world() -> World:
    return whole_world()


def updated(world: World, root: Path, *names: str) -> RefreshReport:
    """An update of some providers, or of all that a list has."""
    with served(world) as server:
        makers = readers(server.address)
        makers = {name: makers[name] for name in names or makers}
        return refresh(RefreshRequest(store=Store(root), makers=makers, clock=lambda: NOW))


def ages(root: Path) -> dict[tuple[str, str], str]:
    """The newest date of each provider and market in the version that holds."""
    store = Store(root)
    held = store.current()
    assert held
    return {(d.provider, d.market): d.newest for d in load(store.path(held)).price_dates()}


def test_without_any_account_the_three_clouds_and_the_gpu_clouds_are_a_day_old(
    world: World, tmp_path: Path
) -> None:
    report = updated(world, tmp_path)
    said = {each.provider: (each.result, each.reasons) for each in report.providers}
    assert {result for result, _ in said.values()} <= {"published", "partial"}, said
    found = ages(tmp_path)
    for provider in ("aws", "azure", "gcp"):
        for market in ("on_demand", "spot"):
            assert found[provider, market] >= DAY_BEFORE
    assert len(LISTS) >= 9
    for provider in LISTS:
        assert found[provider, "on_demand"] >= DAY_BEFORE


@pytest.mark.parametrize(
    "one",
    sampled(
        [
            *((name, f"/v3/{theirs}") for name, theirs in gpuhunt.NAMES.items()),
            *((name, place) for name in SKY_NAMES for place in ("/commits", "/files")),
            ("azure", "/retail"),
            ("ovh", "/order"),
            ("seeweb", "/rates"),
        ],
        {("lambda", "/v3/lambdalabs"), ("hyperstack", "/commits"), ("vast", "/files"),
         ("azure", "/retail"), ("ovh", "/order"), ("seeweb", "/rates")},
    ),
)  # fmt: skip
def test_a_list_that_is_down_keeps_its_last_prices_and_says_so(
    world: World, tmp_path: Path, one: tuple[str, str]
) -> None:
    name, down = one
    other = "lambda" if name == "verda" else "verda"
    report = updated(replace(world, down=(down,)), tmp_path, name, other)
    results = {each.provider: each for each in report.providers}
    assert results[name].result == "kept"
    assert "503" in results[name].reasons[0]
    assert results[name].kept > 0
    assert results[other].result == "published"
    assert ages(tmp_path)[name, "on_demand"] < DAY_BEFORE


def test_an_old_list_that_is_served_again_takes_no_newer_price_back(
    world: World, tmp_path: Path
) -> None:
    updated(world, tmp_path, "verda")
    rows = [{**row, "price": 1.05 * row["price"]} for row in world.gpuhunt["verda"]]
    old = replace(world, gpuhunt={**world.gpuhunt, "verda": rows}, version="20261101-9")
    (report,) = updated(old, tmp_path, "verda").providers
    assert (report.result, set(report.rules)) == ("kept", {"older"})
    assert ages(tmp_path)["verda", "on_demand"] >= DAY_BEFORE


@pytest.mark.parametrize("factor", [0.5, 8.0])
def test_a_list_that_is_off_by_a_factor_is_not_believed(
    world: World, tmp_path: Path, factor: float
) -> None:
    rows = [{**row, "price": factor * row["price"]} for row in world.gpuhunt["verda"]]
    wrong = replace(world, gpuhunt={**world.gpuhunt, "verda": rows})
    (report,) = updated(wrong, tmp_path, "verda").providers
    assert report.result == "kept"


def test_machines_that_a_list_lacks_keep_their_last_prices(world: World, tmp_path: Path) -> None:
    rows = [r for r in world.gpuhunt["lambda"] if "a6000" not in r["instance_name"]]
    some = replace(world, gpuhunt={**world.gpuhunt, "lambda": rows})
    (report,) = updated(some, tmp_path, "lambda").providers
    assert (report.result, report.kept) == ("published", 3)
