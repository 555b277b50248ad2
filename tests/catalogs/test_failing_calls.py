"""A system call that fails costs no version and no copy, and what is said afterwards is true."""

import errno
from datetime import timedelta
from pathlib import Path

import pytest

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.remote import load_remote
from recommender.catalogs.store import (
    CURRENT,
    GENERATIONS,
    Store,
    newest_good,
    publish,
    roll_back,
    write_lock,
)
from tests.catalogs.versions_data import MORNING, content, published
from tests.failing_calls import ERRORS, failing
from tests.recommender.optimize.samples import thinned

PARTS = 10
FAILURES = thinned(
    [(number, part, lasting) for part in range(PARTS) for number in ERRORS for lasting in (0, 1)], 9
)
ADDRESS = "https://prices.example.org/manifest.json"


def price(store: Store) -> float:
    found = newest_good(store)
    assert found.skipped == ()
    return found.catalog.offers.usd_per_hour[0]


def full(folder: Path) -> Store:
    """A store in which the next version has old ones removed."""
    prices = (0.5 + i / 100 for i in range(GENERATIONS))
    return published(folder, *prices, apart=timedelta(minutes=1))


def outcome(store: Store, made: object, rolls_back: bool) -> str | CatalogError:
    try:
        if rolls_back:
            return roll_back(store)
        with write_lock(store):
            return publish(store, made, MORNING)  # type: ignore[arg-type]
    except CatalogError as error:
        return error


@pytest.mark.parametrize("rolls_back", [False, True])
@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_what_is_said_of_a_version_is_what_its_readers_get(
    tmp_path: Path, failure: tuple[int, int, int], rolls_back: bool
) -> None:
    number, part, lasting = failure
    made, store = content(tmp_path, 0.9), full(tmp_path)
    at = part
    while True:
        before, old = price(store), store.current()
        with failing(store.root, at, number, bool(lasting)) as calls:
            said = outcome(store, made, rolls_back)
        if isinstance(said, str):
            assert store.current() == said, calls.calls[at:]
        elif f"{CURRENT}: cannot be read" not in str(said):  # else it says that it does not know
            assert (price(store), store.current()) == (before, old), (calls.calls[at], said)
        assert len(store.names()) >= GENERATIONS, calls.calls[at:]
        if at >= len(calls.calls):
            break
        at += PARTS
        if rolls_back and price(store) < 0.55:
            roll_back(store, store.names()[-1])


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_a_copy_that_is_kept_is_not_lost(tmp_path: Path, failure: tuple[int, int, int]) -> None:
    number, part, lasting = failure
    files = {f"https://prices.example.org/{name}": data
             for name, data in content(tmp_path, 0.5).files.items()}  # fmt: skip
    cache = tmp_path / "cache"

    def get(address: str, most: int) -> bytes:
        return files[address]

    def gone(address: str, most: int) -> bytes:
        raise ConnectionError(errno.ECONNREFUSED, "refused")

    load_remote(ADDRESS, cache, get)
    at, calls_made = part, part + 1
    while at < calls_made:
        for asked in (get, gone):
            with failing(cache, at, number, bool(lasting)) as calls:
                try:
                    found = load_remote(ADDRESS, cache, asked).catalog.offers.usd_per_hour[0]
                    assert found == 0.5
                except CatalogError:
                    assert asked is gone or lasting, calls.calls[at]
            if asked is get:
                calls_made = len(calls.calls)
        assert load_remote(ADDRESS, cache, gone).catalog.offers.usd_per_hour[0] == 0.5, calls.calls
        at += PARTS
