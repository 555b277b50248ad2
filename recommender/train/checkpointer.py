"""A training loop that saves checkpoints and resumes where the last run ended.

The loop reports after each step. When the schedule requires a save, the state is copied (training
waits) and a thread writes it. All ranks save the same step. An interruption costs at most τ, the
time of one save and one step.
"""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from recommender.errors import UsageError
from recommender.train.checkpoint_folder import Checkpoint, CheckpointFolder, FileSum, sum_of
from recommender.train.notices import NoticeWatch
from recommender.train.patience import patiently
from recommender.train.ranks import ranks_of_this_run
from recommender.train.restore import newest_intact, of_this_training, together
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
            UsageError: the folder is another training's.
            SystemExit: SIGTERM came; the last step is saved.
            OSError: three saves in a row failed, or no checkpoint can be read.
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
        """Load the newest complete checkpoint; return the steps done, 0 at the first start.

        Raises:
            UsageError: it is of another training.
            OSError: it cannot be read; nothing was removed.
        """
        first = self._ranks.rank == 0
        make = partial(self._folder.root.mkdir, parents=True, exist_ok=True)
        together(self._ranks, partial(patiently, make), first)
        newest, torn = newest_intact(self._folder, self._ranks)
        for each in torn if first else []:
            with suppress(OSError):  # skipped at each start where folders cannot be renamed
                self._folder.put_aside(each.folder)
        if newest is not None:
            self._read(newest)
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
            self._save_surely()
            _LOG.warning("SIGTERM: step %d is saved", step)
            raise SystemExit(TERMINATED)

    def finish(self) -> None:
        """Save the last step, and wait until it is complete.

        Raises:
            OSError: three saves in a row failed.
        """
        self._save_surely()

    def _read(self, newest: Checkpoint) -> None:
        with of_this_training(newest.folder):
            if newest.step > self.total_steps:
                raise ValueError(f"more than total_steps, {self.total_steps}")
            patiently(partial(self._state.read, newest.folder, self._ranks))
        self._step = self._saved_step = newest.step

    def _save_surely(self) -> None:
        """Save the last step, as often as saves may fail."""
        self._wait_for_writer()
        while self._saved_step != self._step:
            self._save()
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
        first = ranks.rank == 0

        def written() -> list[FileSum]:
            return [sum_of(path) for path in self._state.write(copied, folder.path(step), ranks)]

        def completed() -> None:
            folder.complete(step, [each for own in sums for each in own])
            self.schedule.complete(step)

        try:
            together(ranks, partial(folder.begin, step), first)
            sums = together(ranks, written)
            together(ranks, completed, first)
        except OSError as error:
            _LOG.error("step %d was not saved: %s", step, error)
            if first:
                folder.remove_unfinished()  # or it keeps a full disk full
            raise
        return SaveTimes(stall_s, time.monotonic() - began)

    def _wait_for_writer(self) -> None:
        """Wait for the last save, learn from its times, or from its failure."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            measured = writing.result()
        except OSError:
            self._failed += 1
            self._saved_step = -1
            if self._failed >= FAILED_SAVES:
                raise
            return
        self._failed = 0
        self.schedule.learn(measured)


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"{name} {value}: give at least 1")
    return value
