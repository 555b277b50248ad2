"""The progress of a training, in a file for `recommend replan` and the next start.

    CHECKPOINT_DIR/progress.json
        {"schema": "recommend.progress.v1", "step": 400, "total_steps": 1000, "done_share": 0.4,
         "checkpoint": "step-400", "began_at": "2026-11-23T08:00:00+00:00",
         "at": "2026-11-23T17:00:00+00:00", "elapsed_s": 32400.0, "uptime_s": 30600.0,
         "waited_s": 1800.0, "interruptions": 1, "interval_s": 600.0, "spent_usd": 61.2,
         "step_s": 28.8, "planned_work_s": 25200.0}

It is written at each start, once steps have been timed, and after each complete checkpoint, in one
step. `step_s` is measured on the machines for which `planned_work_s` (of all steps) was estimated:
so it is known how much slower than planned the job is on any machines. `done_share` and
`elapsed_s` are said for people; they follow from the other fields. Wall clocks differ between
machines and jump: while the training runs a monotonic clock counts, and from the last file of one
start to the next start (`waited_s`) that of the disk, which outlives machines. What is counted as
spent are the hours in which the training ran: machines that start, wait or end are known to the
bill alone.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from recommender.catalogs.bounds import read_at_most
from recommender.catalogs.files import parse_json, replace_file
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.text import shown_path
from recommender.train.patience import patiently

SCHEMA = "recommend.progress.v1"
FILE = "progress.json"
_MAX_BYTES = 1_000_000  # one has 300
_INVALID = (ValueError, OverflowError, TypeError, KeyError)
_LOG = logging.getLogger("recommender.train")


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """A training at its last complete checkpoint or its last start."""

    step: int  # steps that are safe in a complete checkpoint
    total_steps: int
    began_at: datetime  # the first start of all
    at: datetime  # when this was written
    uptime_s: float = 0.0  # the training ran, all starts together
    waited_s: float = 0.0  # between the last file of a start and the next start, all together
    interruptions: int = 0
    checkpoint: str | None = None  # the folder of the last complete one, next to the file
    interval_s: float | None = None  # between two saves, by now
    spent_usd: float | None = None  # while it ran; None where no price per hour was given
    step_s: float | None = None  # without saves, as measured
    planned_work_s: float | None = None  # of all steps, on the machines that they were timed on

    @property
    def done_share(self) -> float:
        """The share of the work that is saved."""
        return self.step / self.total_steps

    @property
    def elapsed_s(self) -> float:
        """From the first start until this was written."""
        return self.uptime_s + self.waited_s

    def elapsed_s_until(self, now: datetime) -> float:
        """Seconds from the first start until a moment; clocks set back count as zero."""
        return self.elapsed_s + max(0.0, (now - self.at).total_seconds())

    def after(self, uptime_s: float, usd_per_hour: float | None) -> "TrainingProgress":
        """The progress after so many more seconds of running, at a price."""
        spent = None
        if self.spent_usd is not None and usd_per_hour is not None:
            spent = self.spent_usd + usd_per_hour * uptime_s / 3600
        return replace(self, at=_now(), uptime_s=self.uptime_s + uptime_s, spent_usd=spent)

    def write(self, folder: Path) -> None:
        """Replace the file of a folder."""
        values = {
            "schema": SCHEMA,
            "step": self.step,
            "total_steps": self.total_steps,
            "done_share": round(self.done_share, 6),
            "checkpoint": self.checkpoint,
            "began_at": self.began_at.isoformat(),
            "at": self.at.isoformat(),
            "elapsed_s": round(self.elapsed_s, 3),
            "uptime_s": round(self.uptime_s, 3),
            "waited_s": round(self.waited_s, 3),
            "interruptions": self.interruptions,
            "interval_s": self.interval_s,
            "spent_usd": None if self.spent_usd is None else round(self.spent_usd, 6),
            "step_s": self.step_s,
            "planned_work_s": self.planned_work_s,
        }
        replace_file(folder / FILE, f"{json.dumps(values, indent=1)}\n".encode())


def read_progress(path: Path) -> TrainingProgress:
    """Read a progress file.

    Raises:
        UsageError: it is missing, or no progress file.
    """
    try:
        return _progress(parse_json(read_at_most(path, _MAX_BYTES)))
    except (OSError, *_INVALID) as error:
        raise UsageError(
            f"progress file {shown_path(path)}: {error}: give the progress.json that the "
            "checkpoint helper writes into CHECKPOINT_DIR"
        ) from error


def progress_at_start(
    folder: Path, total_steps: int, step: int, checkpoint: str | None, usd_per_hour: float | None
) -> TrainingProgress:
    """The progress of earlier starts plus their last interruption; new at the first.

    Raises:
        OSError: it cannot be read.
    """
    now, path = _now(), folder / FILE
    before = None
    if FILE in patiently(partial(os.listdir, folder)):  # what is named there is there
        content = patiently(path.read_bytes)
        try:
            before = _progress(parse_json(content))
        except _INVALID as error:
            _LOG.warning("%s is no progress file (%s): counted from now", path, error)
    if before is None:
        spent = None if usd_per_hour is None else 0.0
        return TrainingProgress(step, total_steps, now, now, checkpoint=checkpoint, spent_usd=spent)
    interruptions = before.interruptions + int(before.step < before.total_steps)
    return replace(
        before,
        step=step,
        total_steps=total_steps,
        checkpoint=checkpoint,
        at=now,
        waited_s=before.waited_s + patiently(partial(_age_s, path)),
        interruptions=interruptions,
    )


def _progress(values: Mapping[str, Any]) -> TrainingProgress:
    if values["schema"] != SCHEMA:
        raise ValueError(f"schema {values['schema']!r} is not {SCHEMA}")
    began_at, at, uptime_s = _moment(values["began_at"]), _moment(values["at"]), values["uptime_s"]
    waited_s = (at - began_at).total_seconds() - float(uptime_s)  # files before 2026-11-29
    found = TrainingProgress(
        step=int(values["step"]),
        total_steps=int(values["total_steps"]),
        began_at=began_at,
        at=at,
        uptime_s=float(uptime_s),
        waited_s=float(values.get("waited_s", max(0.0, waited_s))),
        interruptions=int(values["interruptions"]),
        checkpoint=None if values["checkpoint"] is None else str(values["checkpoint"]),
        interval_s=_perhaps(values["interval_s"]),
        spent_usd=_perhaps(values["spent_usd"]),
        step_s=_perhaps(values.get("step_s")),  # from here on: not in files of before 2026-12
        planned_work_s=_perhaps(values.get("planned_work_s")),
    )
    if not 0 <= found.step <= found.total_steps or found.total_steps < 1:
        raise ValueError(f"step {found.step} of {found.total_steps}")
    if not (0 <= found.uptime_s < float("inf") and 0 <= found.waited_s < float("inf")):
        raise ValueError(f"ran {found.uptime_s} s and waited {found.waited_s} s")
    if found.interruptions < 0:
        raise ValueError(f"{found.interruptions} interruptions")
    return found


def _age_s(path: Path) -> float:
    """Seconds since a file was written, by the clock of its disk."""
    written_s = path.stat().st_mtime
    os.utime(path)
    return max(0.0, path.stat().st_mtime - written_s)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"moment {text!r} has no zone")
    return moment


def _perhaps(value: Any) -> float | None:
    found = None if value is None else float(value)
    if found is not None and not 0 <= found < float("inf"):
        raise ValueError(f"{found} is no amount")
    return found


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
