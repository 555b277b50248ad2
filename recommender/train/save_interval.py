"""The checkpoint interval, from the cost of saves and the frequency of interruptions.

The interval τ that makes most progress per run of capacity, as the plan counts it
(`recommender/performance/checkpoint.py`), for exponential runs of mean M and a save that stops the
training for C: a(τ) = τ·Σ_{j≥1} P(X > j(τ+C)) is largest where

    τ = M·(1 - exp(-(τ+C)/M)),    about sqrt(2·C·M)

J. W. Young, Communications of the ACM 17 (1974); J. T. Daly, Future Generation Computer Systems 22
(2006). M is the time between interruptions of this training so far, with one run of the length that
is assumed before any was seen (a gamma prior of one interruption).
"""

import math

from recommender.catalogs.frozen import dataclass

ASSUMED_RUN_S = 4 * 3600.0  # of spot capacity, before this training has seen its own; assumed
SHORTEST_S = 60.0  # as the plan's: no training script is run with less
_HALVINGS = 60


def best_interval_s(stall_s: float, run_s: float) -> float:
    """The τ of most progress per run: τ = M·(1 - exp(-(τ+C)/M)), by bisection."""
    low, high = 0.0, run_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = middle + run_s * math.expm1(-(middle + stall_s) / run_s) > 0
        low, high = (low, middle) if beyond else (middle, high)
    return high


def mean_run_s(uptime_s: float, interruptions: int) -> float:
    """Mean time between interruptions so far, including one assumed run."""
    return (ASSUMED_RUN_S + uptime_s) / (1 + interruptions)


@dataclass(frozen=True, slots=True)
class SaveTimes:
    """Measured durations of saves; the newest counts as much as all earlier ones."""

    stall_s: float  # training stops: the copy to memory
    write_s: float  # until the checkpoint is complete

    def then(self, newer: "SaveTimes") -> "SaveTimes":
        """The mean of these and a newer save."""
        return SaveTimes(
            (self.stall_s + newer.stall_s) / 2,
            (self.write_s + newer.write_s) / 2,
        )


def next_interval_s(times: SaveTimes, run_s: float, shortest_s: float) -> float:
    """The interval for runs of that mean; at least the duration of a save."""
    return max(best_interval_s(times.stall_s, run_s), times.write_s, shortest_s)
