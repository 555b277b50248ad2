"""How long to train between two saves, from what saves cost and how often runs end.

The interval τ that makes most progress per run of capacity, as the plan counts it
(`recommender/performance/checkpoint.py`), for exponential runs of mean M and a save that stops the
training for C: a(τ) = τ·Σ_{j≥1} P(X > j(τ+C)) is largest where

    τ = M·(1 - exp(-(τ+C)/M)),    about sqrt(2·C·M)

J. W. Young, Communications of the ACM 17 (1974); J. T. Daly, Future Generation Computer Systems 22
(2006). M is the time between interruptions of this training so far, with one run of the length that
is assumed before any was seen (a gamma prior of one interruption).
"""

import json
import math
from pathlib import Path

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass

ASSUMED_RUN_S = 4 * 3600.0  # of spot capacity, before this training has seen its own; assumed
SHORTEST_S = 60.0  # as the plan's: no training script is run with less
_HALVINGS = 60
_FILE = "runs.json"


def best_interval_s(stall_s: float, mean_run_s: float) -> float:
    """The τ of most progress per run: τ = M·(1 - exp(-(τ+C)/M)), by bisection."""
    low, high = 0.0, mean_run_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = middle + mean_run_s * math.expm1(-(middle + stall_s) / mean_run_s) > 0
        low, high = (low, middle) if beyond else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class RunHistory:
    """How long this training ran so far, and how often it was interrupted."""

    uptime_s: float = 0.0
    interruptions: int = 0

    @property
    def mean_run_s(self) -> float:
        """Mean time between interruptions, one assumed run counted in."""
        return (ASSUMED_RUN_S + self.uptime_s) / (1 + self.interruptions)

    def after(self, uptime_s: float) -> "RunHistory":
        """This history with more time in which nothing happened."""
        return RunHistory(self.uptime_s + uptime_s, self.interruptions)

    def write(self, folder: Path) -> None:
        """Keep the history next to the checkpoints."""
        kept = {"uptime_s": round(self.uptime_s, 3), "interruptions": self.interruptions}
        replace_file(folder / _FILE, json.dumps(kept).encode())


def history_at_start(folder: Path) -> RunHistory:
    """What earlier runs left, with the interruption that ended them; none at the first start."""
    try:
        kept = json.loads((folder / _FILE).read_bytes())
        return RunHistory(float(kept["uptime_s"]), int(kept["interruptions"]) + 1)
    except (OSError, ValueError, TypeError, KeyError):
        return RunHistory()


@dataclass(frozen=True, slots=True)
class SaveTimes:
    """What saves were measured to take; newer ones count as much as all before them."""

    stall_s: float  # training stands still: the copy to memory
    write_s: float  # until the checkpoint is complete

    def then(self, newer: "SaveTimes") -> "SaveTimes":
        """The mean of these and a newer save."""
        return SaveTimes(
            (self.stall_s + newer.stall_s) / 2,
            (self.write_s + newer.write_s) / 2,
        )


def next_interval_s(times: SaveTimes, history: RunHistory, shortest_s: float) -> float:
    """The interval by now; no shorter than a save takes, for they do not overlap."""
    best = best_interval_s(times.stall_s, history.mean_run_s)
    return max(best, times.write_s, shortest_s)
