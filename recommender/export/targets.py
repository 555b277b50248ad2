"""The targets of an export, by the name of `--to`."""

from importlib import import_module
from typing import Protocol, cast

from recommender.errors import UsageError
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.start import TARGETS, why_not_booked
from recommender.plan.as_run import ELSEWHERE
from recommender.text import unknown


class Target(Protocol):
    """What the module of a target can do."""

    def files(self, run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
        """The files that run the plan from this folder; raises `UsageError` where none can."""

    def why_not(self, run: RunDescription) -> str:
        """Why the target cannot run a plan; empty where it can."""


def target_of(name: str) -> Target:
    """The module of a target; raises `UsageError` for a name that there is none of."""
    if name not in TARGETS:
        raise UsageError(unknown("target of --to", name, TARGETS))
    module = import_module(f"recommender.export.{name.replace('-', '_')}")
    return cast(Target, module)


def export_files(run: RunDescription, target: str, folder: str) -> tuple[ExportFile, ...]:
    """The files of a plan for a target; raises `UsageError` where it cannot run the plan."""
    module = target_of(target)
    try:
        why = why_not_booked(run.plan, target) or module.why_not(run)
        if why:
            raise UsageError(f"--to {target}: {why}")
        if run.saving.path in ELSEWHERE:  # of an answer of an older version
            raise UsageError(
                f"--to {target}: the answer does not say how the plan saves to a bucket; ask again "
                "with recommend ... --json"
            )
        return module.files(run, folder)
    except (ArithmeticError, ValueError) as error:  # of an answer that another program wrote
        raise UsageError(
            f"--to {target}: figures of the plan do not fit together ({error}); ask again with "
            "recommend ... --json"
        ) from error
