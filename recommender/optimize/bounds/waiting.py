"""Bounds of the share of time that spot capacity is up, and of how soon it can do a given work.

In zones of level z, of which one is up with chance u(z), out of `zone_count` zones that fail
together as `correlation` says, runs of mean M are followed by outages of mean M·(1 -
u)/u/zone_count if no other zone is up. By Wald's identity the expected share of any time in which a
path is up is

    a(z) <= max(1/(1 + (1 - u)/u·down/zone_count), 1 - (1 - u)·down)

whatever the length of the runs. By Markov's inequality the probability that it has done work W by t
is at most min(1, a(z)·t/W), and 0 before W. The mean over the common paths' zones and speeds is
known; that of their runs differs from its expectation by sampling, for which `errors` of a share
are allowed. So

    share of the work that spot does by t <= share(t/W)       also the share of paths done by t
    trimmed mean of the time              >= time·W

Clusters of several offers are up when all are: their availability is the product. For an elastic
cluster the budget bounds what its on-demand part can do, `on_demand_share` of the work at the
predicted speed; spot does the rest, except on paths that may exceed the budget.
"""

from functools import lru_cache

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.space import Entries, Space
from recommender.performance.clusters import multi_machine_spreads
from recommender.risk.laws import logistic
from recommender.risk.random_numbers import MAX_LISTED_ZONES, random_numbers, time_factors
from recommender.risk.run_statistics import ONE_IN

ERRORS = 2.5  # standard errors of a share of independent paths
LOGITS = np.arange(-8.0, 6.01, 0.4)  # availability of a middling zone; a larger one counts as 1
ON_DEMAND_GRID = 0.1  # of the share that on-demand machines may do within a budget
ZONE_SD_GRID, SIGMA_GRID, CORRELATION_GRID = 0.5, 0.1, 0.2
RATIOS = 0.5 * 1.12 ** np.arange(44.0)  # time over work, from a half to 65


@dataclass(frozen=True, slots=True)
class Waiting:
    """Bounds by availability; no cluster of the site is better."""

    share: Floats  # (logits + 1, ratios): most of the work done by so many times its length
    time: Floats  # (logits + 1,): least trimmed mean time over the work

    def share_of(self, log_up: Floats, ratio: Floats) -> Floats:
        """Largest share of the work done by spot by a time; `ratio` is the time over the work."""
        place = np.searchsorted(RATIOS, ratio * (1.0 - 1e-9))
        known = self.share[_logit_place(log_up), np.minimum(place, len(RATIOS) - 1)]
        return np.where(place < len(RATIOS), known, 1.0)

    def time_of(self, log_up: Floats) -> Floats:
        """Smallest trimmed mean time over the work as predicted."""
        return np.asarray(self.time[_logit_place(log_up)])


def _logit_place(log_up: Floats) -> Ints:
    """The next better availability of the grid; the last place stands for one that is always up."""
    up = np.exp(np.minimum(log_up, 0.0))
    logit = np.log(np.maximum(up, 1e-300) / np.maximum(1.0 - up, 1e-300))
    return np.asarray(np.searchsorted(LOGITS, logit - 1e-9), dtype=np.int64)


# Where nothing is known, or nothing asks: spot may do all of the work, as soon as it can be done.
UNBOUNDED = Waiting(np.ones((len(LOGITS) + 1, len(RATIOS))), np.ones(len(LOGITS) + 1))


def waiting_of(space: Space, laws: Entries, on_demand_share: float = 0.0) -> Waiting:
    """The bounds of clusters of several of these entries."""
    e = laws.take(laws.spot)
    if not len(e):
        return UNBOUNDED
    # A share is least and most at the ends of both spreads: what lies between is less than ERRORS.
    several = e.zone_count > 1.0
    correlation = float(e.correlation[several].min()) if several.any() else 0.0
    sigmas = multi_machine_spreads(space.columns, laws.kind)
    # Ends are put outwards on a grid, so that regions share their tables.
    levels = _ends(e.zone_sd, ZONE_SD_GRID)
    zones = (levels, float(e.zone_count.max()), _down(correlation, CORRELATION_GRID))
    on_demand_share = float(np.ceil(on_demand_share / ON_DEMAND_GRID) * ON_DEMAND_GRID)
    missed = 1.0 - space.limits.confidence if on_demand_share > 0.0 else 0.0
    spreads = _ends(sigmas, SIGMA_GRID)
    return _tables(space.cache.path_count, space.seed, zones, spreads, on_demand_share, missed)


