"""Bounds under a deadline: the least start-up, and the most paths that could end in time.

With d the changeover, W the work as predicted, z the path's speed and v >= 1 how much faster a
fallback is, a path lasts

    time >= queue + d + W·exp(σz)                              on the cluster alone
    time >= queue + start + its queue + W·exp(σz)/v            where a fallback takes over

and queues where its machines are not there at once. Both grow with z, so a binary search over the
common paths that queue for neither, for one and for both counts those that could be in time.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import RENDEZVOUS_S, RESERVE_S
from recommender.optimize.space import Site, Space
from recommender.performance.checkpoint import CHIEF_STREAM, object_store_rate, write_s
from recommender.risk.random_numbers import random_numbers, time_factors


@dataclass(frozen=True, slots=True)
class FallbackStart:
    """The least that any fallback takes before it trains."""

    seconds: float
    usd_seconds: float  # times 3,600 s


def least_fallback_start(sites: tuple[Site, ...]) -> FallbackStart:
    """Boot and rendezvous of the quickest fallback, and of the one that starts for the least."""
    start_s, usd = [np.inf], [np.inf]
    for fallbacks in {id(site.fallbacks): site.fallbacks for site in sites}.values():
        seconds = fallbacks.boot_s + RENDEZVOUS_S  # regions of a provider share theirs
        start_s.append(float(seconds.min(initial=np.inf)))
        usd.append(float((seconds * fallbacks.usd_per_hour).min(initial=np.inf)))
    return FallbackStart(min(start_s), min(usd))


def max_reserve_s(space: Space) -> float:
    """More than any plan keeps in hand besides the time to finish on its fallback.

    A save stops training for its copy and its transfer at most; each is quicker than this.
    """
    columns = space.columns
    rates = np.append(object_store_rate(columns.network_bytes_per_s), columns.disk_bytes_per_s)
    slowest = min(float(rates[rates > 0].min(initial=np.inf)), CHIEF_STREAM.bytes_per_s)
    tensors = space.job.gradient_tensors
    save = float(write_s(CHIEF_STREAM, 2.0 * space.job.checkpoint_bytes, tensors, slowest))
    waits = [float(site.fallbacks.wait_s.max(initial=0.0)) for site in space.sites]
    return RESERVE_S + save + max(waits, default=0.0)


@dataclass(frozen=True, slots=True)
class Completion:
    """A way to the end of a job: its work, its start, and its queue; shape (clusters,), seconds."""

    work_s: Floats
    start_s: Floats
    at_once: Floats
    wait_s: Floats

    def take(self, rows: Ints) -> "Completion":
        """The ways of some clusters."""
        return Completion(*(getattr(self, name)[rows] for name in Completion.__slots__))

    def latest(self, sigma: Floats, due_s: Floats | float, queues: bool) -> Floats:
        """The largest z with which the job is done by `due_s`; -inf if none is."""
        left = due_s - self.start_s - (self.wait_s if queues else 0.0)
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
    """Of each cluster, how many paths could meet the deadline at most; (clusters,).

    `fallback` is the one that may take over, with infinite work where none may.
    """
    count = np.full(len(sigma), paths, dtype=np.int64)
    slowest = own.work_s * time_factors(sigma, random_numbers(paths, 8, seed).speed.max())
    open_ = np.flatnonzero(slowest + own.start_s + own.wait_s > due_s)  # most are soon enough
    if not len(open_):
        return count
    own, sigma = own.take(open_), np.maximum(sigma[open_], 1e-9)
    fallback = (
        Completion(*np.full((4, len(open_)), np.inf)) if fallback is None else fallback.take(open_)
    )
    found = np.zeros(len(open_), dtype=np.int64)
    for at_once, at_once_there, rows in _kinds(own.at_once, fallback.at_once):
        mine, other, spread = own.take(rows), fallback.take(rows), sigma[rows]
        for queues, queues_there in product((False, True), repeat=2):
            z = _speeds(paths, seed, at_once, at_once_there, queues, queues_there)
            if len(z):
                after_s = due_s - (mine.wait_s if queues else 0.0)
                there = other.latest(spread, after_s, queues_there)
                best = np.maximum(mine.latest(spread, due_s, queues), there)
                found[rows] += np.searchsorted(z, best, side="right")
    count[open_] = found
    return count


def _kinds(own: Floats, fallback: Floats) -> Iterator[tuple[float, float, Ints]]:
    """The clusters of each pair of chances: there are few pairs."""
    left = np.arange(len(own))
    while len(left):
        pair = float(own[left[0]]), float(fallback[left[0]])
        same = (own[left] == pair[0]) & (fallback[left] == pair[1])
        yield *pair, left[same]
        left = left[~same]


@lru_cache(maxsize=256)
def _speeds(
    paths: int, seed: int, own: float, fallback: float, queues: bool, queues_there: bool
) -> Floats:
    """Speeds of the paths that queue, or do not, for a cluster and its fallback; sorted."""
    sample = random_numbers(paths, 8, seed)
    here = (sample.on_demand >= own) == queues
    there = (sample.on_demand >= fallback) == queues_there
    return np.sort(sample.speed[here & there])
