"""A program that refreshes from a server again and again, and is killed, starved or set back.

Called with the address, the folder of the store, a number of kills and a seed. Each refresh is a
fork of this program, which reads the store after each, until so many were killed while they ran:
prints one JSON object of what happened and of every reading that was wrong. Where the store lies
on a disk of its own, as a small tmpfs of root's, the disk is filled up, and another user tries as
well.
"""

import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import filelock  # noqa: F401 - another user may not read the folder of this Python later

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.providers.azure.provider import Azure
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.refresh.run import RefreshRequest, refresh
from recommender.catalogs.store import LoadedVersion, Store, check, newest_good, sequence

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KINDS = ("kill",) * 5 + ("small files", "two at once", "clock")
OWN_DISK = ("full disk", "other user")
NOBODY, REFUSED = 65534, 4 << 8  # what `os.waitpid` says of a refusal
KILLED = f"kill: {int(signal.SIGKILL)}"  # one that had ended before the signal came is "kill: 0"
EVERY = 20  # nights between two readings of all versions; a new one is read at once


def night(address: str, store: Store, now: datetime) -> None:
    """One refresh with the real client."""
    patience = Patience(tries=1, first_wait_s=0.0)
    makers = {"azure": lambda: Azure(address, patience)}
    refresh(RefreshRequest(store=store, makers=makers, clock=lambda: now))


def forked(act: Callable[[], None]) -> int:
    """Run an act in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except CatalogError:
            code = 4
        finally:
            os._exit(code)
    return child


class Nights:
    """The store, what was published in it, and what was read wrongly."""

    def __init__(self, address: str, store: Store, seed: int) -> None:
        self.address, self.store, self.draw = address, store, Random(seed)
        self.kinds = KINDS + (OWN_DISK if os.path.ismount(store.root.parent) else ())
        self.checked: set[str] = set()
        self.happened: Counter[str] = Counter()
        self.wrong: list[str] = []
        began = time.monotonic()
        os.waitpid(forked(lambda: night(address, store, NOON)), 0)
        self.took_s = time.monotonic() - began
        self.held = newest_good(store).name
        self.prices = self._prices()

    def _prices(self, found: LoadedVersion | None = None) -> list[tuple[str, str, str, float]]:
        offers = (found or newest_good(self.store)).catalog.offers
        rows = zip(
            offers.instance_type, offers.region, offers.market, offers.usd_per_hour, strict=True
        )
        return sorted(rows)

    def one(self) -> None:
        """A night of a kind, and what readers find after it."""
        kind = self.draw.choice(self.kinds)
        code = getattr(self, f"_{kind.replace(' ', '_')}")()
        self.happened[f"{kind}: {code}"] += 1
        found = newest_good(self.store)
        if found.skipped or not found.name or sequence(found.name) < sequence(self.held):
            self.wrong.append(f"{kind}: {found.name} after {self.held}, {found.skipped}")
        if self._prices(found) != self.prices:
            self.wrong.append(f"{kind}: other prices in {found.name}")
        if sum(self.happened.values()) % EVERY == 0:
            self.checked.clear()
        for name in set(self.store.names()) - self.checked:
            self.checked.add(name)
            try:
                check(self.store, name)
            except CatalogError as error:
                self.wrong.append(f"{kind}: {name}: {error}")
        self.held = found.name

    def _kill(self) -> int:
        child = forked(lambda: night(self.address, self.store, NOON))
        time.sleep(self.draw.random() * self.took_s)
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]

    def _small_files(self) -> int:
        limit = self.draw.randrange(1, 200_000)

        def starved() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            night(self.address, self.store, NOON)

        return os.waitpid(forked(starved), 0)[1]

    def _full_disk(self) -> int:
        disk = self.store.root.parent
        room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(max(0, room - self.draw.randrange(600_000))))
        try:
            code = os.waitpid(forked(lambda: night(self.address, self.store, NOON)), 0)[1]
            if self._prices() != self.prices:
                self.wrong.append("full disk: other prices while it was full")
        finally:
            ballast.unlink()
        return code

    def _other_user(self) -> int:
        """A process that may only read reads the same, and is refused as a writer."""

        def another() -> None:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            if self._prices() != self.prices:
                raise AssertionError("another user reads other prices")
            night(self.address, self.store, NOON)

        code = os.waitpid(forked(another), 0)[1]
        if code != REFUSED:
            self.wrong.append(f"other user: {code}")
        return code

    def _two_at_once(self) -> int:
        children = [forked(lambda: night(self.address, self.store, NOON)) for _ in range(2)]
        for _ in range(5):
            if self._prices() != self.prices:  # a reader next to two writers
                self.wrong.append("two at once: other prices while they wrote")
        return max(os.waitpid(child, 0)[1] for child in children)

    def _clock(self) -> int:
        now = NOON + timedelta(days=self.draw.choice((-3000, -30, -1, 1, 20)))
        return os.waitpid(forked(lambda: night(self.address, self.store, now)), 0)[1]


def main() -> None:
    """Print what came of the nights."""
    address, folder, kills, seed = sys.argv[1:]
    made = Nights(address, Store(Path(folder)), int(seed))
    while made.happened[KILLED] < int(kills):
        made.one()
    left = [path.name for path in made.store.folder.iterdir() if path.name.startswith(".new-")]
    os.waitpid(forked(lambda: night(address, made.store, NOON)), 0)
    after = [path.name for path in made.store.folder.iterdir() if path.name.startswith(".")]
    after += [path.name for path in made.store.root.iterdir() if path.name.startswith(".")]
    said = {"happened": made.happened, "wrong": made.wrong, "left": len(left), "after": after}
    print(json.dumps({**said, "versions": len(made.store.names())}))


if __name__ == "__main__":
    main()