def _ends(values: Floats, grid: float) -> tuple[float, ...]:
    """The least and the largest of some values, put outwards on a grid."""
    low, high = _down(float(values.min()), grid), -_down(-float(values.max()), grid)
    return (low,) if low == high else (low, high)


def _down(value: float, grid: float) -> float:
    """The next point of a grid at or below a value."""
    return round(float(np.floor(value / grid + 1e-9)) * grid, 9)


@lru_cache(maxsize=64)
def _tables(
    paths: int,
    seed: int,
    zones: tuple[tuple[float, ...], float, float],
    sigmas: tuple[float, ...],
    on_demand_share: float,
    missed: float,
) -> Waiting:
    sample = random_numbers(paths, 8, seed)
    shares, times = [], []
    for sigma in sigmas:
        slow = time_factors(sigma, sample.speed)
        for zone_sd in zones[0]:
            up = _up_shares(paths, seed, zone_sd, *zones[1:])
            share, time = _of_paths(up, slow, on_demand_share, missed)
            shares.append(share)
            times.append(time)
    return Waiting(np.max(shares, axis=0), np.min(times, axis=0))


@lru_cache(maxsize=16)
def _up_shares(
    paths: int, seed: int, zone_sd: float, zone_count: float, correlation: float
) -> Floats:
    """Most of the time that each path is up in the mean; (logits + 1, paths)."""
    sample = random_numbers(paths, 8, seed)
    level = LOGITS[:, None]
    up = logistic(level + zone_sd * sample.zone_at(0))
    down = np.ones_like(up)
    for site in range(1, min(MAX_LISTED_ZONES, int(zone_count))):
        other = logistic(level + zone_sd * sample.zone_at(site))
        down *= 1.0 - other * (1.0 - correlation)
    later = 1.0 / (1.0 + (1.0 - up) / up * down / zone_count)
    return np.append(np.maximum(later, 1.0 - (1.0 - up) * down), np.ones((1, paths)), axis=0)


def _of_paths(
    up: Floats, slow: Floats, on_demand_share: float, missed: float
) -> tuple[Floats, Floats]:
    """The share by each ratio of time to work, and the trimmed mean time; by logit."""
    count, order = len(slow), np.argsort(slow)
    up, slow = up[:, order], slow[order]
    share, done = np.empty((len(up), len(RATIOS))), np.empty((len(up), len(RATIOS)))
    pace = (up / slow).astype(np.float32)
    rest = (
        (up / np.maximum(slow - on_demand_share, 1e-9)).astype(np.float32)
        if on_demand_share > 0.0
        else pace
    )
    early = np.searchsorted(slow, RATIOS, side="right").tolist()
    for place, (ratio, some) in enumerate(zip(RATIOS.astype(np.float32), early, strict=True)):
        part = np.minimum(pace * ratio, np.float32(1.0))
        share[:, place] = part.mean(axis=1)
        if on_demand_share > 0.0:
            part = np.minimum(rest[:, :some] * ratio, np.float32(1.0))
        over = part[:, :some].sum(axis=1) / count
        done[:, place] = np.minimum(over + missed, some / count)
    return _raised(share, count), _min_trimmed(_raised(done, count), slow)


def _raised(share: Floats, count: int) -> Floats:
    """Shares of paths with what sampling may add to them."""
    error = ERRORS * np.sqrt(share * (1.0 - share) / count) + 1.0 / count
    return np.where(share < 1e-12, 0.0, np.minimum(share + error, 1.0))


def _min_trimmed(done: Floats, slow: Floats) -> Floats:
    """Trimmed mean of times of which at most a share `done` is over by each ratio; (logits,)."""
    count = len(slow)
    out = count // ONE_IN
    ranks = np.arange(out, count - out)
    # The path of rank i is over at the first ratio by which more than i paths may be; below the
    # first ratio and between two of them it may be a ratio earlier.
    over = np.stack([np.searchsorted(row, ranks + 1.0 - 1e-9) for row in np.sort(done * count)])
    earlier = np.concatenate([[0.0], RATIOS])[np.minimum(over, len(RATIOS))]
    return np.asarray(np.maximum(earlier, slow[ranks]).mean(axis=1))
