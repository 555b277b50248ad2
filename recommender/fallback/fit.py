"""Fits of the availability model to a zone's past, shrunk towards the zones of its class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recommender.errors import UsageError
from recommender.fallback.availability import EDGES_H, Availability
from recommender.replay.engine import Ints
from recommender.replay.state import Bools, Floats

SHRINKAGE_H = 2.0  # hours of watching a bucket that the class counts for; chosen on first halves
_SMOOTH_EXITS, _SMOOTH_H = 0.5, 2.0  # of the class itself: no bucket is without an exit


@dataclass(frozen=True, slots=True)
class Counts:
    """What was seen of one zone: exits from, and hours in, each side and age bucket."""

    exits: Floats  # (2, buckets)
    hours: Floats  # (2, buckets)


def counts(series: Bools, tick_s: float, edges_h: tuple[float, ...] = EDGES_H) -> Counts:
    """Exits and exposure by age; the first run counts from where the series begins."""
    if len(series) < 2:
        raise UsageError(f"a series of {len(series)} ticks shows no change: at least 2 are needed")
    bucket = np.searchsorted(np.asarray(edges_h), ages(series)[:-1] * tick_s / 3600.0)
    cell = series[:-1] * (len(edges_h) + 1) + bucket
    size = 2 * (len(edges_h) + 1)
    exits = np.bincount(cell, weights=series[1:] != series[:-1], minlength=size)
    hours = np.bincount(cell, minlength=size) * tick_s / 3600.0
    return Counts(exits.reshape(2, -1), hours.reshape(2, -1))


def ages(series: Bools) -> Ints:
    """Ticks since the current run or outage began, the current one included."""
    index = np.arange(len(series))
    begins = np.concatenate([[True], series[1:] != series[:-1]])
    return index - np.maximum.accumulate(np.where(begins, index, 0)) + 1


def pooled(
    zones: Sequence[Bools], tick_s: float, edges_h: tuple[float, ...] = EDGES_H
) -> Availability:
    """One law for all zones of a class, each hour watched counting alike."""
    if not zones:
        raise UsageError("no series to fit: a class needs at least one zone")
    seen = [counts(series, tick_s, edges_h) for series in zones]
    exits = np.sum([each.exits for each in seen], axis=0)
    hours = np.sum([each.hours for each in seen], axis=0)
    mean = exits.sum(axis=1, keepdims=True) / np.maximum(hours.sum(axis=1, keepdims=True), 1.0)
    smooth = np.maximum(mean, _SMOOTH_EXITS / np.maximum(hours.sum(), 1.0))
    rates = (exits + smooth * _SMOOTH_H) / (hours + _SMOOTH_H)
    return Availability(edges_h, rates[None], np.zeros((1, 1)))


def of_zone(
    past: Bools, tick_s: float, kind: Availability, shrinkage_h: float = SHRINKAGE_H
) -> Availability:
    """A zone's own law: rate = (exits + rate of the class · h) / (hours + h) in each bucket.

    The gamma-Poisson posterior mean with `shrinkage_h` pseudo-hours at the class's rate (one
    regime only).
    """
    own = counts(past, tick_s, kind.edges_h)
    rates = (own.exits + kind.exits_per_hour[0] * shrinkage_h) / (own.hours + shrinkage_h)
    return Availability(kind.edges_h, rates[None], np.zeros((1, 1)))
