"""What can go wrong with a measurement, and the one place where whatever fails is caught.

Memory and disks are full, stores refuse (boto3 has exceptions of its own), torch's 8-bit products
change names, arguments and exceptions between versions, and a user's own code may raise anything.
"""

from collections.abc import Callable
from typing import TypeVar

_MAX = 160  # letters of a reason


class BenchError(Exception):
    """A measurement or a record cannot be used; the message says why and what to do."""


class Skipped(BenchError):
    """This machine or its software cannot measure a case; the message says why."""


class WrongResult(BenchError):
    """The machine computes wrongly: no figure of it can be trusted."""


class BadRecord(BenchError):
    """A file is no record of measurements; the message names the file and the field."""


T = TypeVar("T")


def guard(run: Callable[[], T], what: str) -> T | Skipped:
    """Run, and return the result or why there is none. Raises WrongResult, which ends all."""
    try:
        return run()
    except WrongResult:
        raise
    except Skipped as error:
        return error
    except Exception as error:
        # Not the error itself, which holds the memory of a GPU.
        return Skipped(f"{what}: {error_text(error)}")


def error_text(error: BaseException) -> str:
    """The text of an exception on one short line."""
    words = " ".join(str(error).split())[:_MAX]
    if isinstance(error, BenchError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
