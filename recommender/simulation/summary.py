"""Summarises simulated runs: means with their error, quantiles, states, limits, histograms."""

import math

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.plan.limits import HOURLY, PATH_LIMITS, Limits, PathLimit
from recommender.plan.simulation import Histogram, LimitChance, Quantiles, State
from recommender.simulation.paths import SimulatedRuns

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
STATES = (
    ("waiting", "waiting_s"),
    ("starting", "starting_s"),
    ("training", "training_s"),
    ("saving", "saving_s"),
    ("restarting", "restarting_s"),
    ("lost work", "lost_s"),
    ("fallback", "fallback_s"),
)
USUAL = (0.45, 0.55)  # of the runs in the order of their times
BINS = 12
_WHISKER = 1.5  # interquartile ranges, as in a box plot (Tukey 1977)
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def quantiles(values: Floats, expected: Floats | None = None) -> Quantiles:
    """Mean and quantiles; `expected` has values with a less noisy mean, if available."""
    mean_of = values if expected is None else expected
    error = float(mean_of.std()) / math.sqrt(len(mean_of))
    at = (float(q) for q in np.quantile(values, LEVELS, method="inverted_cdf"))
    return Quantiles(float(mean_of.mean()), error, *at)


def states(sample: SimulatedRuns) -> tuple[State, ...]:
    """Shares of the time of a usual run; they sum to one.

    Of the tenth of the runs around the median, as in an answer: over all runs, those that wait for
    months would be all that is seen.
    """
    count = len(sample.time_s)
    first = int(USUAL[0] * count)
    usual = np.argsort(sample.time_s, kind="stable")[first : max(first + 1, int(USUAL[1] * count))]
    total = float(sample.time_s[usual].sum())
    return tuple(
        State(name, float(getattr(sample, field)[usual].sum()) / total) for name, field in STATES
    )


def limit_chances(
    sample: SimulatedRuns, limits: Limits, max_usd_per_hour: float
) -> tuple[tuple[LimitChance, ...], Floats]:
    """The chance to meet each limit, and the paths that meet all of them."""
    found, together = [], np.ones(len(sample.time_s), dtype=bool)
    good: Bools | bool
    for limit, most in limits.given((*PATH_LIMITS, HOURLY)):
        if isinstance(limit, PathLimit):
            good = limit.of_paths(sample) <= most
        else:
            good = limit.allows(max_usd_per_hour, most)
        found.append(LimitChance(limit.name, most, float(np.mean(good))))
        together &= good
    return tuple(found), together.astype(np.float64)


def histogram(values: Floats, unit: float = 1.0) -> Histogram:
    """About a dozen bins with round edges in `unit`; the outer ones take the tails.

    Edges run from the first percentile to the 95th, or to the upper whisker of a box plot if that
    is lower: a tail of very long paths would leave nothing to see of the rest.
    """
    levels = (0.01, 0.25, 0.75, 0.95)
    low, first, third, high = (float(q) / unit for q in np.quantile(values, levels))
    if third > first:
        high = min(high, third + _WHISKER * (third - first))
    step = _round_step(max(high - low, 1e-3 * max(abs(high), 1e-6)) / BINS)
    lowest, highest = math.floor(low / step), math.floor(high / step) + 1
    edges = np.arange(lowest, highest + 1) * step * unit
    inside = np.clip(values, edges[0], edges[-1])
    counts, _ = np.histogram(inside, bins=edges)
    return Histogram(tuple(edges.tolist()), tuple((counts / len(values)).tolist()))


def _round_step(least: float) -> float:
    scale = 10.0 ** math.floor(math.log10(least))
    return next(step * scale for step in _STEPS if step * scale >= least * (1.0 - 1e-9))
