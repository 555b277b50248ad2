"""When to save, and going on where the last run ended.

The training tells after each step how far it is. A save copies the state (training waits) and a
thread writes it; it is due τ after the last one, at once at the provider's notice, and before the
process ends at SIGTERM. Of several ranks the first decides, and all save the same step. What an
interruption can cost is τ, the time of one save and one step.
"""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from recommender.catalogs.files import replace_file
from recommender.errors import UsageError
from recommender.text import shown
from recommender.train.checkpoint_folder import Checkpoint, CheckpointFolder, FileSum, sum_of
from recommender.train.notices import NoticeWatch, provider_of_this_machine
from recommender.train.progress_file import TrainingProgress, progress_at_start
from recommender.train.ranks import Ranks, ranks_of_this_run
from recommender.train.save_interval import (
    SHORTEST_S,
    SaveTimes,
    mean_run_s,
    next_interval_s,
)
from recommender.train.training_state import TrainingState

SHARE = "progress"  # the share that is safe, which the exported launch.sh reads
TERMINATED = 128 + signal.SIGTERM  # exit status of a process that SIGTERM ended
FAILED_SAVES = 3  # one after the other, before the training is stopped
AGREE_S = 1.0  # about how often ranks ask one another whether to save
_NOTHING, _DUE, _AT_ONCE, _STOP = range(4)
_LOG = logging.getLogger("recommender.train")


