"""A training loop that saves checkpoints and resumes where the last run ended.

The loop reports after each step. When the schedule requires a save, the state is copied (training
waits) and a thread writes it. All ranks save the same step. An interruption costs at most τ, the
time of one save and one step.
"""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from recommender.errors import UsageError
from recommender.train.checkpoint_folder import Checkpoint, CheckpointFolder, FileSum, sum_of
from recommender.train.notices import NoticeWatch
from recommender.train.ranks import Ranks, ranks_of_this_run
from recommender.train.save_interval import SHORTEST_S, SaveTimes
from recommender.train.save_schedule import TERMINATED, SaveAction, SaveSchedule, checkpoint_root
from recommender.train.training_state import TrainingState

FAILED_SAVES = 3  # one after the other, before the training is stopped
_LOG = logging.getLogger("recommender.train")


class Checkpointer:
    """Saves a training of `total_steps` and resumes it.

    `folder` and `interval_s` are $CHECKPOINT_DIR and $CHECKPOINT_INTERVAL_S of exported files
    where nothing else is said; the interval follows the saves measured and the interruptions.
    `usd_per_hour` of all machines ($USD_PER_HOUR) makes the progress file say what was spent.
    `notices` watches the provider of this machine, if it is one of AWS, Google Cloud, Azure.

    Raises:
        UsageError: no folder is named, or a figure is no positive number.
    """

    def __init__(
        self,
        state: TrainingState,
        total_steps: int,
        *,
        folder: str | Path | None = None,
        interval_s: float | None = None,
        shortest_interval_s: float = SHORTEST_S,
        keep: int = 2,
        notices: NoticeWatch | None = None,
        usd_per_hour: float | None = None,
    ) -> None:
        self.total_steps = _positive("total_steps", total_steps)
        self._folder = CheckpointFolder(checkpoint_root(folder), _positive("keep", keep))
        self._state, self._ranks = state, ranks_of_this_run()
        self.schedule = SaveSchedule(
            self._folder.root,
            self._folder.name,
            interval_s=interval_s,
            shortest_interval_s=shortest_interval_s,
            notices=notices,
            usd_per_hour=usd_per_hour,
        )
        self._writer_ranks = self._ranks.another()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._writing: Future[SaveTimes] | None = None
        self._step = self._saved_step = self._failed = 0

    def steps(self) -> Iterator[int]:
        """The remaining steps, from 0 or from the newest complete checkpoint.

        Raises:
            SystemExit: SIGTERM came; the last step is saved.
            OSError: three saves in a row failed.
        """
        with self:
            for step in range(self.restore(), self.total_steps):
                yield step
                self.step_done(step + 1)
            self.finish()

    @property
    def saving(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._writing is not None and not self._writing.done()

    def __enter__(self) -> "Checkpointer":
        self.schedule.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.shutdown(wait=True)
        self.schedule.__exit__(kind, error, traceback)

    def restore(self) -> int:
        """Load the newest complete checkpoint; return the steps done, 0 at the first start."""
        if self._ranks.rank == 0:
            self._folder.root.mkdir(parents=True, exist_ok=True)
            self._folder.remove_leftovers()
        newest = self._newest()
        if newest is not None:
            self._state.read(newest.folder, self._ranks)
            self._step = self._saved_step = newest.step
        self.schedule.begin(self._step, self.total_steps, self._ranks)
        return self._step

    def step_done(self, step: int) -> None:
        """Report the number of steps done; saves if it is due.

        Raises:
            SystemExit: SIGTERM came; this step is saved.
            OSError: three saves in a row failed.
        """
        self._step = step
        action = self.schedule.action(step, self.saving)
        if action != SaveAction.NOTHING:
            self._save()
        if action == SaveAction.STOP:
            self._wait_for_writer()
            _LOG.warning("SIGTERM: step %d is saved", step)
            raise SystemExit(TERMINATED)

    def finish(self) -> None:
        """Save the last step, and wait until it is complete.

        Raises:
            OSError: the save failed.
        """
        self._save()
        self._failed = FAILED_SAVES  # there is no later save that could make up for it
        self._wait_for_writer()

    def _save(self) -> None:
        """Copy the state and have it written, when the save before is done."""
        self._wait_for_writer()
        if self._step == self._saved_step:
            return
        began = time.monotonic()
        copied = self._state.copy()
        self.schedule.saved()
        self._saved_step = self._step
        stall_s = time.monotonic() - began
        self._writing = self._writer.submit(self._write, self._step, copied, stall_s)

    def _write(self, step: int, copied: Any, stall_s: float) -> SaveTimes:
        """In the thread: all ranks write, then the first one makes the checkpoint count."""
        began, ranks, folder = time.monotonic(), self._writer_ranks, self._folder

        def written() -> list[FileSum]:
            return [sum_of(path) for path in self._state.write(copied, folder.path(step), ranks)]

        def completed() -> None:
            folder.complete(step, [each for own in sums for each in own])
            self.schedule.complete(step)

        _together(ranks, partial(folder.begin, step), ranks.rank == 0)
        sums = _together(ranks, written)
        _together(ranks, completed, ranks.rank == 0)
        return SaveTimes(stall_s, time.monotonic() - began)

    def _wait_for_writer(self) -> None:
        """Wait for the last save, learn from its times, or from its failure."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            measured = writing.result()
        except OSError as error:
            self._failed += 1
            self._saved_step = -1
            _LOG.error("step %d was not saved: %s", self._step, error)
            if self._failed >= FAILED_SAVES:
                raise
            return
        self._failed = 0
        self.schedule.learn(measured)

    def _newest(self) -> Checkpoint | None:
        """The newest checkpoint whose every file is intact; ranks share the reading."""
        ranks = self._ranks
        found = self._folder.newest_first() if ranks.rank == 0 else []
        listed: list[Checkpoint] = ranks.gather(found)[0]
        for each in listed:
            torn = not each.is_intact(slice(ranks.rank, None, ranks.count))
            if not ranks.largest([int(torn)])[0]:
                return each
            _LOG.warning("%s is incomplete; an older checkpoint is used", each.folder)
            if ranks.rank == 0:
                self._folder.remove(each)
        return None


def _together(ranks: Ranks, act: Callable[[], Any], here: bool = True) -> list[Any]:
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


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"{name} {value}: give at least 1")
    return value
