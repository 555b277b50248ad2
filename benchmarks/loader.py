"""A loader as trainings have it: workers fetch and prepare batches ahead of the step."""

from collections.abc import Callable
from queue import Queue
from threading import Event, Thread
from typing import Generic, TypeVar

R = TypeVar("R")
B = TypeVar("B")
AHEAD = 2  # batches per worker that wait to be used, as in PyTorch's DataLoader


class Loader(Generic[R, B]):
    """Gives batches in any order; `next()` waits for one, `close()` ends the workers."""

    def __init__(self, fetch: Callable[[int], R], prepare: Callable[[R], B], workers: int) -> None:
        self._fetch, self._prepare = fetch, prepare
        self._ready: Queue[B | BaseException] = Queue(AHEAD * workers)
        self._stop = Event()
        self._threads = [
            Thread(target=self._work, args=(first, workers), daemon=True)
            for first in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def next(self) -> B:
        """The next batch; raises what went wrong in a worker."""
        batch = self._ready.get()
        if isinstance(batch, BaseException):
            raise batch
        return batch

    def close(self) -> None:
        """End the workers; what they prepared is dropped."""
        self._stop.set()
        while any(thread.is_alive() for thread in self._threads):
            while not self._ready.empty():
                self._ready.get_nowait()
            for thread in self._threads:
                thread.join(0.01)

    def _work(self, number: int, stride: int) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put(self._prepare(self._fetch(number)))
            except (OSError, ValueError, ArithmeticError) as error:
                self._ready.put(error)
                return
            number += stride
