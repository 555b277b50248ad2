"""The least checkpoint overhead of spot clusters without a fallback: from the run law, tabulated.

Every run but the first begins with a changeover in which nothing trains. With saves that are free
and immediate nothing else is lost, so that is the least of any checkpoint path, and it falls when
runs get longer or changeovers shorter: one machine's law bounds every gang with it. Zones and
outages only decide whether the first run is met at random or from its start: both are tried.
"""

from functools import lru_cache

import numpy as np

from recommender.arrays import Floats
from recommender.optimize.spot_time_bounds import FIRST_S, RATIO, RUN_GRID, grid_of, lossless
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.run_statistics import checkpoint_overhead

MARGIN = 0.95  # the overhead bends between grid points


def least_overhead(
    paths: int,
    seed: int,
    run_mean_s: Floats,
    run_sigma: Floats,
    changeover_s: Floats,
    work_s: Floats,
) -> Floats:
    """Least work lost per work done; all arguments (clusters,)."""
    power, away, point = grid_of(run_mean_s, changeover_s, work_s)
    keys, where = np.unique(
        np.stack([power, run_sigma, away, point], axis=1), axis=0, return_inverse=True
    )
    least = [_least_around(paths, seed, *map(float, key)) for key in keys]
    return np.where(work_s >= FIRST_S, MARGIN * np.array(least)[where.ravel()], 0.0)


@lru_cache(maxsize=20000)
def _least_around(
    paths: int, seed: int, power: float, run_sigma: float, changeover_s: float, point: float
) -> float:
    """The least at the ends of a piece of the grid of work, from either first run."""
    ends = FIRST_S * RATIO ** np.array([point, point + 1.0, point, point + 1.0])
    law = (RUN_GRID**power, run_sigma, changeover_s)
    inputs = lossless(ends, *law, held=np.array([False, False, True, True]))
    return float(checkpoint_overhead(simulate_paths(inputs, None, paths, seed)).min())
