"""The one place where whatever fails is caught: a rented GPU must not lose its other figures.

Memory and disks are full, stores refuse (boto3 has exceptions of its own), torch's 8-bit products
change names, arguments and exceptions between versions, and a user's own code may raise anything.
"""

from collections.abc import Callable
from typing import TypeVar

from benchmarks.errors import BenchError, Skipped, WrongResult

T = TypeVar("T")
_MOST = 160  # letters of a reason


def attempt(run: Callable[[], T], what: str) -> T | Skipped:
    """What `run` gives, or why it gives nothing. Raises WrongResult, which ends everything."""
    try:
        return run()
    except WrongResult:
        raise
    except Skipped as error:
        return error
    except Exception as error:
        return Skipped(f"{what}: {said(error)}")  # not the error, which holds the memory of a GPU


def said(error: BaseException) -> str:
    """What an exception says, in one short line."""
    words = " ".join(str(error).split())[:_MOST]
    if isinstance(error, BenchError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
