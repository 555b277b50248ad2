"""The newest good version holds; damaged ones are passed over and named."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.catalogs.errors import StoreError
from recommender.catalogs.load import SNAPSHOT
from recommender.catalogs.store import CURRENT, Store, fetch_times_of, newest_good, roll_back
from tests.catalogs.versions_data import published
from tests.shipped import every_cloud


def test_without_a_store_the_shipped_snapshot_holds(tmp_path: Path) -> None:
    found = newest_good(Store(tmp_path / "none"))
    assert (found.name, found.skipped) == ("", ())
    assert found.catalog.version == every_cloud().version


def test_a_damaged_version_is_passed_over_for_the_one_before(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6)
    first, second = store.names()
    (store.path(second) / "offers.csv.gz").write_bytes(b"half")
    found = newest_good(store)
    assert found.name == first
    assert found.catalog.offers.usd_per_hour[0] == 0.5
    assert "passed over" in found.skipped[0]
    assert second in found.skipped[0]


@pytest.mark.parametrize("damage", ["schema", "gone", "manifest", "deep"])
def test_when_every_version_is_damaged_the_snapshot_holds(tmp_path: Path, damage: str) -> None:
    store = published(tmp_path, 0.5, 0.6)
    for name in store.names():
        manifest = store.path(name) / "manifest.json"
        if damage == "schema":
            text = manifest.read_text().replace('"schema_version": 1', '"schema_version": 7')
            manifest.write_text(text)
        elif damage == "gone":
            manifest.unlink()
        else:
            manifest.write_text("[" * (1 if damage == "manifest" else 200_000))
    found = newest_good(store)
    assert found.name == ""
    assert len(found.skipped) == 2


@pytest.mark.parametrize("pointer", ["", "../../etc", "000001-20261121T030000Z-zzzzzzzz", "\xff"])
def test_with_a_damaged_pointer_the_newest_version_holds(tmp_path: Path, pointer: str) -> None:
    store = published(tmp_path, 0.5, 0.6)
    (store.root / CURRENT).write_text(pointer, encoding="latin-1")
    found = newest_good(store)
    assert found.catalog.offers.usd_per_hour[0] == 0.6
    assert CURRENT in found.skipped[0]


def test_a_pointer_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6)
    (store.root / CURRENT).unlink()
    os.mkfifo(store.root / CURRENT)
    found = newest_good(store)
    assert found.catalog.offers.usd_per_hour[0] == 0.6
    assert "no plain file" in found.skipped[0]


def test_a_pointer_to_a_version_that_is_missing_falls_back(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6)
    (store.root / CURRENT).write_text("000009-20261121T030000Z-00000000\n")
    found = newest_good(store)
    assert found.catalog.offers.usd_per_hour[0] == 0.6
    assert len(found.skipped) == 1


def test_a_version_that_was_rolled_back_is_no_fallback(tmp_path: Path) -> None:
    store = published(tmp_path, 0.5, 0.6)
    roll_back(store)
    (store.path(store.names()[0]) / "manifest.json").unlink()
    assert newest_good(store).name == ""


@pytest.mark.parametrize("wrong", [{"fetched_at": "never"}, {"market": 5}, {"fetched_at": None}])
def test_an_age_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    """Otherwise it would be printed as "just now"."""
    row = {"provider": "aws", "market": "spot", "region": "", "reason": "", "by_refresh": True}
    manifest = {"fetched": [{**row, "fetched_at": "2026-11-21T03:00:00Z", **wrong}]}
    with pytest.raises(StoreError, match="'fetched' is damaged"):
        fetch_times_of(manifest)


def test_a_store_that_cannot_be_listed_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "versions").write_text("no folder")
    found = newest_good(Store(tmp_path))
    assert found.name == ""
    assert len(found.skipped) == 1


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of two versions, for a disk that wears out."""
    return published(tmp_path_factory.mktemp("worn"), 0.5, 0.6)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_one_wrong_byte_anywhere_never_changes_what_readers_believe(
    worn: Store, data: st.DataObject
) -> None:
    folder = worn.path(worn.names()[-1])
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    good = path.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != good[at]))
    try:
        path.write_bytes(good[:at] + bytes([other]) + good[at + 1 :])
        found = newest_good(worn)
    finally:
        path.write_bytes(good)
    assert found.name == worn.names()[0]
    assert found.catalog.offers.usd_per_hour[0] == 0.5


def test_a_damaged_list_of_ages_is_refused() -> None:
    with pytest.raises(StoreError, match="'fetched' is damaged"):
        fetch_times_of({"fetched": [{"provider": "aws"}]})


def test_the_shipped_snapshot_lies_next_to_the_code() -> None:
    assert (SNAPSHOT / "manifest.json").is_file()
