"""`recommend()` plans with the catalog that the command line plans with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.store import Store, default_root
from recommender.cli import main
from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits
from tests.catalogs.refresh.world import World, make_world
from tests.shipped import every_cloud, snapshot

JOB, NOW = "resnet50-imagenet", "2026-11-21T12:00Z"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A user whose store holds one refresh, accepted: everything 4 % cheaper than shipped."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RECOMMEND_NOW", NOW)
    monkeypatch.chdir(tmp_path)
    world = make_world(tmp_path)
    for name, offers in world.truth.items():
        world.truth[name] = [replace(o, usd_per_hour=0.96 * o.usd_per_hour) for o in offers]
    order = world.order(accept=True)
    assert refresh(replace(order, store=Store(default_root()))).outcome == "published"
    return world


def answered(**more: object) -> Answer:
    limits, choice = Limits(deadline_s=24 * 3600), Choice(market="on_demand")
    return recommend(find_job(JOB), limits, choice, **more)  # type: ignore[arg-type]


def priced(answer: Answer) -> list[tuple[str, str, float]]:
    """Machine, region and price of each plan, as JSON prints them."""
    return [
        (m.instance_type, m.region, float(f"{m.usd_per_hour:.6g}"))
        for plan in answer.plans
        for m in plan.machines
    ]


def test_plans_are_those_of_the_command_line(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = answered()
    assert main(["plan", JOB, "--deadline", "24h", "--market", "on-demand", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert priced(answer) == [
        (m["instance_type"], m["region"], m["usd_per_hour"])
        for plan in reported["plans"]
        for m in plan["machines"]
    ]
    assert {price.as_of for price in answer.prices} == {"2026-11-21"}
    assert answer.warnings == tuple(reported["warnings"])


def test_a_catalog_that_is_given_wins(world: World) -> None:
    shipped = answered(catalog=snapshot())
    assert "2026-11-21" not in {price.as_of for price in shipped.prices}


def test_a_damaged_version_is_passed_over_and_reported(world: World) -> None:
    store = Store(default_root())
    (store.path(store.names()[0]) / "offers-gcp.csv.gz").write_bytes(b"")
    answer = answered()
    assert answer.warnings[0].startswith("version 000001-")
    assert "passed over" in answer.warnings[0]


def test_without_a_store_the_shipped_snapshot_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("RECOMMEND_NOW", NOW)
    answer = answered()
    shipped = answered(catalog=every_cloud())
    assert answer.prices == shipped.prices
    assert answer.warnings == shipped.warnings
