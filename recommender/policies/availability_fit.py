"""The availability model of a class of zones, of one zone within it, and of a shipped spot class.

Zones differ more than luck does, and a zone changes from one fortnight to the next. So a class
is a mixture of qualities (zones grouped by their availability, poor to good), and a zone with a
past is its own law, shrunk to the class, next to these qualities. Which of them holds is learned
on the way by the policy's belief; it may change every few days.
"""

from collections.abc import Sequence

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.policies.availability import EDGES_H, Availability
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, IntervalFamily

# Chosen on first halves of the traces only (fitted on one quarter, judged on another).
SHRINKAGE_H = 2.0  # hours of watching a bucket that the class counts for
QUALITIES = 3  # groups of zones by availability
OWN_SHARE = 0.7  # of the time that a zone is like its past
DWELL_H = 120.0  # mean time between changes of quality
# The first two where several zones compete for one job, and the best looks better than it is.
ZONES_SHRINKAGE_H, ZONES_OWN_SHARE = 60.0, 0.8
ZONE_SD = 1.5  # of ln(outage rate) between zones of a class
# Three-point Gauss-Hermite rule: zones of a class in place of their normal law.
POINTS = np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0])
WEIGHTS = np.array([1.0, 4.0, 1.0]) / 6.0
_MAX_SHARE = 0.95  # of ticks in a bucket that end in an exit
_SMOOTH_EXITS, _SMOOTH_H = 0.5, 2.0  # of a class: no bucket is without an exit


@dataclass(frozen=True, slots=True)
class Counts:
    """What was seen of one zone: exits from, and hours in, each side and age bucket.

    Hours are such that exits / hours is the continuous rate which ends that share of ticks,
    -ln(1 - exits / ticks) per tick: with ticks as long as runs the plain ratio is too low.
    """

    exits: Floats  # (2, buckets)
    hours: Floats  # (2, buckets)


@dataclass(frozen=True, slots=True)
class ZoneClass:
    """What is known of zones of a kind."""

    pooled: Availability  # one regime: every hour watched counts alike
    qualities: Availability  # one regime per group
    unwatched: Availability  # the law of a zone without a recording


def counts(series: Bools, tick_s: float, edges_h: tuple[float, ...] = EDGES_H) -> Counts:
    """Exits and exposure by age; the first run counts from where the series begins."""
    if len(series) < 2:
        raise UsageError(f"a series of {len(series)} ticks shows no change: at least 2 are needed")
    bucket = np.searchsorted(np.asarray(edges_h), ages(series)[:-1] * tick_s / 3600.0)
    cell = series[:-1] * (len(edges_h) + 1) + bucket
    size = 2 * (len(edges_h) + 1)
    exits = np.bincount(cell[series[1:] != series[:-1]], minlength=size)
    ticks = np.bincount(cell, minlength=size)
    share = np.minimum(exits / np.maximum(ticks, 1), _MAX_SHARE)
    per_tick = np.where(share > 0.0, share / -np.log1p(-np.maximum(share, 1e-12)), 1.0)
    hours: Floats = np.asarray(ticks * per_tick * (tick_s / 3600.0), dtype=np.float64)
    return Counts(exits.astype(np.float64).reshape(2, -1), hours.reshape(2, -1))


def ages(series: Bools) -> Ints:
    """Ticks since the current run or outage began, the current one included."""
    index = np.arange(len(series))
    begins = np.concatenate([[True], series[1:] != series[:-1]])
    return index - np.maximum.accumulate(np.where(begins, index, 0)) + 1


def zone_class(
    zones: Sequence[Bools], tick_s: float, edges_h: tuple[float, ...] = EDGES_H
) -> ZoneClass:
    """The law of a class from the pasts of its zones, poor to good."""
    if not zones:
        raise UsageError("no series to fit: a class needs at least one zone")
    order = np.argsort([float(series.mean()) for series in zones], kind="stable")
    groups = [group for group in np.array_split(order, min(QUALITIES, len(zones))) if len(group)]
    laws = [_pooled([zones[i] for i in group], tick_s, edges_h) for group in groups]
    qualities = mixture(laws, np.full(len(laws), 1.0 / len(laws)))
    pooled = _pooled(zones, tick_s, edges_h)
    # Fewer zones than qualities do not show how much zones differ: that is then taken as usual.
    unwatched = qualities if len(laws) == QUALITIES else _spread(pooled, ZONE_SD)
    return ZoneClass(pooled, qualities, unwatched)


