"""When a training saves: every τ, at the provider's notice, and before SIGTERM ends it.

With several ranks the first one decides on τ, and the most urgent action applies to all.
The schedule also writes the progress files, which show others what is saved.
"""

import logging
import os
import signal
import time
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from recommender.catalogs.files import replace_file
from recommender.errors import UsageError
from recommender.text import shown
from recommender.train.notices import NoticeWatch, usual_notices
from recommender.train.progress_file import TrainingProgress, progress_at_start
from recommender.train.ranks import OneProcess, Ranks
from recommender.train.save_interval import SHORTEST_S, SaveTimes, mean_run_s, next_interval_s

SHARE = "progress"  # the share that is safe, which the exported launch.sh reads
TERMINATED = 128 + signal.SIGTERM  # exit status of a process that SIGTERM ended
AGREE_S = 1.0  # about how often ranks ask one another whether to save; τ/10 where that is less
_LOG = logging.getLogger("recommender.train")


class SaveAction(IntEnum):
    """What to do at the end of a step, from the least to the most urgent."""

    NOTHING = 0
    SAVE = 1  # τ is over; it can wait for the save before
    SAVE_NOW = 2  # the machine will be taken
    STOP = 3  # SIGTERM: save, then end


class SaveSchedule:
    """The schedule of one training, a context that listens for SIGTERM and notices.

    Raises:
        UsageError: a figure is no positive number.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        *,
        interval_s: float | None = None,
        shortest_interval_s: float = SHORTEST_S,
        notices: NoticeWatch | None = None,
        usd_per_hour: float | None = None,
    ) -> None:
        self._root, self._name = root, name  # checkpoints are folders NAME-STEP
        self._ranks: Ranks = OneProcess()
        self._shortest_s = shortest_interval_s
        first_s = _amount("checkpoint interval", "CHECKPOINT_INTERVAL_S", interval_s)
        self.interval_s = self._first_s = first_s or shortest_interval_s
        self._usd_per_hour = _amount("price per hour", "USD_PER_HOUR", usd_per_hour)
        self._planned_work_s = _amount("planned training time", "PLANNED_WORK_S", None)
        self._notices = notices if notices is not None else usual_notices()
        self._times: SaveTimes | None = None
        self._at_start: TrainingProgress | None = None  # of rank 0, which writes the files
        self._began_s = self._saved_s = self._measured_s = time.monotonic()
        self._measured_step = self._next_check = 0
        self._timed_steps: int | None = None  # None until one has warmed up
        self._timed_s = 0.0
        self._terminated, self._owner = False, os.getpid()
        self._earlier_handler: Any = None

    def __enter__(self) -> "SaveSchedule":
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
        signal.signal(signal.SIGTERM, self._earlier_handler or signal.SIG_DFL)

    def begin(self, step: int, total_steps: int, ranks: Ranks) -> None:
        """Report where this start resumes; the interval counts from now."""
        self._ranks = ranks
        self._measured_step = self._next_check = step
        self._began_s = self._saved_s = self._measured_s = time.monotonic()
        self._timed_steps = None
        if self._ranks.rank == 0:
            price = self._usd_per_hour
            newest = self._checkpoint(step)
            self._at_start = progress_at_start(self._root, total_steps, step, newest, price)
            self._write(self._at_start)

    def action(self, step: int, busy: bool) -> SaveAction:
        """What all ranks do at the end of a step; if `busy` with a save, others wait.

        Ranks ask one another only about every `AGREE_S`, all at the same step.
        """
        if step < self._next_check:
            return SaveAction.NOTHING
        now = time.monotonic()
        own = (self._own_action(now), int(busy), -self._gap(step, now))
        action, any_busy, min_gap = self._ranks.largest(own)
        self._next_check = step - min_gap
        self._time_steps(step, now)
        return SaveAction.NOTHING if action == SaveAction.SAVE and any_busy else SaveAction(action)

    def saved(self) -> None:
        """Report that the state was copied; the next save is due τ from now."""
        self._saved_s = self._measured_s = time.monotonic()

    def complete(self, step: int) -> None:
        """Record that a step is saved; called by rank 0, from any thread."""
        if self._at_start is not None:
            named = self._checkpoint(step)
            now = self._now(self._at_start)
            self._write(replace(now, step=step, checkpoint=named, interval_s=self.interval_s))

    def learn(self, measured: SaveTimes) -> None:
        """Update the interval with the cost of a save."""
        self._times = measured if self._times is None else self._times.then(measured)
        if self._at_start is not None:
            uptime_s = self._at_start.uptime_s + time.monotonic() - self._began_s
            interruptions = self._at_start.interruptions
            # Until one comes, no more often than the plan says, which knows machines on demand.
            min_s = self._shortest_s if interruptions else max(self._shortest_s, self._first_s)
            run_s = mean_run_s(uptime_s, interruptions)
            self.interval_s = next_interval_s(self._times, run_s, min_s)

    def _write(self, progress: TrainingProgress) -> None:
        """Both files; nothing that is saved is lost where one cannot be written."""
        try:
            progress.write(self._root)
            replace_file(self._root / SHARE, f"{progress.done_share:.6f}\n".encode())
        except OSError as error:
            _LOG.warning("the progress of step %d was not written: %s", progress.step, error)

    def _now(self, at_start: TrainingProgress) -> TrainingProgress:
        """The progress at the start with the time since then, and the speed once it is known."""
        now = at_start.after(time.monotonic() - self._began_s, self._usd_per_hour)
        if not self._timed_steps:
            return now
        step_s = round(self._timed_s / self._timed_steps, 6)
        return replace(now, step_s=step_s, planned_work_s=self._planned_work_s)

    def _time_steps(self, step: int, now: float) -> None:
        """Time steps without saves, but for the first of a start, which warms up.

        The first speed is written at once: whether the deadline can be kept depends on it.
        """
        first = self._timed_steps == 0
        if self._timed_steps is None:
            self._timed_steps, self._timed_s = 0, 0.0
        else:
            self._timed_steps += step - self._measured_step
            self._timed_s += now - self._measured_s
        self._measured_step, self._measured_s = step, now
        if first and self._at_start is not None and self._saved_s == self._began_s:
            self._write(self._now(self._at_start))

    def _checkpoint(self, step: int) -> str | None:
        return f"{self._name}-{step}" if step else None

    def _gap(self, step: int, now: float) -> int:
        """Steps until ranks ask again."""
        each_s = (now - self._measured_s) / max(1, step - self._measured_step)
        gap_s = min(AGREE_S, self.interval_s / 10) if self._ranks.count > 1 else 0.0
        return max(1, min(int(gap_s / max(each_s, 1e-6)), 10_000))

    def _own_action(self, now: float) -> SaveAction:
        if self._terminated:
            return SaveAction.STOP
        notice = self._notices.take() if self._notices is not None else None
        if notice is not None:
            _LOG.warning("%s: %s %s; saving", notice.provider, notice.action, notice.at)
            return SaveAction.SAVE_NOW
        due = self._ranks.rank == 0 and now - self._saved_s >= self.interval_s
        return SaveAction.SAVE if due else SaveAction.NOTHING

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        """Remember SIGTERM for the end of the step; a forked data loader just ends."""
        if os.getpid() != self._owner:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        self._terminated = True


def checkpoint_root(folder: str | Path | None) -> Path:
    """The given folder, or $CHECKPOINT_DIR.

    Raises:
        UsageError: neither is.
    """
    named = folder or os.environ.get("CHECKPOINT_DIR")
    if not named:
        raise UsageError("no folder for checkpoints: set CHECKPOINT_DIR, or pass folder=")
    return Path(named)


def _amount(what: str, variable: str, given: float | None) -> float | None:
    """A figure that is passed, or else that of the environment; None without either."""
    text = os.environ.get(variable)
    if given is None and not text:
        return None
    try:
        found = float(given if given is not None else text or "")
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise UsageError(f"{what} '{shown(given or text)}': give a number above 0")
    return found
