"""Selects the fallbacks a plan may have: the cheapest that are fast enough, by several measures.

The cost of a fallback depends on how much work is left when it takes over. A large one does a whole
job for less; a small one starts for less, which is better if little is left. A cheaper one may
involve a wait. So the cheapest of all and the cheapest of those that are likely available are
tried, among those that are at least half, 1, 2, 3 and 4 times as fast as the cluster: a faster one
lets the job wait longer for spot. Of those between them some are tried for clusters that would be
among the best, but are late too often with a slower one (`faster_choices`). If few remain, those
that are cheapest for little work or most surely available are tried as well: for jobs of minutes
they may save half.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.optimize.space import Fallbacks

# How much faster than the spot cluster a fallback may have to be. One that is slower does where
# there is no other at its price: it is started earlier, and most of the work is done by then.
# Of 47 random questions with more than `ALL_TRIED` fallbacks four had a better plan with another,
# by 1.0, 1.4 and 18 %, and once where none was found; without 3, none of the latter two is tried.
SPEEDUPS = (0.5, 1.0, 2.0, 3.0, 4.0)
ALL_TRIED = 8  # of so many each is tried
SLOW = 0.5  # a fallback of less speed loses little while it starts
SLOWEST = 0.25  # of a cluster's speed, where slower ones may do
# Than one that is too slow, at most. Of 17 questions of twice the fastest time the best plan cost
# 0.3 to 18 % less in eight, and the search simulated fewer plans (2026-11-26).
FASTER = 2.0
SPEED_STEP = 1.1  # fallbacks are of one speed within this factor, where slower ones may do
LITTLE = 0.1  # of the work: what may be left when it takes over
# Chances to be there at once of those that are compared with each other; at 95 % confidence nothing
# is reserved for a wait from 0.8 on.
LIKELY, SURE = 0.8, 0.95


def fallback_choices(fall: Fallbacks, step_s: Floats, steps_left: float) -> Ints:
    """Fallbacks worth trying for clusters of these step times; (plans, 1 + choices), -1 none."""
    if len(fall) <= ALL_TRIED:
        return np.tile(np.arange(-1, len(fall)), (len(step_s), 1))
    columns = [np.full(len(step_s), -1)]
    usd = _bill(fall.step_s, fall.usd_per_hour, fall.boot_s, steps_left)
    for rows in _compared(fall.at_once, LIKELY):
        best = rows[_min_from(usd[rows])]
        for times in SPEEDUPS:
            first = np.searchsorted(-fall.step_s[rows], -step_s / times * (1 + 1e-9), side="left")
            chosen = best[np.minimum(first, len(rows) - 1)]  # the fastest where none is fast enough
            repeated = np.any([chosen == column for column in columns], axis=0)
            columns.append(np.where(repeated, -1, chosen))
    used = [column for column in columns[1:] if (column >= 0).any()]
    return np.stack([columns[0], *used], axis=1)


def slow_choice(fall: Fallbacks, step_s: Floats) -> Ints:
    """Of the slow fallbacks of clusters, the cheapest for the work; -1 none; (plans,)."""
    speed = step_s[:, None] / fall.step_s[None]
    fits = (speed >= SLOWEST * (1 - 1e-9)) & (speed < SLOW)
    usd = np.where(fits, fall.step_s * fall.usd_per_hour, np.inf)
    return np.where(fits.any(axis=1), usd.argmin(axis=1), -1)


def slower_choices(fall: Fallbacks, step_s: Floats, than_s: Floats, tried: Bools) -> Ints:
    """Fallbacks slower than `than_s` per step that clusters may have instead; -1 none.

    At least `SLOWEST` times as fast as the cluster, except those `tried`; shape (plans, most of
    any). `tried` has shape (plans, fallbacks), the others (plans,).
    """
    steps = fall.step_s[None]
    fits = (steps > than_s[:, None]) & (steps <= step_s[:, None] / SLOWEST * (1 + 1e-9))
    return _listed(fits & ~tried)


def faster_choices(fall: Fallbacks, than_s: Floats, tried: Bools) -> Ints:
    """Fallbacks a little faster than `than_s` per step that clusters may have instead; -1 none.

    Slower than the next one `tried`, or than twice as fast; shapes as of `slower_choices`.
    """
    faster = fall.step_s[None] < than_s[:, None]
    next_s = np.where(tried & faster, fall.step_s[None], than_s[:, None] / FASTER)
    return _listed(faster & ~tried & (fall.step_s[None] > next_s.max(axis=1)[:, None]))


def _listed(fits: Bools) -> Ints:
    """The fallbacks of each cluster that fit, -1 for none; shape (plans, most of any)."""
    count = fits.shape[1]
    rows = np.where(fits, np.arange(count), -1)
    return np.asarray(np.sort(rows, axis=1)[:, count - int(fits.sum(axis=1).max(initial=0)) :])


def worth_trying(
    step_s: Floats, usd_per_hour: Floats, boot_s: Floats, at_once: Floats, steps_left: float
) -> Ints:
    """On-demand clusters, slowest first, that none beats in both speed and some measure."""
    bills = [_bill(step_s, usd_per_hour, boot_s, share * steps_left) for share in (1.0, LITTLE)]
    every = [
        rows[_min_from(usd[rows])] for rows in _compared(at_once, LIKELY, SURE) for usd in bills
    ]
    if len(_union(every)) <= ALL_TRIED:
        return _union(every)
    return _union([rows[_min_from(bills[0][rows])] for rows in _compared(at_once, LIKELY)])


def of_each_speed(
    step_s: Floats, usd_per_hour: Floats, boot_s: Floats, at_once: Floats, steps_left: float
) -> Ints:
    """The cheapest on-demand clusters of each speed, by the same measures.

    Speeds are in steps of a tenth, the same for all questions.
    """
    speed = np.floor(np.log(step_s) / np.log(SPEED_STEP)).astype(np.int64)
    bills = [_bill(step_s, usd_per_hour, boot_s, share * steps_left) for share in (1.0, LITTLE)]
    return _union(
        [
            rows[_first_of_each(speed[rows], usd[rows])]
            for rows in _compared(at_once, LIKELY)
            for usd in bills
        ]
    )


def undominated(
    step_s: Floats,
    usd_per_hour: Floats,
    boot_s: Floats,
    at_once: Floats,
    gpus: Floats,
    steps_left: float,
) -> Ints:
    """On-demand clusters that none beats in the cost of the work, speed, chance and GPUs."""
    usd = _bill(step_s, usd_per_hour, boot_s, steps_left)
    no_worse = np.ones((len(usd), len(usd)), dtype=bool)
    better = ~no_worse
    for least in (usd, step_s, gpus, -at_once):
        no_worse &= least[:, None] <= least
        better |= least[:, None] < least
    return np.flatnonzero(~(no_worse & better).any(axis=0))


def _first_of_each(group: Ints, usd: Floats) -> Ints:
    """The least of each group."""
    order = np.lexsort((usd, group))
    changes = np.append(True, np.diff(group[order]) != 0)
    return np.asarray(order[changes])


def _union(parts: list[Ints]) -> Ints:
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    return np.flatnonzero(np.bincount(rows))  # np.unique imports numpy.ma


def _bill(step_s: Floats, usd_per_hour: Floats, boot_s: Floats, steps: float) -> Floats:
    """The cost of so many steps and of the start, times 3600."""
    return np.asarray(usd_per_hour * (boot_s + steps * step_s))


def _compared(at_once: Floats, *least: float) -> list[Ints]:
    """Rows that are compared with each other: all, and those that are so surely there."""
    groups = [np.flatnonzero(at_once >= chance) for chance in (0.0, *least)]
    return [rows for rows in groups if len(rows)]


def _min_from(usd: Floats) -> Ints:
    """For each row the least of those from it on; of equals the first."""
    turned = usd[::-1]
    least = turned == np.minimum.accumulate(turned)
    place = np.maximum.accumulate(np.where(least, np.arange(len(usd)), 0))
    return np.asarray(len(usd) - 1 - place[::-1])
