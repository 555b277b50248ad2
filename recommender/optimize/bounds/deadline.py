"""Bounds under a deadline: the shortest start-up, and the most paths that could finish in time.

With d the changeover, W the work as predicted, z the path's speed and v >= 1 how much faster a
fallback is, a path takes

    time >= queue + d + W·exp(σz)                              on the cluster alone
    time >= queue + start + its queue + W·exp(σz)/v            if a fallback takes over

where queues are the waits for on-demand machines (`risk/on_demand_wait.py`), which are longest on
the same paths for every cluster. Both times grow with z. Paths are grouped by supply, with the
shortest wait of each group, and a binary search counts those that could be in time.
"""

from functools import lru_cache

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import RENDEZVOUS_S, RESERVE_S
from recommender.optimize.space import Site, Space
from recommender.performance.checkpoint import CHIEF_STREAM, write_s
from recommender.performance.checkpoint_transfer import network_share
from recommender.risk.on_demand_wait import OnDemandLaw, wait_s
from recommender.risk.random_numbers import random_numbers, time_factors
from recommender.risk.run_statistics import ONE_IN

# Shares of the paths, shortest of machines first, between groups: waits differ most at the first.
GROUP_EDGES = (0.025, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True)
class FallbackStart:
    """Lower bounds of any fallback's time before it trains."""

    seconds: float
    usd_seconds: float  # times 3,600 s


def min_fallback_start(sites: tuple[Site, ...]) -> FallbackStart:
    """Boot and rendezvous of the fastest fallback, and of the one that starts cheapest."""
    start_s, usd = [np.inf], [np.inf]
    for fallbacks in {site.provider: site.fallbacks for site in sites}.values():
        seconds = fallbacks.boot_s + RENDEZVOUS_S  # regions of a provider share theirs
        start_s.append(float(seconds.min(initial=np.inf)))
        usd.append(float((seconds * fallbacks.usd_per_hour).min(initial=np.inf)))
    return FallbackStart(min(start_s), min(usd))


def max_reserve_s(space: Space) -> float:
    """An upper bound of the reserve of any plan, besides the time to finish on its fallback."""
    laws = [site.fallbacks.law for site in space.sites if len(site.fallbacks)]
    if not laws:
        return max_reserve_without_wait_s(space)
    every = OnDemandLaw(
        np.concatenate([law.at_once for law in laws]), np.concatenate([law.wait_s for law in laws])
    )
    longest_s = float(every.reserve_s(space.limits.confidence).max())
    return max_reserve_without_wait_s(space) + longest_s


def max_reserve_without_wait_s(space: Space) -> float:
    """The part of this bound that is not the wait for the fallback's machines.

    A save stops training for at most its copy and its transfer; each is faster than this.
    """
    columns = space.columns
    rates = np.append(network_share(columns.network_bytes_per_s), columns.disk_bytes_per_s)
    slowest = min(float(rates[rates > 0].min(initial=np.inf)), CHIEF_STREAM.bytes_per_s)
    tensors = space.job.gradient_tensors
    return RESERVE_S + float(
        write_s(CHIEF_STREAM, 2.0 * space.job.checkpoint_bytes, tensors, slowest)
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """One way to finish a job: its work, start-up and queue; shape (clusters,), seconds.

    The queue is given by its probability of being zero and its median otherwise.
    """

    work_s: Floats
    start_s: Floats
    at_once: Floats
    wait_s: Floats

    def take(self, rows: Ints) -> "Completion":
        """The values of some clusters."""
        return Completion(*(getattr(self, name)[rows] for name in Completion.__slots__))

    def queue_s(self, supply: float) -> Floats:
        """The queue of each cluster on a path with that supply."""
        return wait_s(self.at_once, self.wait_s, np.array(supply))

    def latest(self, sigma: Floats, due_s: Floats | float) -> Floats:
        """The largest z with which the job is done by `due_s`; -inf if none is."""
        left = due_s - self.start_s
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(left, 0.0) / np.maximum(self.work_s, 1e-9)) / sigma


def max_paths_in_time(
    paths: int,
    seed: int,
    sigma: Floats,
    due_s: float,
    own: Completion,
    fallback: Completion | None = None,
) -> Ints:
    """The largest number of paths on which each cluster could meet the deadline; (clusters,).

    `fallback` is the one that may take over, with infinite work if none may.
    """
    sample = random_numbers(paths, 8, seed)
    count = np.full(len(sigma), paths, dtype=np.int64)
    slowest = own.work_s * time_factors(sigma, sample.speed.max())
    slowest += own.start_s + own.queue_s(float(sample.supply.min()))
    open_ = np.flatnonzero(slowest > due_s)  # most are soon enough
    if not len(open_):
        return count
    own, sigma = own.take(open_), np.maximum(sigma[open_], 1e-9)
    fallback = _none(len(open_)) if fallback is None else fallback.take(open_)
    found = np.zeros(len(open_), dtype=np.int64)
    queues = bool(np.any(own.at_once < 1.0) or np.any(fallback.at_once < 1.0))
    for supply, z in _speeds(paths, seed, GROUP_EDGES if queues else ()):
        left_s = due_s - own.queue_s(supply)
        there = fallback.latest(sigma, left_s - fallback.queue_s(supply))
        best = np.maximum(own.latest(sigma, left_s), there)
        found += np.searchsorted(z, best, side="right")
    count[open_] = found
    return count


def _none(clusters: int) -> Completion:
    """No fallback for any cluster."""
    never, at_once = np.full(clusters, np.inf), np.ones(clusters)
    return Completion(never, never, at_once, np.zeros(clusters))


@lru_cache(maxsize=8)
def _speeds(paths: int, seed: int, edges: tuple[float, ...]) -> tuple[tuple[float, Floats], ...]:
    """Paths of like supply: the most that one of them has, and their sorted speeds."""
    sample = random_numbers(paths, 8, seed)
    alike = np.split(np.argsort(sample.supply), [round(paths * edge) for edge in edges])
    return tuple(
        (float(sample.supply[rows].max()), np.sort(sample.speed[rows]))
        for rows in alike
        if len(rows)
    )


def min_queue_s(paths: int, seed: int, at_once: Floats, median_s: Floats, most_s: Floats) -> Floats:
    """Trimmed mean over the paths of the queue for a fallback, capped at `most_s` on each path.

    Shape (clusters,). With the queues sorted and their sums, each cluster is one look-up.
    """
    found = np.zeros(len(most_s))
    for law in set(zip(at_once.tolist(), median_s.tolist(), strict=True)):
        rows = np.flatnonzero((at_once == law[0]) & (median_s == law[1]))
        queues, sums = _queues(paths, seed, *law)
        below = np.searchsorted(queues, most_s[rows])
        rest = np.where(below < len(queues), len(queues) - below, 0) * most_s[rows]
        found[rows] = (sums[below] + rest) / len(queues)
    return found


@lru_cache(maxsize=64)
def _queues(paths: int, seed: int, at_once: float, median_s: float) -> tuple[Floats, Floats]:
    """Queues of the middle nine tenths of the paths, shortest first, and the sums of the first."""
    supply = random_numbers(paths, 8, seed).supply
    queues = np.sort(wait_s(np.array(at_once), np.array(median_s), supply))
    queues = queues[paths // ONE_IN : paths - paths // ONE_IN]
    return queues, np.append(0.0, np.cumsum(queues))
