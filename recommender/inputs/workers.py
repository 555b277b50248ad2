"""Runs many pieces of work here, in processes or on a Dask cluster: each result as it ends."""

import multiprocessing as mp
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Thread
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.errors import RecommendError, UsageError

Do = Callable[[Any, Any], Any]  # from what all pieces have in common, and one of them, its result
Ended = Iterator[tuple[int, Any]]  # number and result of each piece

LOCAL = "local"  # as a scheduler: a Dask cluster of processes on this machine
RETRIES = 3  # times that work is tried again whose worker died
_common: list[Any] = []  # in a process that works: what all pieces have in common


@dataclass(frozen=True, slots=True)
class Workers:
    """Where work is done: by default in this process."""

    count: int = 1  # processes of this machine
    scheduler: str = ""  # address of a Dask scheduler, or `LOCAL`

    def results(self, do: Do, common: Any, work: Sequence[Any]) -> Ended:
        """Each piece's number and result; what a worker had that dies is done again by another.

        The result is None where workers died of it again and again.
        """
        if self.scheduler:
            return self._on_dask(do, common, work)
        if self.count > 1:
            return self._in_processes(do, common, work)
        return ((number, do(common, piece)) for number, piece in enumerate(work))

    def _in_processes(self, do: Do, common: Any, work: Sequence[Any]) -> Ended:
        left, deaths, running = list(range(len(work)))[::-1], Counter[int](), dict[Any, Any]()
        with NamedTemporaryFile() as file, ExitStack() as stack:
            # Not through the pipe of a process: one that is killed as it starts leaves it full.
            Path(file.name).write_bytes(pickle.dumps(common))
            idle = [_pool(file.name) for _ in range(min(self.count, len(work)))]
            stack.callback(lambda: [p.shutdown(False) for p in (*idle, *dict(running.values()))])
            while left or running:
                while left and idle:
                    pool, number = idle.pop(), left.pop()
                    try:
                        running[pool.submit(_done, do, work[number])] = pool, number
                    except BrokenProcessPool:  # it died with nothing to do
                        idle, left = [*idle, _pool(file.name)], [*left, number]
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    pool, number = running.pop(future)
                    if not isinstance(future.exception(), BrokenProcessPool):
                        idle.append(pool)
                        yield number, future.result()
                        continue
                    idle.append(_pool(file.name))
                    deaths[number] += 1
                    if deaths[number] > RETRIES:
                        yield number, None
                    else:
                        left.append(number)

    def _on_dask(self, do: Do, common: Any, work: Sequence[Any]) -> Ended:
        try:
            distributed: Any = import_module("distributed")  # has no types
        except ImportError:
            raise UsageError("--scheduler needs Dask: pip install distributed") from None
        here = {"n_workers": self.count, "threads_per_worker": 1, "silence_logs": 50}
        local = here | {"dashboard_address": None} if self.scheduler == LOCAL else {}
        address, known = None if local else self.scheduler, {"set_as_default": False, **local}
        try:
            client = distributed.Client(address, timeout="10s", **known)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--scheduler {self.scheduler}: no cluster answers ({error})"
            ) from None
        with client:
            try:
                # As a task, which is done again where a worker died with its result.
                sent = client.submit(lambda: common, pure=False, retries=RETRIES)
                futures = client.map(do, [sent] * len(work), work, pure=False, retries=RETRIES)
                numbers = {future.key: number for number, future in enumerate(futures)}
                for future in distributed.as_completed(futures, loop=client.loop):
                    dead = isinstance(future.exception(), distributed.KilledWorker)
                    yield numbers[future.key], None if dead else future.result()
                    future.release()
            except (OSError, CancelledError, TimeoutError) as error:
                raise RecommendError(f"the cluster was lost ({error!r}); start again") from None


def _pool(common: str) -> ProcessPoolExecutor:
    """One process: a pool of more would lose the work of all with one of them."""
    return ProcessPoolExecutor(1, mp.get_context("spawn"), _enter, (common,))


def _enter(common: str) -> None:
    """Begin the life of a process, which ends with the one that started it."""
    _common[:] = [pickle.loads(Path(common).read_bytes())]
    Thread(target=lambda: (mp.parent_process().join(), os._exit(1)), daemon=True).start()  # type: ignore[union-attr]


def _done(do: Do, piece: Any) -> Any:
    return do(_common[0], piece)
