"""What can go wrong, as one tree; the command line turns each kind into an exit code.

    RecommendError          anything this tool refuses                     exit code
    ├── UsageError          a flag, a job file or an offer file is wrong           2
    ├── CatalogError        a catalog is missing, corrupt or too old               4
    ├── SolverError         the solver failed or contradicted itself               1
    └── RecordError         a measurement record cannot be used                    2

The first and third live in `recommender.catalogs.errors`, so that catalogs need nothing from here.
An infeasible request is an answer (`Answer.status` is "infeasible" or "unknown"), not an error.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from recommender.catalogs.errors import CatalogError, RecommendError

__all__ = ["CatalogError", "RecommendError", "RecordError", "SolverError", "UsageError", "no_plan"]

MAX_PROBLEMS = 20  # more would hide the first
MAX_COUNTED = 1000  # then nothing more is looked at: finding the word that was meant takes long


class UsageError(RecommendError):
    """The request is wrong; `problems` holds every mistake found, not only the first."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def no_plan(flag: str, number: int, plans: int) -> UsageError:
    """The refusal of a plan number that an answer does not have."""
    last = f"the plans are 1 to {plans}" if plans > 1 else "the only plan is 1"
    return UsageError(f"{flag} {number}: there is no such plan; {last}")


def first_problems(problems: Iterable[str]) -> list[str]:
    """The first twenty of what is wrong, and how many more there are; no more are looked at."""
    each = iter(problems)
    found = list(islice(each, MAX_PROBLEMS))
    more = sum(1 for _ in islice(each, MAX_COUNTED - MAX_PROBLEMS))
    if more:
        at_least = "" if next(each, None) is None else " at least"
        found.append(f"and {more:,} more{at_least}")
    return found


def refuse_all(problems: Iterable[str]) -> None:
    """Raise `UsageError` with the first twenty of what is wrong, if anything is."""
    if found := first_problems(problems):
        raise UsageError(*found)


def refuse_many(problems: Sequence[str]) -> None:
    """Read no further where more is wrong than is counted; for loops over foreign rows."""
    if len(problems) > MAX_COUNTED:
        refuse_all(problems)


class SolverError(RecommendError):
    """The solver failed, or its solution failed the check in our own arithmetic."""


class RecordError(RecommendError):
    """A file of measurements cannot be used."""
