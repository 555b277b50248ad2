"""Runs calls to many regions at once; one that hangs is left behind at the deadline."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from threading import Thread
from typing import Generic, TypeVar

from catalogs.errors import ProviderError
from catalogs.refresh.aws_calls import told
from catalogs.refresh.harvest import Wanted

T = TypeVar("T")


class Tasks(Generic[T]):
    """Work under way, by the name of its place."""

    def __init__(self, tasks: Mapping[str, Callable[[], T]], at_once: int) -> None:
        self._futures: dict[str, Future[T]] = {name: Future() for name in tasks}
        self._waiting = deque((self._futures[name], task) for name, task in tasks.items())
        for _ in range(min(at_once, len(tasks))):
            # Daemons: the program ends even where a server sends a byte now and then for ever.
            # The threads of a ThreadPoolExecutor would be waited for.
            Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while self._waiting:
            try:
                future, task = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(task())
                except BaseException as error:
                    future.set_exception(error)

    def results(self, wanted: Wanted) -> tuple[dict[str, T], dict[str, ProviderError]]:
        """Wait until all is done or time is over; give results and failures by place."""
        left = max(wanted.stop_at - time.monotonic(), 0.0)
        wait(self._futures.values(), timeout=None if left == float("inf") else left)
        for each in self._futures.values():
            each.cancel()
        found: dict[str, T] = {}
        failed: dict[str, ProviderError] = {}
        for name, future in self._futures.items():
            error = _error(future)
            if error is None:
                found[name] = future.result()
            else:
                failed[name] = error
        return found, failed


def _error(future: "Future[T]") -> ProviderError | None:
    if not future.done() or future.cancelled():
        return ProviderError("aws", "timeout", "no answer before the deadline")
    error = future.exception()
    if error is None or isinstance(error, ProviderError):
        return error
    if isinstance(error, Exception):
        return told("reading", error)
    raise error
