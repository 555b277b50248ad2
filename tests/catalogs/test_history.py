"""Prices of every night, as Parquet that other tools read."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs import history, store
from recommender.catalogs.errors import ProviderError
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.schema import Offer
from recommender.catalogs.store import GENERATIONS, Store, write_lock
from tests.catalogs.refresh.world import World, make_world

PLACE = ("a2-highgpu-1g", "us-central1")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def nights(world: World, count: int) -> None:
    """Refresh for some days; spot prices of A100s rise by a hundredth a day, the others stand."""
    for _ in range(count):
        refresh(world.order("gcp"))
        world.next_day()
        world.truth["gcp"] = [
            replace(o, usd_per_hour=o.usd_per_hour * 1.01) if _rises(o) else o
            for o in world.truth["gcp"]
        ]


def _rises(offer: Offer) -> bool:
    """Some prices, not all: a whole market that moves by one factor is refused."""
    return offer.market == "spot" and offer.instance_type.startswith("a2-")


def test_without_the_library_the_stored_versions_are_the_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "has_pyarrow", lambda: False)
    nights(world, 3)
    assert not (world.store.root / "history").exists()
    found = history.points(world.store, *PLACE)
    assert {p.date for p in found} >= {"2026-11-21", "2026-11-22", "2026-11-23"}


def test_the_report_says_how_to_get_the_price_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "has_pyarrow", lambda: False)
    assert "pip install pyarrow" in refresh(world.order()).notes[0]


def test_every_night_is_a_partition_that_outlives_its_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(store, "NIGHTS", 1)
    nights(world, GENERATIONS + 3)
    days = sorted(path.name for path in (world.store.root / "history").iterdir())
    assert len(days) == GENERATIONS + 3
    assert days[0] == "date=2026-11-21"
    assert len(world.store.names()) == GENERATIONS
    spot = [p for p in history.points(world.store, *PLACE) if p.market == "spot"]
    one = [p.usd_per_hour for p in spot if p.zone == spot[-1].zone and p.date >= "2026-11-21"]
    assert len(one) == GENERATIONS + 3
    assert one == pytest.approx([one[0] * 1.01**i for i in range(len(one))])


def test_only_what_was_read_that_day_is_in_it(world: World) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    refresh(world.order())
    world.next_day()
    world.errors["aws"] = ProviderError("aws", "server", "HTTP 500")
    report = refresh(world.order())
    file = world.store.root / "history" / "date=2026-11-22" / f"{report.version}.parquet"
    rows = parquet.read_table(file, partitioning=None).to_pylist()
    assert {row["provider"] for row in rows} == {"gcp", "azure"}
    assert {row["version"] for row in rows} == {report.version}


Rows = list[tuple[str, str, str, float]]  # date, zone or region, market, USD per hour


def by_pandas(folder: Path) -> Rows:
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(folder, filters=[("instance_type", "==", PLACE[0])])
    return rows_of(table)


def by_dask(folder: Path) -> Rows:
    frame = pytest.importorskip("dask.dataframe")
    table = frame.read_parquet(str(folder), filters=[("instance_type", "==", PLACE[0])])
    return rows_of(table.compute(scheduler="synchronous"))


def by_duckdb(folder: Path) -> Rows:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.connect().execute(
        "select date::varchar, zone, market, usd_per_hour from read_parquet(?, "
        "hive_partitioning=true) where instance_type = ?",
        [f"{folder}/*/*.parquet", PLACE[0]],
    )
    return sorted(found.fetchall())


def rows_of(table: Any) -> Rows:
    columns = ("date", "zone", "market", "usd_per_hour")
    return sorted(
        (str(date)[:10], str(zone), str(market), float(usd))
        for date, zone, market, usd in zip(*(table[name] for name in columns), strict=True)
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, for Dask
@pytest.mark.parametrize(
    "read", [by_pandas, pytest.param(by_dask, marks=pytest.mark.slow), by_duckdb]
)
def test_other_tools_read_the_folder_as_one_table(
    world: World, read: Callable[[Path], Rows]
) -> None:
    pytest.importorskip("pyarrow")
    nights(world, 3)
    found = read(world.store.root / "history")
    assert found == sorted(
        (point.date, point.zone, point.market, point.usd_per_hour)
        for name in {o.region for o in world.truth["gcp"]}
        for point in history.points(world.store, PLACE[0], name)
        if point.date >= "2026-11-21"
    )
    assert len({date for date, *_ in found}) == 3


def test_a_refresh_over_midnight_is_of_the_day_that_its_prices_are_of(world: World) -> None:
    pytest.importorskip("pyarrow")
    evening = world.now.replace(hour=23, minute=59)
    clock = iter([evening])
    after = evening + timedelta(minutes=5)
    report = refresh(replace(world.order(), clock=lambda: next(clock, after)))
    assert report.finished.day == evening.day + 1
    (file,) = (world.store.root / "history").glob("*/*.parquet")
    assert file.parent.name == "date=2026-11-21"
    dates = {p.date for p in history.points(world.store, *PLACE)}
    assert "2026-11-21" in dates
    rows = pytest.importorskip("pyarrow.parquet").read_table(file, partitioning=None)
    assert rows.num_rows > 100


def test_a_damaged_night_is_reported_and_passed_over(world: World) -> None:
    pytest.importorskip("pyarrow")
    nights(world, 3)
    whole = history.points(world.store, *PLACE)
    files = sorted((world.store.root / "history").glob("*/*.parquet"))
    files[1].write_bytes(files[1].read_bytes()[:200])
    reported: list[str] = []
    assert history.points(world.store, *PLACE, reported.append) == whole  # the versions are kept
    assert reported == [f"{files[1]}: cannot be read; remove it"]


def test_the_history_of_an_interrupted_night_is_written_by_the_next(world: World) -> None:
    pytest.importorskip("pyarrow")

    class Stopped(BaseException):
        pass

    def stop(step: str) -> None:
        if step == "history":
            raise Stopped

    with pytest.raises(Stopped):
        refresh(world.order(at=stop))
    assert not (world.store.root / "history").exists()
    with write_lock(world.store):
        assert history.write_history(world.store) == world.store.names()
        assert history.write_history(world.store) == ()


def test_a_full_disk_costs_the_history_not_the_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(history, "replace_file", full)
    report = refresh(world.order())
    assert report.outcome == "published"
    assert "the history was not written" in report.notes[0]


def test_recent_prices_are_those_of_the_newest_versions_a_day_each(world: World) -> None:
    nights(world, 4)
    offers = [o for o in world.truth["gcp"] if _rises(o)][:2]
    keys = [(o.provider, o.instance_type, o.region, o.zone, o.market) for o in offers]
    found = history.recent_prices(world.store, keys, 3)
    assert len(found) == 2
    for prices in found.values():
        days, usd = zip(*prices, strict=True)
        assert days == tuple(sorted(set(days)))
        assert days[-3:] == ("2026-11-22", "2026-11-23", "2026-11-24")
        assert usd[-1] == pytest.approx(usd[-3] * 1.01**2)
    assert history.recent_prices(world.store, [], 3) == {}


def test_prices_come_in_the_order_that_they_are_asked_for(tmp_path: Path) -> None:
    keys = [("aws", f"p{n}.48xlarge", "us-east-1", "", "spot") for n in range(40)]
    for asked in (keys, keys[::-1]):
        assert list(history.recent_prices(Store(tmp_path), asked, 3)) == asked


def test_a_year_of_prices_ships_and_ends_in_the_snapshot_s_own(tmp_path: Path) -> None:
    listed = {
        (o.provider, o.instance_type, o.region, o.market): o.usd_per_hour
        for o in load_snapshot().offers
    }
    past = history.shipped_prices()
    assert {key[0] for key in past} >= {"aws", "gcp", "azure", "lambda", "nebius", "runpod"}
    for key, steps in past.items():
        days = [day for day, _ in steps]
        assert days == sorted(set(days))
        assert len(days) > 1
        assert key in listed
    # Google's A2 in Iowa, from the list of 2026-10-05 on.
    held = history.points(Store(tmp_path), "a2-highgpu-1g", "us-central1")
    assert {p.market for p in held} >= {"on_demand", "spot"}
    assert len({p.date for p in held if p.market == "spot"}) > 2


def test_shipped_prices_of_a_region_are_the_trend_of_its_zones(tmp_path: Path) -> None:
    key = ("gcp", "a2-highgpu-1g", "us-central1", "us-central1-a", "spot")
    (trend,) = history.recent_prices(Store(tmp_path), [key], 3).values()
    assert len(trend) > 2
    assert trend == history.shipped_prices()["gcp", "a2-highgpu-1g", "us-central1", "spot"]
