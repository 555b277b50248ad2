"""Lower bounds of the spot time charged per second of work, tabulated from the run law.

S(W) is the expected spot time charged for work W if only changeovers are lost (saves are free and
immediate) and the job may at any moment be handed to a fallback that costs `HANDOVER_RATIO` times
as much per unit of work. It depends only on the run law, the changeover and the billing rule, not
on zones or outages, and it falls when runs get longer or changeovers shorter, so one machine's law
bounds every gang with it. If early interruptions are free, shorter runs are also charged less. S is
tabulated over W, once per law.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import random_numbers
from recommender.risk.run_statistics import checkpoint_overhead

HANDOVER_RATIO = 1.5
FIRST_S, RATIO = 56.25, 2.0  # the grid of W: 1 min, ... 15 min, 30 min, 1 h, ...
POINTS = 12  # ... up to 32 h
MARGIN = 0.98  # S/W bends between grid points, and its sampling error is not quite monotone
BEYOND = 0.97  # the same for longer work, where S/W is flat
CHANGEOVER_GRID_S = 120.0
# What a path pays is not quite monotone in its runs and losses: ranks and share that may be lost.
RANK_SHARE, COUNTED = 0.95, 0.9
OVERHEAD_MARGIN = 0.95  # the overhead bends between grid points
COUNTED_POINTS = 10  # of the grid of W: up to 8 h; of longer work runs pay more alike
RUN_GRID = 1.6  # runs are taken up to this factor longer, to share tables
MAX_TABULATED = 20_000  # figures kept of a table
Point = tuple[float, ...]  # a law and a work, the arguments of one figure of a table
Table = dict[tuple[int, int, Point], float]  # by paths and seed too
# Caches as `lru_cache` makes, but of figures that are computed many at once.
_RATIOS: Table = {}
_OVERHEADS: Table = {}


def min_spot_time_ratio(
    paths: int,
    seed: int,
    run_mean_s: Floats,
    run_sigma: Floats,
    free_s: Floats,
    changeover_s: Floats,
    work_s: Floats,
) -> Floats:
    """Smallest spot time charged per second of work; all arguments (clusters,)."""
    power, away, point = grid_of(run_mean_s, changeover_s, work_s)
    keys = np.stack([power, run_sigma, free_s, away, point], axis=1)
    unique, where = np.unique(keys, axis=0, return_inverse=True)
    corners = [_corners(*map(float, key)) for key in unique]
    ratios = _tabulated(_RATIOS, _spot_time_ratios, paths, seed, chain(*corners))
    least = [min(ratios[corner] for corner in each) for each in corners]
    longest = FIRST_S * RATIO ** (POINTS - 1)
    tabled = np.where(work_s <= longest, MARGIN, BEYOND) * np.array(least)[where.ravel()]
    return np.where(work_s >= FIRST_S, tabled, np.minimum(free_s < 61, 1.0))


def grid_of(
    run_mean_s: Floats, changeover_s: Floats, work_s: Floats
) -> tuple[Floats, Floats, Ints]:
    """Places on the grids, rounded to longer runs, shorter changeovers and less work."""
    power = np.ceil(np.log(run_mean_s) / np.log(RUN_GRID) - 1e-9)
    away = np.floor(changeover_s / CHANGEOVER_GRID_S) * CHANGEOVER_GRID_S
    place = np.log(np.maximum(work_s, FIRST_S) / FIRST_S) / np.log(RATIO)
    return power, away, np.clip(np.floor(place), 0, POINTS - 2).astype(np.int64)


def _tabulated(
    table: Table,
    compute: Callable[[int, int, Sequence[Point]], Floats],
    paths: int,
    seed: int,
    points: Iterable[Point],
) -> dict[Point, float]:
    """Figures of a table; new ones are computed together, which takes a tenth of the time."""
    every = list(dict.fromkeys(points))
    new = [point for point in every if (paths, seed, point) not in table]
    if len(table) + len(new) > MAX_TABULATED:
        table.clear()
        new = every
    if new:
        found = compute(paths, seed, new).tolist()
        table.update(((paths, seed, point), each) for point, each in zip(new, found, strict=True))
    return {point: table[paths, seed, point] for point in every}


def _corners(
    power: float, run_sigma: float, free_s: float, changeover_s: float, point: float
) -> list[Point]:
    """What lies around a law and a work; longer runs lose less, but more of them is charged."""
    powers = (power, power - 1.0) if free_s > 0.0 else (power,)
    return [(p, run_sigma, free_s, changeover_s, point + more) for p in powers for more in (0, 1)]


def _spot_time_ratios(paths: int, seed: int, points: Sequence[Point]) -> Floats:
    """S(W)/W of laws at points of the grid of W."""
    power, run_sigma, free_s, changeover_s, point = np.array(points).T
    work, each = FIRST_S * RATIO**point, np.ones(len(points))
    law = (RUN_GRID**power, run_sigma, changeover_s)
    inputs = replace(
        ideal_spot_inputs(work, *law, np.zeros(len(points), dtype=bool)),
        spot_usd_per_hour=3600.0 * each,
        minimum_s=60.0 * each,
        free_s=free_s,
        best_fallback_usd_per_hour=HANDOVER_RATIO * 3600.0 * each,
    )
    h = simulate_paths(inputs, None, paths, seed)
    return np.asarray(h.usd_with_any_fallback.mean(axis=1) / work)


def points_of(work_s: Floats) -> tuple[int, ...]:
    """The grid points of W around some works, up to `COUNTED_POINTS`."""
    place = np.log(np.maximum(work_s, FIRST_S) / FIRST_S) / np.log(RATIO)
    low, high = int(np.floor(place.min())), int(np.ceil(place.max()))
    return tuple(range(min(low, COUNTED_POINTS - 1), min(high, COUNTED_POINTS - 1) + 1))


@lru_cache(maxsize=4096)
def counted_share(
    paths: int,
    seed: int,
    confidence: float,
    run_mean_s: float,
    free_s: float,
    changeover_s: float,
    run_sigma: float,
    speed_sigma: float,
    price_sigma: float,
    points: tuple[int, ...],
) -> float:
    """Spot time paid per second of predicted work, at least, on the path that must meet a budget.

    At least ceil(confidence·K) paths meet it, so one of them pays that order statistic of the
    charged times, each multiplied by the price then over the price now if that has fallen.
    """
    must = math.ceil((confidence - 1e-12) * paths * RANK_SHARE)
    if must < 1:
        return 0.0
    works = FIRST_S * RATIO ** np.array(points, dtype=np.float64)
    inputs = ideal_spot_inputs(
        works, run_mean_s, run_sigma, changeover_s, np.zeros(len(works), dtype=bool)
    )
    inputs = replace(
        inputs,
        speed_sigma=np.full(len(works), speed_sigma),
        minimum_s=np.full(len(works), 60.0),
        free_s=np.full(len(works), free_s),
    )
    price = np.exp(price_sigma * random_numbers(paths, 8, seed).price - 0.5 * price_sigma**2)
    paid = simulate_paths(inputs, None, paths, seed).spot_s * np.minimum(price, 1.0)
    return COUNTED * float((np.sort(paid, axis=1)[:, must - 1] / works).min())


def min_overhead(
    paths: int,
    seed: int,
    run_mean_s: Floats,
    run_sigma: Floats,
    changeover_s: Floats,
    work_s: Floats,
) -> Floats:
    """Lower bound of the overhead of spot clusters without a fallback; all arguments (clusters,).

    Every run except the first begins with a changeover in which nothing trains. With free and
    immediate saves nothing else is lost, so this bounds every checkpoint path. Zones and outages
    only decide whether the first run is observed at random or from its start: both are tried.
    """
    power, away, point = grid_of(run_mean_s, changeover_s, work_s)
    keys, where = np.unique(
        np.stack([power, run_sigma, away, point], axis=1), axis=0, return_inverse=True
    )
    ends = [
        [(p, sigma, away, point + more, from_start) for more in (0, 1) for from_start in (0, 1)]
        for p, sigma, away, point in keys.tolist()
    ]
    found = _tabulated(_OVERHEADS, _overheads, paths, seed, chain(*ends))
    least = [min(found[end] for end in each) for each in ends]
    return np.where(work_s >= FIRST_S, OVERHEAD_MARGIN * np.array(least)[where.ravel()], 0.0)


def _overheads(paths: int, seed: int, points: Sequence[Point]) -> Floats:
    """Overheads of laws at points of the grid of work, from either first run."""
    power, run_sigma, changeover_s, point, from_start = np.array(points).T
    law = (RUN_GRID**power, run_sigma, changeover_s)
    inputs = ideal_spot_inputs(FIRST_S * RATIO**point, *law, runs_from_start=from_start > 0.0)
    return checkpoint_overhead(simulate_paths(inputs, None, paths, seed))


def ideal_spot_inputs(
    work_s: Floats,
    run_mean_s: Floats | float,
    run_sigma: Floats | float,
    changeover_s: Floats | float,
    runs_from_start: Bools,
) -> PathInputs:
    """Simulate work on spot machines without outages, with free and immediate saves."""
    values: dict[str, Floats | float] = dict.fromkeys(PathInputs.__slots__, 0.0)
    values |= {
        "run_mean_s": run_mean_s,
        "run_sigma": run_sigma,
        "outage_sigma": 1.0,
        "availability_logit": 40.0,
        "zone_count": 1.0,
        "changeover_s": changeover_s,
        "interval_s": 1.0,
        "fallback_at_once": 1.0,
        "at_once": 1.0,
        "replaced_at_once": 1.0,
        "back_above": np.inf,
        "best_fallback_usd_per_hour": np.inf,
        "best_fallback_speed": 1.0,
    }
    columns: dict[str, Any] = {
        name: np.broadcast_to(v, work_s.shape).copy() for name, v in values.items()
    }
    return PathInputs(**columns | {"work_s": work_s, "runs_from_start": runs_from_start})
