"""What a thread hands over to the one that waits for it."""

from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Answer(Generic[T]):
    """Takes what a thread hands over, or what it failed with."""

    def __init__(self) -> None:
        self.future: Future[T] = Future()

    def __enter__(self) -> "Future[T]":
        return self.future

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is not None:
            self.future.set_exception(error)
        return True  # the error travels in the answer, and not to standard error