class Checkpointer:
    """Saves a training of `total_steps` and takes it up again.

    `folder` and `interval_s` are $CHECKPOINT_DIR and $CHECKPOINT_INTERVAL_S of exported files
    where nothing else is said; the interval holds until a save was measured, then it adapts.
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
        self._folder = CheckpointFolder(_root(folder), _positive("keep", keep))
        self._shortest_s = shortest_interval_s
        first_s = _amount("checkpoint interval", "CHECKPOINT_INTERVAL_S", interval_s)
        self.interval_s = first_s or shortest_interval_s
        self._state, self._ranks = state, ranks_of_this_run()
        self._writer_ranks = self._ranks.another()
        self._notices = notices if notices is not None else _usual_notices()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._writing: Future[SaveTimes] | None = None
        self._times: SaveTimes | None = None
        self._usd_per_hour = _amount("price per hour", "USD_PER_HOUR", usd_per_hour)
        self._at_start: TrainingProgress | None = None  # of rank 0, which writes the file
        self._began_s = time.monotonic()
        self._saved_step, self._saved_s, self._failed = 0, time.monotonic(), 0
        self._step, self._asked_step, self._asked_s = 0, 0, time.monotonic()
        self._next_asked = 0
        self._terminated, self._owner = False, os.getpid()
        self._earlier_handler: Any = None

    def steps(self) -> Iterator[int]:
        """The steps still to do, from 0 or the newest complete checkpoint on.

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
        self._earlier_handler = signal.signal(signal.SIGTERM, self._terminate)
        if self._notices is not None:
            self._notices.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._notices is not None:
            self._notices.stop()
        self._writer.shutdown(wait=True)
        signal.signal(signal.SIGTERM, self._earlier_handler or signal.SIG_DFL)

    def restore(self) -> int:
        """Take over the newest complete checkpoint; steps that are done, 0 at the first start."""
        root = self._folder.root
        if self._ranks.rank == 0:
            root.mkdir(parents=True, exist_ok=True)
            self._folder.remove_leftovers()
        newest = self._newest()
        if newest is not None:
            self._state.read(newest.folder, self._ranks)
            self._step = self._saved_step = newest.step
        self._next_asked = self._asked_step = self._step
        self._saved_s = self._asked_s = self._began_s = time.monotonic()
        if self._ranks.rank == 0:
            price = self._usd_per_hour
            self._at_start = progress_at_start(root, self.total_steps, self._step, price)
            self._at_start.write(root)
        return self._step

    def step_done(self, step: int) -> None:
        """Tell how many steps are done; saves where it is time.

        Raises:
            SystemExit: SIGTERM came; this step is saved.
            OSError: three saves in a row failed.
        """
        self._step = step
        if step < self._next_asked:
            return
        wish = self._agreed_wish()
        if wish == _NOTHING:
            return
        if wish >= _AT_ONCE:
            self._wait_for_writer()
        self._save()
        if wish == _STOP:
            self._wait_for_writer()
            _LOG.warning("SIGTERM: step %d is saved", step)
            raise SystemExit(TERMINATED)

    def finish(self) -> None:
        """Save the last step, and wait until it is complete.

        Raises:
            OSError: the save failed.
        """
        self._wait_for_writer()
        self._save()
        self._failed = FAILED_SAVES  # there is no later save that could make up for it
        self._wait_for_writer()

    def _agreed_wish(self) -> int:
        """What the most urgent rank wishes; nothing while a rank still writes and it can wait."""
        now = time.monotonic()
        each_s = (now - self._asked_s) / max(1, self._step - self._asked_step)
        gap = max(1, min(int(AGREE_S / max(each_s, 1e-6)), 10_000)) if self._ranks.count > 1 else 1
        asked = (self._own_wish(now), int(self.saving), -gap)
        wish, any_busy, least_gap = self._ranks.largest(asked)
        self._next_asked = self._step - least_gap
        self._asked_step, self._asked_s = self._step, now
        return _NOTHING if wish == _DUE and any_busy else wish

    def _own_wish(self, now: float) -> int:
        if self._terminated:
            return _STOP
        notice = self._notices.take() if self._notices is not None else None
        if notice is not None:
            _LOG.warning("%s: %s %s; saving", notice.provider, notice.action, notice.at)
            return _AT_ONCE
        due = self._ranks.rank == 0 and now - self._saved_s >= self.interval_s
        return _DUE if due else _NOTHING

    def _save(self) -> None:
        """Copy the state and have it written; the last save is done."""
        self._wait_for_writer()
        if self._step == self._saved_step:
            return
        began = time.monotonic()
        copied = self._state.copy()
        self._saved_s = time.monotonic()
        self._saved_step = self._step
        stall_s = self._saved_s - began
        self._writing = self._writer.submit(self._write, self._step, copied, stall_s)

    def _write(self, step: int, copied: Any, stall_s: float) -> SaveTimes:
        """In the thread: all ranks write, then the first one makes the checkpoint count."""
        began, ranks, folder = time.monotonic(), self._writer_ranks, self._folder

        def written() -> list[FileSum]:
            return [sum_of(path) for path in self._state.write(copied, folder.path(step), ranks)]

        def completed() -> None:
            folder.complete(step, [each for own in sums for each in own])
            self._tell_progress(step)

        _together(ranks, partial(folder.begin, step), ranks.rank == 0)
        sums = _together(ranks, written)
        _together(ranks, completed, ranks.rank == 0)
        return SaveTimes(stall_s, time.monotonic() - began)

    def _tell_progress(self, step: int) -> None:
        """In the thread of rank 0: write that a step is safe."""
        root = self._folder.root
        replace_file(root / SHARE, f"{step / self.total_steps:.6f}\n".encode())
        if self._at_start is not None:
            now = self._at_start.after(time.monotonic() - self._began_s, self._usd_per_hour)
            replace(now, step=step, interval_s=self.interval_s).write(root)

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
        self._learn(measured)

    def _learn(self, measured: SaveTimes) -> None:
        self._times = measured if self._times is None else self._times.then(measured)
        if self._at_start is not None:
            uptime_s = self._at_start.uptime_s + time.monotonic() - self._began_s
            run_s = mean_run_s(uptime_s, self._at_start.interruptions)
            self.interval_s = next_interval_s(self._times, run_s, self._shortest_s)

    def _newest(self) -> Checkpoint | None:
        """The newest checkpoint whose every file is intact; ranks share the reading."""
        ranks = self._ranks
        found = self._folder.newest_first() if ranks.rank == 0 else []
        listed: list[Checkpoint] = ranks.gather(found)[0]
        for each in listed:
            torn = not each.is_intact(slice(ranks.rank, None, ranks.count))
            if not ranks.largest([int(torn)])[0]:
                return each
            _LOG.warning("%s is torn; an older checkpoint is taken", each.folder)
            if ranks.rank == 0:
                self._folder.remove(each)
        return None

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        """Remember SIGTERM for the end of the step; a forked data loader just ends."""
        if os.getpid() != self._owner:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        self._terminated = True


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


def _usual_notices() -> NoticeWatch | None:
    provider = provider_of_this_machine()
    return None if provider is None else NoticeWatch(provider)


def _root(folder: str | Path | None) -> Path:
    named = folder or os.environ.get("CHECKPOINT_DIR")
    if not named:
        raise UsageError("no folder for checkpoints: set CHECKPOINT_DIR, or pass folder=")
    return Path(named)


def _amount(what: str, variable: str, asked: float | None) -> float | None:
    """A figure that is passed, or else stands in the environment; nothing where neither is."""
    text = os.environ.get(variable)
    if asked is None and not text:
        return None
    try:
        found = float(asked if asked is not None else text or "")
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise UsageError(f"{what} '{shown(asked or text)}': give a number above 0")
    return found


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"{name} {value}: give at least 1")
    return value
