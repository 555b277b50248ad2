"""Lower bounds of spot gangs that lose more than `--max-overhead` allows, with a fallback.

Such a gang may do a part of the work only: its fallback has to do the rest, at its price. What the
plan costs at least follows from the Lagrangian relaxation of the limit
(`min_usd_within_overhead`), with a price of lost work near the best one. With S and F the cost of
the work on the gang and on the fallback, r the gang's overhead and L the limit, the fallback pays
from a price of (F - S)/r on; the larger the part of the work that the gang may do, L/r, the lower
the best price.

First each gang is bounded with the best of its fallbacks in each respect, then, where that is not
enough, with each of them.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import OVERHEAD_ERRORS, goal_error, with_best_interval
from recommender.optimize.space import Space
from recommender.risk.monte_carlo import min_usd_within_overhead
from recommender.risk.path_inputs import PathInputs

PRICE = 0.8  # of (1 - L/r)·(F - S)/r: the best price was 0.6 to 1 of it for nearly all gangs


@dataclass(frozen=True, slots=True)
class _Gangs:
    """Gangs without fallbacks on the paths of a search; shape (gangs,)."""

    usd: Floats  # expected
    overhead: Floats
    most: Floats  # overhead allowed, on these paths within the error
    error: Floats  # of the cost, USD

    def take(self, rows: Ints) -> "_Gangs":
        """The figures of some rows."""
        return _Gangs(self.usd[rows], self.overhead[rows], self.most[rows], self.error[rows])


def bounds_within_overhead(
    space: Space, alone: PathInputs, helped: PathInputs, of: Ints, cutoff: float
) -> Floats:
    """Least cost of plans with a fallback under the overhead limit, in USD; shape (helped,).

    `alone` are drafts of plans without fallbacks, `helped` of the same with one; `of` tells which
    of `alone` each was. -inf where this tells nothing: elastic clusters, and gangs within the
    limit. Bounds beyond the cutoff are not improved.
    """
    bounds = np.full(len(helped), -np.inf)
    if space.limits.max_overhead is None or not len(helped):
        return bounds
    which, of = np.unique(of, return_inverse=True)
    alone = with_best_interval(alone.take(which))
    gangs = _gangs(space, alone)
    bounds = _relaxed(space, gangs, _best_of_each(alone, helped, of))[of]
    rows = np.flatnonzero(bounds < cutoff)
    own = replace(helped.take(rows), interval_s=alone.interval_s[of[rows]])
    bounds[rows] = np.maximum(bounds[rows], _relaxed(space, gangs.take(of[rows]), own))
    return bounds


def _gangs(space: Space, alone: PathInputs) -> _Gangs:
    found = space.cache.outcomes(alone, space.limits.deadline_s)
    errors = 0.0 if space.printed is None else OVERHEAD_ERRORS
    most = (space.limits.max_overhead or 0.0) + errors * found.overhead_error
    error = goal_error(space, alone, found)
    return _Gangs(found.expected_usd, found.overhead, most, error)


def _relaxed(space: Space, gangs: _Gangs, helped: PathInputs) -> Floats:
    """The bound of each gang with its fallback, from the best price of lost work; (plans,)."""
    bounds = np.full(len(helped), -np.inf)
    hours = helped.work_s / 3600.0
    usd = helped.fallback_usd_per_hour / np.maximum(helped.fallback_speed, 1e-12) * hours
    over_overhead = (gangs.overhead > gangs.most) & (helped.elastic_share <= 0.0)
    rows = np.flatnonzero(over_overhead & (usd > gangs.usd))
    if not len(rows):
        return bounds
    g = gangs.take(rows)
    price = PRICE * (1.0 - g.most / g.overhead) * (usd[rows] - g.usd) / (g.overhead * hours[rows])
    key = (space.limits.deadline_s, space.cache.path_count, space.cache.seed)
    bounds[rows] = min_usd_within_overhead(helped.take(rows), g.most, price, *key) - g.error
    return bounds


def _best_of_each(alone: PathInputs, helped: PathInputs, of: Ints) -> PathInputs:
    """Each gang with a fallback as cheap, as fast and as quick to start as any of its own."""
    usd_per_hour, restart_s = np.full((2, len(alone)), np.inf)
    speed, own_speed = np.zeros(len(alone)), np.maximum(helped.fallback_speed, 1e-12)
    np.minimum.at(usd_per_hour, of, helped.fallback_usd_per_hour / own_speed)
    np.minimum.at(restart_s, of, helped.fallback_start_s * own_speed)
    np.maximum.at(speed, of, own_speed)
    return replace(
        alone,
        fallback_usd_per_hour=usd_per_hour * speed,
        fallback_speed=speed,
        fallback_start_s=restart_s / speed,
    )
