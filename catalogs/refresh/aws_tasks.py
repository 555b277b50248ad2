"""Runs calls to many regions at once; one that hangs is left behind at the deadline."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from threading import Thread
from typing import Generic, TypeVar

from catalogs.errors import ProviderError
from catalogs.refresh.answer import Answer
from catalogs.refresh.aws_calls import told
from catalogs.refresh.harvest import Wanted

T = TypeVar("T")


class Tasks(Generic[T]):
    """Work under way, by the name of its place."""

    def __init__(self, tasks: Mapping[str, Callable[[], T]], at_once: int) -> None:
        answers: dict[str, Answer[T]] = {name: Answer() for name in tasks}
        self._futures = {name: answer.future for name, answer in answers.items()}
        self._waiting = deque((answers[name], task) for name, task in tasks.items())
        for _ in range(min(at_once, len(tasks))):
            # Daemons: the program ends even where a server sends a byte now and then for ever.
            # The threads of a ThreadPoolExecutor would be waited for.
            Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while self._waiting:
            try:
                answer, task = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            if answer.future.set_running_or_notify_cancel():
                with answer as future:
                    future.set_result(task())

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
