"""Runs many pieces of work here, in processes or on a Dask cluster: each result as it ends."""

import multiprocessing as mp
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from importlib import import_module
from threading import Thread
from typing import Any, TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.errors import RecommendError, UsageError

Shared = TypeVar("Shared")
Piece = TypeVar("Piece")
Result = TypeVar("Result")
Do = Callable[[Shared, Piece], Result]

LOCAL = "local"  # as a scheduler: a Dask cluster of processes on this machine
LOST = "start again: what was written stays"
RETRIES = 3  # times that work is tried again whose worker died
_shared: list[Any] = []  # in a process of a pool: what all pieces have in common


@dataclass(frozen=True, slots=True)
class Workers:
    """Where work is done: by default in this process."""

    count: int = 1  # processes of this machine
    scheduler: str = ""  # address of a Dask scheduler, or `LOCAL`

    def results(
        self, do: Do[Shared, Piece, Result], shared: Shared, work: Sequence[Piece]
    ) -> Iterator[tuple[int, Result]]:
        """Each piece's number and result; what a worker had that dies is done again by another."""
        if self.scheduler:
            return self._on_dask(do, shared, work)
        if self.count > 1:
            return self._in_processes(do, shared, work)
        return ((number, do(shared, piece)) for number, piece in enumerate(work))

    def _in_processes(
        self, do: Do[Shared, Piece, Result], shared: Shared, work: Sequence[Piece]
    ) -> Iterator[tuple[int, Result]]:
        left, deaths = dict(enumerate(work)), 0
        while left:
            pool = ProcessPoolExecutor(self.count, mp.get_context("spawn"), _enter, (shared,))
            try:
                running = {pool.submit(_done, do, piece): i for i, piece in left.items()}
                for future in as_completed(running):
                    number, result = running.pop(future), future.result()
                    del left[number]
                    deaths = 0
                    yield number, result
            except BrokenProcessPool:  # one died, and with it the pool
                deaths += 1
                if deaths > RETRIES:
                    raise RecommendError(f"workers died again and again; {LOST}") from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _on_dask(
        self, do: Do[Shared, Piece, Result], shared: Shared, work: Sequence[Piece]
    ) -> Iterator[tuple[int, Result]]:
        try:
            distributed: Any = import_module("distributed")  # has no types
        except ImportError:
            raise UsageError("--scheduler needs Dask: pip install distributed") from None
        with ExitStack() as stack:
            address = self.scheduler
            if address == LOCAL:
                local = {"n_workers": self.count, "threads_per_worker": 1, "silence_logs": 50}
                cluster = distributed.LocalCluster(**local, dashboard_address=None)
                address = stack.enter_context(cluster).scheduler_address
            try:
                client = distributed.Client(address, timeout="10s", set_as_default=False)
            except (OSError, ValueError) as error:
                raise UsageError(f"--scheduler {address}: no cluster answers ({error})") from None
            stack.enter_context(client)
            try:
                common = client.scatter(shared, broadcast=True, hash=False)
                futures = client.map(do, [common] * len(work), work, pure=False, retries=RETRIES)
                numbers = {future.key: number for number, future in enumerate(futures)}
                for future in distributed.as_completed(futures, loop=client.loop):
                    yield numbers[future.key], future.result()
                    future.release()
            except (OSError, CancelledError, TimeoutError, distributed.KilledWorker) as error:
                raise RecommendError(f"the cluster was lost ({error!r}); {LOST}") from None


def _enter(shared: Any) -> None:
    """Begin the life of a process, which ends with the one that started it."""
    _shared[:] = [shared]
    Thread(target=lambda: (mp.parent_process().join(), os._exit(1)), daemon=True).start()  # type: ignore[union-attr]


def _done(do: Do[Any, Piece, Result], piece: Piece) -> Result:
    return do(_shared[0], piece)
