"""Selects the fallbacks a plan may have: the cheapest that are fast enough, by two measures.

The cost of a fallback depends on how much work is left when it takes over. A cheaper one may
involve a wait. So the cheapest of all and the cheapest of those that are likely available are
tried, among those that are at least half, 1, 2, 3 and 4 times as fast as the cluster: a faster one
lets the job wait longer for spot, and under an overhead limit a slower one loses less while it
starts. Of the best plans all fallbacks are tried (`pool.py`).
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.optimize.space import Fallbacks, Space
from recommender.plan.limits import TOLERANCE

# How much faster than the spot cluster a fallback may have to be. One that is slower does where
# there is no other at its price: it is started earlier, and most of the work is done by then.
SPEEDUPS = (0.5, 1.0, 2.0, 3.0, 4.0)
ALL_TRIED = 8  # of so many each is tried
SLOW, SLOWEST = 0.5, 0.25  # of a cluster's speed: what loses little while it starts, and the least
LIKELY = (
    0.8  # chance to be there at once; at 95 % confidence nothing is reserved for a wait from it on
)
AT_ONCE = 256  # compared with each other at once


def choices_of(space: Space, fall: Fallbacks, step_s: Floats) -> Ints:
    """Fallbacks worth trying for clusters of these step times; (plans, choices), -1 none."""
    some = within_hourly(space, fall)
    if len(some) <= ALL_TRIED:
        return np.tile(some, (len(step_s), 1))
    own = fall.take(some)
    columns = list[Ints]()
    usd = own.usd_per_hour * (own.boot_s + space.steps_left * own.step_s)
    for rows in (np.arange(len(own)), np.flatnonzero(own.at_once >= LIKELY)):
        if len(rows):
            columns += _cheapest_fast_enough(own.step_s[rows], usd[rows], step_s, rows)
    if space.limits.max_overhead is not None:
        columns.append(_cheapest_slow(own, step_s))
    chosen = np.stack(columns, axis=1)
    alike = chosen[:, :, None] == chosen[:, None]
    chosen[np.tril(alike, -1).any(axis=2)] = -1
    return np.where(chosen >= 0, some[chosen], -1)


def within_hourly(space: Space, fall: Fallbacks) -> Ints:
    """The fallbacks that the hourly limit allows."""
    most = np.inf if space.limits.hourly_usd is None else space.limits.hourly_usd + TOLERANCE
    return np.flatnonzero(fall.usd_per_hour <= most)


def every_choice(space: Space, fall: Fallbacks, step_s: Floats) -> Ints:
    """All fallbacks of clusters that are not far slower than they are; (plans, fallbacks)."""
    some = within_hourly(space, fall)
    fast: Bools = fall.step_s[some][None] <= step_s[:, None] / SLOWEST * (1 + 1e-9)
    return np.where(fast, some[None], -1)


def _cheapest_fast_enough(fall_s: Floats, usd: Floats, step_s: Floats, rows: Ints) -> list[Ints]:
    """Of some fallbacks, slowest first, the cheapest of each speed at least; (plans,) each."""
    best = rows[_min_from(usd)]
    firsts = (
        np.searchsorted(-fall_s, -step_s / times * (1 + 1e-9), side="left") for times in SPEEDUPS
    )
    return [best[np.minimum(first, len(rows) - 1)] for first in firsts]  # the fastest at worst


def _cheapest_slow(fall: Fallbacks, step_s: Floats) -> Ints:
    """Of the slow fallbacks of clusters, the cheapest for the work; -1 none; (plans,)."""
    speed = step_s[:, None] / fall.step_s[None]
    fits = (speed >= SLOWEST * (1 - 1e-9)) & (speed < SLOW)
    usd = np.where(fits, fall.step_s * fall.usd_per_hour, np.inf)
    return np.where(fits.any(axis=1), usd.argmin(axis=1), -1)


def _min_from(usd: Floats) -> Ints:
    """For each row the least of those from it on; of equals the first."""
    turned = usd[::-1]
    least = turned == np.minimum.accumulate(turned)
    place = np.maximum.accumulate(np.where(least, np.arange(len(usd)), 0))
    return np.asarray(len(usd) - 1 - place[::-1])


def undominated(*figures: Floats) -> Ints:
    """Rows that no other equals or beats in every figure, of which less is better.

    Of equal rows the first.
    """
    table = np.stack(figures, axis=1)
    order = np.lexsort(tuple(table.T[::-1]))
    kept = np.zeros(0, dtype=np.int64)
    for begin in range(0, len(order), AT_ONCE):
        some = order[begin : begin + AT_ONCE]
        beaten = (table[kept][:, None] <= table[some][None]).all(axis=2).any(axis=0)
        some = some[~beaten]
        earlier = np.triu(np.ones((len(some), len(some)), dtype=bool), 1)
        inside = (table[some][:, None] <= table[some][None]).all(axis=2) & earlier
        kept = np.append(kept, some[~inside.any(axis=0)])
    return np.sort(kept)
