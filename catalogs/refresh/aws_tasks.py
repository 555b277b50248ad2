"""Runs calls to many regions at once; one that hangs is left behind at the deadline."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from catalogs.errors import ProviderError
from catalogs.refresh.aws_calls import told
from catalogs.refresh.harvest import Wanted

T = TypeVar("T")


class Tasks(Generic[T]):
    """Work under way, by the name of its place."""

    def __init__(self, tasks: Mapping[str, Callable[[], T]], at_once: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="aws")
        self._futures = {name: self._pool.submit(task) for name, task in tasks.items()}

    def results(self, wanted: Wanted) -> tuple[dict[str, T], dict[str, ProviderError]]:
        """Wait until all is done or time is over; give results and failures by place."""
        left = max(wanted.stop_at - time.monotonic(), 0.0)
        wait(self._futures.values(), timeout=None if left == float("inf") else left)
        self._pool.shutdown(wait=False, cancel_futures=True)
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
