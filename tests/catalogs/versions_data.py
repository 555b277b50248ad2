"""Small versions to publish, and a program that is killed while it publishes one."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catalogs.publish import Content, publish, writing
from catalogs.versions import Store
from tests.catalogs import small

MORNING = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def content(folder: Path, usd: float) -> Content:
    """A version in which the machine costs so much on demand."""

    def change(tables: dict[str, list[Any]]) -> None:
        tables["offers"] = [small.offer(usd_per_hour=usd)]

    written = small.written(folder / f"of-{usd}", change)
    return Content({path.name: path.read_bytes() for path in written.iterdir()})


def published(folder: Path, *prices: float) -> Store:
    """A store with a version for each price."""
    store = Store(folder / "store")
    for day, usd in enumerate(prices):
        with writing(store):
            publish(store, content(folder, usd), MORNING + timedelta(days=day))
    return store


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

    with writing(store):
        publish(store, made, MORNING + timedelta(days=9), stop)


def content_from(folder: Path) -> Content:
    """The files of a folder."""
    return Content({path.name: path.read_bytes() for path in folder.iterdir()})


if __name__ == "__main__":
    main()