def of_zone(
    past: Bools,
    tick_s: float,
    kind: ZoneClass,
    shrinkage_h: float = SHRINKAGE_H,
    own_share: float = OWN_SHARE,
) -> Availability:
    """A zone's own law next to the qualities of its class.

    Own rate = (exits + rate of the class · h) / (hours + h) in each bucket: the gamma-Poisson
    posterior mean with h = `shrinkage_h` pseudo-hours at the class's rate.
    """
    edges_h = kind.pooled.edges_h
    seen = counts(past, tick_s, edges_h)
    prior = kind.pooled.exits_per_hour[0] * shrinkage_h
    own = _single(edges_h, (seen.exits + prior) / (seen.hours + shrinkage_h))
    others = [_single(edges_h, rates) for rates in kind.qualities.exits_per_hour]
    share = (1.0 - own_share) / len(others)
    return mixture([own, *others], np.array([own_share, *[share] * len(others)]))


def of_zones(pasts: Sequence[Bools], tick_s: float) -> tuple[Availability, ...]:
    """Laws of zones that compete for one job, from the pasts of all of them."""
    kind = zone_class(pasts, tick_s)
    more = (kind, ZONES_SHRINKAGE_H, ZONES_OWN_SHARE)
    return tuple(of_zone(past, tick_s, *more) for past in pasts)


def mixture(laws: Sequence[Availability], weights: Floats) -> Availability:
    """Laws of one regime each as regimes of one law, that hold `weights` of the time."""
    rates = np.concatenate([law.exits_per_hour for law in laws])
    switches = np.tile(weights / DWELL_H, (len(laws), 1))
    np.fill_diagonal(switches, 0.0)
    return Availability(laws[0].edges_h, rates, switches)


def _spread(law: Availability, zone_sd: float) -> Availability:
    """Poor, usual and good zones around a law of one regime: outages longer and shorter."""
    outages = law.exits_per_hour[0, 0] * np.exp(zone_sd * POINTS)[:, None]
    runs = law.exits_per_hour[0, 1]
    laws = [_single(law.edges_h, np.stack([down, runs])) for down in outages]
    return mixture(laws, WEIGHTS)


def _pooled(zones: Sequence[Bools], tick_s: float, edges_h: tuple[float, ...]) -> Availability:
    seen = [counts(series, tick_s, edges_h) for series in zones]
    exits = np.sum([each.exits for each in seen], axis=0)
    hours = np.sum([each.hours for each in seen], axis=0)
    mean = exits.sum(axis=1, keepdims=True) / np.maximum(hours.sum(axis=1, keepdims=True), 1.0)
    smooth = np.maximum(mean, _SMOOTH_EXITS / max(float(hours.sum()), 1.0))
    return _single(edges_h, (exits + smooth * _SMOOTH_H) / (hours + _SMOOTH_H))


def _single(edges_h: tuple[float, ...], rates: Floats) -> Availability:
    return Availability(edges_h, rates[None], np.zeros((1, 1)))


def of_class(
    run_mean_s: float,
    run_sigma: float,
    outage_sigma: float,
    availability: float,
    zone_sd: float,
    zone_count: float = 1.0,
) -> Availability:
    """Poor, usual and good zones of a class: logit availability ± √3 sd with weights 1, 4, 1.

    Runs have the class's mean everywhere; outages are as long as a zone's availability requires, or
    as much shorter as there are zones to wait for.
    """
    level = np.log(availability / (1.0 - availability)) + zone_sd * POINTS
    outage_mean_s = run_mean_s * np.exp(-level) / zone_count
    up = exit_rates(RUN_FAMILY, run_mean_s / 3600.0, run_sigma)
    laws = [
        Availability(
            EDGES_H,
            np.stack([exit_rates(OUTAGE_FAMILY, mean_s / 3600.0, outage_sigma), up])[None],
            np.zeros((1, 1)),
        )
        for mean_s in outage_mean_s
    ]
    return mixture(laws, WEIGHTS)


def exit_rates(family: IntervalFamily, mean_h: float, shape: float) -> Floats:
    """Exits per hour by age bucket: exits in the bucket over hours lived in it, exactly."""
    edges = np.array((0.0, *EDGES_H))
    mean, spread = np.array(mean_h), np.array(shape)
    alive = np.append(family.survival(edges, mean, spread), 0.0)
    beyond = np.append(family.excess(edges, mean, spread), 0.0)  # hours lived after each edge
    lived = np.maximum(beyond[:-1] - beyond[1:], 1e-12)
    return np.asarray((alive[:-1] - alive[1:]) / lived)
