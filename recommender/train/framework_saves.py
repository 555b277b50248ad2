"""Checkpoints that a framework writes itself: when to save, and which are complete.

The callbacks for Transformers and Lightning are of this kind. The training waits while the
framework writes; a thread then computes the checksums of what lies there and writes the manifest,
without which a checkpoint does not count.
"""

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from recommender.train.checkpoint_folder import CheckpointFolder, sums_within
from recommender.train.notices import NoticeWatch
from recommender.train.patience import patiently
from recommender.train.ranks import OneProcess, Ranks, ranks_of_this_run
from recommender.train.restore import newest_intact
from recommender.train.save_interval import SHORTEST_S, SaveTimes
from recommender.train.save_schedule import TERMINATED, SaveAction, SaveSchedule, checkpoint_root

_LOG = logging.getLogger("recommender.train")


class FrameworkSaves:
    """The schedule and the manifests of checkpoints in folders `NAME-STEP`.

    Arguments are those of `Checkpointer`; a class whose `keep` is 0 leaves the removal of old
    checkpoints to the framework.

    Raises:
        UsageError: no folder is named, or a figure is no positive number.
    """

    name, keep = "step", 2

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        interval_s: float | None = None,
        shortest_interval_s: float = SHORTEST_S,
        notices: NoticeWatch | None = None,
        usd_per_hour: float | None = None,
    ) -> None:
        super().__init__()
        root = checkpoint_root(folder)
        self.checkpoints = CheckpointFolder(root, self.keep, self.name)
        self.schedule = SaveSchedule(
            root,
            self.name,
            interval_s=interval_s,
            shortest_interval_s=shortest_interval_s,
            notices=notices,
            usd_per_hour=usd_per_hour,
        )
        self._ranks: Ranks = OneProcess()
        self._sealer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._sealing: Future[SaveTimes] | None = None
        self._action, self._saved_step = SaveAction.NOTHING, 0

    def newest(self) -> Path | None:
        """The newest checkpoint whose files match its manifest.

        Raises:
            OSError: it cannot be read; nothing was removed.
        """
        self.checkpoints.root.mkdir(parents=True, exist_ok=True)
        found, _ = newest_intact(self.checkpoints, OneProcess())
        return None if found is None else found.folder

    def begin(self, step: int, total_steps: int) -> None:
        """Start the clock, and listen for SIGTERM and notices."""
        self._ranks, self._saved_step = ranks_of_this_run(), step
        if self._ranks.rank == 0:
            self.checkpoints.root.mkdir(parents=True, exist_ok=True)
        self._ranks.gather(None)
        self.schedule.__enter__()
        self.schedule.begin(step, total_steps, self._ranks)

    def is_due(self, step: int, last: bool) -> bool:
        """Whether the framework should save now; always at the last step."""
        sealing = self._sealing is not None and not self._sealing.done()
        self._action = self.schedule.action(step, sealing)
        return (last or self._action != SaveAction.NOTHING) and step != self._saved_step

    def prepare(self, step: int) -> Path:
        """The empty folder of a step that the framework is about to write."""
        self._wait()
        if self._ranks.rank == 0:
            self.checkpoints.begin(step)
        return self.checkpoints.path(step)

    def saved(self, step: int, began_s: float) -> None:
        """Report that every rank has written all files of a step, begun at that moment.

        Raises:
            SystemExit: SIGTERM came; this step is saved.
        """
        self._ranks.gather(None)
        self._wait()
        self._saved_step = step
        self.schedule.saved()
        if self._ranks.rank == 0:
            stall_s = time.monotonic() - began_s
            self._sealing = self._sealer.submit(self._seal, step, stall_s)
        if self._action == SaveAction.STOP:
            self.end()
            _LOG.warning("SIGTERM: step %d ends the training", step)
            raise SystemExit(TERMINATED)

    def end(self) -> None:
        """Wait until the last checkpoint is complete, and stop listening."""
        self._wait()
        self._sealer.shutdown()
        self._ranks.gather(None)
        self.schedule.__exit__(None, None, None)

    def _seal(self, step: int, stall_s: float) -> SaveTimes:
        """In the thread of rank 0."""
        began = time.monotonic()
        sums = patiently(partial(sums_within, self.checkpoints.path(step)))
        make = self.checkpoints.complete if self.keep else self.checkpoints.seal
        patiently(partial(make, step, sums))
        self.schedule.complete(step)
        return SaveTimes(stall_s, stall_s + time.monotonic() - began)

    def _wait(self) -> None:
        if self._sealing is None:
            return
        sealing, self._sealing = self._sealing, None
        try:
            self.schedule.learn(sealing.result())
        except OSError as error:
            _LOG.error("a checkpoint does not count: %s", error)
