"""Lower bounds of spot gangs that lose more than `--max-overhead` allows, with a fallback.

Such a gang may do a part of the work only: its fallback has to do the rest, at its price. What the
plan costs at least follows from the Lagrangian relaxation of the limit (`risk/relaxed_bills.py`).

On the paths of a search this may be off by its standard error: that of the bill with the price of
lost work. Bill and overhead are not off separately, because paths that are interrupted more often
are handed over sooner.
"""

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.optimize.evaluate import COST_ERRORS, with_best_interval
from recommender.optimize.space import Space
from recommender.risk.path_inputs import PathInputs
from recommender.risk.relaxed_bills import relaxed_bills


def bounds_within_overhead(space: Space, alone: PathInputs, helped: PathInputs, of: Ints) -> Floats:
    """Least cost of plans with a fallback under the overhead limit, in USD; shape (helped,).

    `alone` are drafts of plans without fallbacks, `helped` of the same with one; `of` tells which
    of `alone` each was. -inf where this tells nothing: elastic clusters, and gangs within the
    limit.
    """
    limits = space.limits
    if limits.max_overhead is None or limits.deadline_s is None or not len(helped):
        return np.full(len(helped), -np.inf)
    which, of = np.unique(of, return_inverse=True)
    gangs = with_best_interval(alone.take(which))
    bounds = relaxed_bills(space.cache, gangs, limits.max_overhead, limits.deadline_s)
    return bounds.of_plans(of, helped, 0.0 if space.printed is None else COST_ERRORS)


def bound_gangs(space: Space, gangs: PathInputs) -> None:
    """Simulate gangs without fallbacks together with their bounds, which takes little longer.

    Both are cached.
    """
    limits = space.limits
    if limits.max_overhead is None or limits.deadline_s is None or limits.goal == "time":
        return
    spot = (gangs.spot_usd_per_hour > 0.0) & np.isfinite(gangs.best_fallback_usd_per_hour)
    relaxed_bills(space.cache, gangs.take(spot), limits.max_overhead, limits.deadline_s)
