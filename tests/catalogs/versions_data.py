"""Small versions to publish, and a program that is killed while it publishes one."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recommender.catalogs.errors import StoreError
from recommender.catalogs.store import Store, VersionFiles, newest_good, publish, write_lock
from tests.catalogs import small

MORNING = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def content(folder: Path, usd: float) -> VersionFiles:
    """A version in which the machine costs so much on demand."""

    def change(tables: dict[str, list[Any]]) -> None:
        tables["offers"] = [small.offer(usd_per_hour=usd)]

    written = small.written(folder / f"of-{usd}", change)
    return VersionFiles({path.name: path.read_bytes() for path in written.iterdir()})


def published(folder: Path, *prices: float, apart: timedelta = timedelta(days=1)) -> Store:
    """A store with a version for each price."""
    store = Store(folder / "store")
    for number, usd in enumerate(prices):
        with write_lock(store):
            publish(store, content(folder, usd), MORNING + number * apart)
    return store


def fill() -> None:
    """Publish on a small disk with less and less room; print what readers get each time."""
    folder, disk = Path(sys.argv[2]), Path(sys.argv[3])
    first, second = content_from(folder / "old"), content_from(folder / "new")
    store = Store(disk / "store")
    with write_lock(store):
        publish(store, first, MORNING)
    free = os.statvfs(disk)
    for pages in range(25):
        ballast = disk / "ballast"
        ballast.write_bytes(b"0" * max(0, (free.f_bavail - pages) * free.f_bsize))
        try:
            with write_lock(store):
                publish(store, second, MORNING)
            said = "published"
        except StoreError as error:
            said = str(error).rpartition(": ")[2]
        found = newest_good(store)
        print(pages, said, found.catalog.offers.usd_per_hour[0], len(found.skipped))
        ballast.unlink()
        if said == "published":
            return


def main() -> None:
    """Publish a version at 0.7 USD and end without notice at a step; `limit` bytes a file."""
    folder, step, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    store, made = Store(folder / "store"), content_from(folder / "new")

    def stop(at: str) -> None:
        if at == step:
            os._exit(9)

    with write_lock(store):
        publish(store, made, MORNING + timedelta(days=9), stop)


def content_from(folder: Path) -> VersionFiles:
    """The files of a folder."""
    return VersionFiles({path.name: path.read_bytes() for path in folder.iterdir()})


if __name__ == "__main__":
    fill() if sys.argv[1] == "fill" else main()
