"""Which checkpoint a training resumes from: the newest whose every file is as it was written."""

import errno
import logging
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.train.checkpoint_folder import Checkpoint, CheckpointFolder, Condition
from recommender.train.patience import patiently
from recommender.train.ranks import Ranks

_LOG = logging.getLogger("recommender.train")
# What the `load_state_dict` of a state raises for another training's (torch: RuntimeError).
UNSUITABLE = (
    ArithmeticError, AttributeError, EOFError, FileNotFoundError, ImportError, LookupError,
    RuntimeError, TypeError, ValueError, pickle.UnpicklingError,
)  # fmt: skip


def newest_intact(
    checkpoints: CheckpointFolder, ranks: Ranks
) -> tuple[Checkpoint | None, list[Checkpoint]]:
    """The newest intact checkpoint, and newer ones that are not; ranks share the reading.

    Raises:
        OSError: a newer one cannot be read, or none is intact and files are missing.
    """
    torn: list[Checkpoint] = []
    missing: list[Checkpoint] = []
    with _nothing_removed():
        listed = together(ranks, partial(patiently, checkpoints.newest_first), ranks.rank == 0)[0]
        for each in listed:
            condition = max(together(ranks, partial(each.condition, _share(ranks))))
            if condition == Condition.INTACT:
                return each, torn
            _LOG.warning("%s is incomplete; an older checkpoint is used", each.folder)
            torn.append(each)
            missing += [each] * (condition == Condition.MISSING)
        if missing:
            why = "files of every checkpoint are missing"
            raise FileNotFoundError(errno.ENOENT, why, str(missing[0].folder))
    return None, torn


@contextmanager
def of_this_training(folder: Path) -> Iterator[None]:
    """Report that a state does not suit this training.

    Raises:
        UsageError: it does not.
    """
    try:
        yield
    except UNSUITABLE as error:
        raise UsageError(
            f"{folder}: cannot be resumed from ({type(error).__name__}: {error}): if it is another "
            "training's, give each one a folder of its own"
        ) from error


def together(ranks: Ranks, act: Callable[[], Any], here: bool = True) -> list[Any]:
    """What an act gave on every rank; where it failed on one, it fails on all."""
    try:
        done = act() if here else None
    except OSError as error:
        done = error
    found = ranks.gather(done)
    for each in found:
        if isinstance(each, OSError):
            raise each
    return found


@contextmanager
def _nothing_removed() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"{error.strerror}; nothing was removed: start again when it can be read, or move it "
        raise OSError(error.errno, f"{why}away to go on without it", error.filename) from error


def _share(ranks: Ranks) -> slice:
    return slice(ranks.rank, None, ranks.count)
