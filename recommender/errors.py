"""What can go wrong, as one tree; the command line turns each kind into an exit code.

    RecommendError          anything this tool refuses                     exit code
    ├── UsageError          a flag, a job file or an offer file is wrong           2
    ├── CatalogError        a catalog is missing, corrupt or too old               4
    ├── SolverError         the solver failed or contradicted itself               1
    └── RecordError         a measurement record cannot be used                    2

The first and third live in `recommender.catalogs.errors`, so that catalogs need nothing from here.
An infeasible request is an answer (`Answer.status` is "infeasible" or "unknown"), not an error.
"""

from recommender.catalogs.errors import CatalogError, RecommendError

__all__ = ["CatalogError", "RecommendError", "RecordError", "SolverError", "UsageError"]


class UsageError(RecommendError):
    """The request is wrong; `problems` holds every mistake found, not only the first."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SolverError(RecommendError):
    """The solver failed, or its solution failed the check in our own arithmetic."""


class RecordError(RecommendError):
    """A file of measurements cannot be used."""
