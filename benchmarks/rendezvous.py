"""Where the processes of torchrun wait for each other, and learn that one of them failed.

A collective tells nobody who is missing, and those who wait in it keep processor and GPU busy. Here
words are left in the key-value store that torchrun's agent keeps: who waits sleeps, and reads there
which process failed, and why.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from time import monotonic, sleep
from typing import Any, Protocol

from .errors import BenchError, error_text

SOON_S = 120.0  # within which all come that have nothing else to do
_LONGEST_PAUSE_S = 0.5
_FAILED = "failed"


class Store(Protocol):
    """What is used of torch.distributed.Store."""

    def set(self, key: str, value: str) -> object:
        """Leave a word."""

    def get(self, key: str) -> bytes:
        """Read a word that is there."""

    def check(self, keys: list[str]) -> bool:
        """Whether words are there."""


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """One process's place among `world` of them; alone it never waits."""

    store: Store | None = None
    rank: int = 0
    world: int = 1
    _numbers: "count[int]" = field(
        default_factory=count
    )  # of the points, which all pass equally often

    def announce(self, point: str, word: str = "") -> None:
        """Say that this process has come to a point, with a word on it."""
        if self.store is not None:
            self.store.set(f"{point}/{self.rank}", word)

    def __enter__(self) -> "Rendezvous":
        """Join; whatever ends this process is reported to the others."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Leave."""
        if error is not None:
            self.fail(error_text(error))

    def fail(self, why: str) -> None:
        """Announce that this process ends, so that no other waits for it."""
        with suppress(BenchError, RuntimeError):  # the store has ended, and with it all its readers
            if self.store is not None and not self.failure():  # the first failure is the cause
                self.store.set(_FAILED, f"process {self.rank} of {self.world} failed: {why}")

    def failure(self) -> str:
        """Which process failed, and why; empty where none said so."""
        if self.store is None or not _there(self.store, _FAILED):
            return ""
        return self.store.get(_FAILED).decode()

    def agree(self, what: str, word: str = "") -> tuple[str, ...]:
        """Wait for all others at this point, and return the word of each.

        Raises BenchError naming the process that failed or did not come.
        """
        point = f"{next(self._numbers)} {what}"
        self.announce(point, word)
        return self.wait_for(point, range(self.world), SOON_S)

    def wait_for(self, point: str, ranks: Iterable[int], timeout_s: float) -> tuple[str, ...]:
        """Wait for some processes at a point. Raises as `agree`."""
        end = monotonic() + timeout_s
        store = self.store
        if store is None:
            return ()
        return tuple(self._word(store, f"{point}/{rank}", rank, end) for rank in ranks)

    def _word(self, store: Store, key: str, rank: int, end: float) -> str:
        pause = 1e-3
        while not _there(store, key):
            if failure := self.failure():
                raise BenchError(failure)
            if monotonic() > end:
                raise BenchError(
                    f"process {rank} of {self.world} did not come to '{key.partition('/')[0]}' in "
                    "time; see its own messages, or whether its machine is still there"
                )
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return store.get(key).decode()


def _there(store: Store, key: str) -> bool:
    try:
        return store.check([key])
    except RuntimeError:  # torch's DistStoreError, DistNetworkError
        raise BenchError(
            "the first process or its machine has ended, and with it the store of the others"
        ) from None


def join(torch: Any, rank: int, world: int) -> Rendezvous:
    """Join the other processes that torchrun started, over the address that it gave."""
    if world == 1:
        return Rendezvous()
    limit = timedelta(seconds=SOON_S)
    try:
        store, _, _ = next(torch.distributed.rendezvous("env://", timeout=limit))
    except (ValueError, RuntimeError) as error:
        raise BenchError(f"the other processes cannot be met ({error}); use torchrun") from None
    return Rendezvous(torch.distributed.PrefixStore("recommend", store), rank, world)
