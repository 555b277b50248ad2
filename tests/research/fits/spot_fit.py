"""Fits spot capacity's runs, outages and zones on recorded availability series.

The law that is fitted is the one the estimates draw from (docs/models.md): a zone has a
level of availability, a logit-normal draw; runs and outages are lognormal; a gang of n
machines runs u(n) = u(1) / (1 + (n - 1)(1 - ρ)) on average.
"""

import csv
import gzip
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.schema import GANG_KNEE
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY
from recommender.traces.market_law import fitted_shape

GANGS = (1, 2, 4, 8, 12, 16)  # sizes of gangs that are looked at
HOUR = 3600.0
DAYS = 40  # drawn per zone when the spread of zones is fitted
DAY_H = 24.0
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded series: how many of `capacity` machines a zone had, tick by tick."""

    name: str
    campaign: str
    zone: str
    capacity: int
    gap_h: float
    nodes: Ints

    def up(self, machines: int) -> Bools:
        """At which ticks a gang of that many machines was there."""
        return np.asarray(self.nodes >= machines, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class GangIntervals:
    """The runs and outages of a gang in one zone, in hours, and its share of time up."""

    runs: Floats  # seen from beginning to end
    unfinished: Floats  # under way at the beginning or the end of the series
    interruptions: int
    outages: Floats
    availability: float
    up_hours: float

    @property
    def run_mean(self) -> float:
        """Hours up per interruption; infinite if none was seen."""
        return self.up_hours / self.interruptions if self.interruptions else math.inf

    @property
    def seen(self) -> Floats:
        """All runs, the cut ones as long as they were seen."""
        return np.concatenate([self.runs, self.unfinished])


@dataclass(frozen=True, slots=True)
class ZoneLaw:
    """Levels of a class's zones and its runs: the parameters that the estimates draw from."""

    run_mean_h: float
    run_sigma: float
    outage_sigma: float
    location: float  # mean of the logit of availability, one machine
    slope: float
    zone_sd: float
    co_interruption: float

    def run_mean(self, machines: int) -> float:
        """Mean run of a gang, in hours."""
        return self.run_mean_h / (1 + (machines - 1) * (1 - self.co_interruption))

    def level(self, machines: int) -> float:
        """Mean logit of a gang's availability."""
        return self.location - self.slope * gang_doublings(machines)


def gang_doublings(machines: int) -> float:
    """What a gang's availability falls with: machine by machine at first, then by doublings."""
    return math.log2(1 + (machines - 1) / GANG_KNEE)


def read_traces(reference: Path, campaign: str) -> list[Trace]:
    """Read the availability series of a campaign from the reference tables."""
    with open(reference / "spot" / "traces.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["campaign"] == campaign]
    changes: dict[str, list[tuple[float, int]]] = {row["trace_id"]: [] for row in rows}
    with gzip.open(reference / "spot" / "availability.csv.gz", "rt", newline="") as file:
        for change in csv.DictReader(file):
            if change["trace_id"] in changes:
                point = (float(change["t_s"]), int(change["nodes"]))
                changes[change["trace_id"]].append(point)
    return [_trace(row, changes[row["trace_id"]]) for row in rows]


def _trace(row: Mapping[str, str], changes: Sequence[tuple[float, int]]) -> Trace:
    gap_s = float(row["gap_s"])
    times = np.array([t for t, nodes in changes if nodes >= 0])
    nodes = np.array([nodes for _, nodes in changes if nodes >= 0], dtype=np.int64)
    ticks = np.arange(0.0, changes[-1][0], gap_s)  # the last change, -1, ends the series
    filled = nodes[np.searchsorted(times, ticks, side="right") - 1]
    capacity = int(row["capacity"])
    return Trace(row["trace_id"], row["campaign"], row["zone"], capacity, gap_s / HOUR, filled)


def gang_intervals(trace: Trace, machines: int) -> GangIntervals:
    """Cut a series into runs and outages of a gang; outages cut off at either end are left out."""
    up = trace.up(machines)
    edges = np.r_[0, np.flatnonzero(np.diff(up)) + 1, len(up)]
    hours, state = np.diff(edges) * trace.gap_h, up[edges[:-1]]
    cut = np.zeros(len(hours), dtype=np.bool_)
    cut[[0, -1]] = True
    return GangIntervals(
        runs=hours[state & ~cut],
        unfinished=hours[state & cut],
        interruptions=int(state[:-1].sum()),
        outages=hours[~state & ~cut],
        availability=float(up.mean()),
        up_hours=float(up.sum() * trace.gap_h),
    )


def lognormal_mle(lengths: Floats, unfinished: Floats | None = None) -> tuple[float, float]:
    """Give the median and the sigma of the lognormal that is most likely behind the lengths.

    Intervals that were not over are known to be longer than seen (EM algorithm).
    """
    logs = np.log(lengths)
    mean, sd = float(logs.mean()), float(logs.std())
    open_logs = [] if unfinished is None else [math.log(hours) for hours in unfinished]
    for _ in range(100 if open_logs else 0):
        tails = [_upper_normal(mean, sd, bound) for bound in open_logs]
        count = len(logs) + len(tails)
        new = (float(logs.sum()) + sum(first for first, _ in tails)) / count
        squares = float(((logs - new) ** 2).sum())
        squares += sum(second - 2 * new * first + new**2 for first, second in tails)
        mean, sd = new, math.sqrt(squares / count)
    return math.exp(mean), sd


def _upper_normal(mean: float, sd: float, bound: float) -> tuple[float, float]:
    """First and second moment of a normal number that is known to exceed a bound."""
    z = (bound - mean) / sd
    mills = _NORMAL.pdf(z) / max(_NORMAL.cdf(-z), 1e-300)
    first = mean + sd * mills
    return first, sd**2 * (1 + z * mills - mills**2) + first**2


def sigma_of_mean_and_median(mean: float, median: float) -> float:
    """Give the sigma of the lognormal with this mean and this median."""
    return math.sqrt(2 * math.log(mean / median))


def pooled_run_mean(zones: Iterable[GangIntervals]) -> float:
    """Hours up per interruption over all zones."""
    known = list(zones)
    return sum(zone.up_hours for zone in known) / sum(zone.interruptions for zone in known)


def scaled_outages(zones: Iterable[GangIntervals], mean: float) -> Floats:
    """Pool outages after scaling each zone's to the same mean: the model scales zones itself."""
    several = [zone.outages for zone in zones if len(zone.outages) > 9]
    return np.concatenate([outages / outages.mean() * mean for outages in several])


def co_interruption(run_means: Mapping[int, float]) -> float:
    """Fit ρ of u(n) = u(1) / (1 + (n - 1)(1 - ρ)) to mean runs by gang size, in ratios."""
    single = run_means[1]
    grid = np.arange(0.50, 1.0001, 0.005)
    sizes = [n for n in run_means if n > 1]
    error = [
        sum(math.log(single / run_means[n] / (1 + (n - 1) * (1 - rho))) ** 2 for n in sizes)
        for rho in grid
    ]
    return float(grid[int(np.argmin(error))])


@lru_cache(maxsize=4)
def zone_quantiles(count: int) -> Floats:
    """Standard normal quantiles at the middle of `count` equal shares."""
    quantiles = np.array([_NORMAL.inv_cdf((i + 0.5) / count) for i in range(count)])
    quantiles.setflags(write=False)  # kept for everybody
    return quantiles


def logistic(x: Floats) -> Floats:
    """The inverse of the logit."""
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float64)


def logit(p: float) -> float:
    """The logarithm of the odds."""
    return math.log(p / (1 - p))


def mean_availability(location: float, zone_sd: float) -> float:
    """Mean over zones of an availability whose logit is normal."""
    return float(logistic(location + zone_sd * zone_quantiles(400)).mean())


def location_of_mean(mean: float, zone_sd: float) -> float:
    """Find the mean logit for which the mean availability over zones is `mean`."""
    low, high = -15.0, 15.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_availability(middle, zone_sd) < mean else (low, middle)
    return (low + high) / 2


def levels(means: Mapping[int, float], zone_sd: float) -> tuple[float, float]:
    """Fit the location and the slope to mean availabilities by gang size."""
    doublings = np.array([gang_doublings(n) for n in means])
    locations = np.array([location_of_mean(mean, zone_sd) for mean in means.values()])
    if len(locations) == 1:
        return float(locations[0]), 0.0
    falling, location = np.polyfit(doublings, locations, 1)
    return float(location), float(-falling)


def day_shares(traces: Iterable[Trace], machines: int) -> Floats:
    """Share of each whole day that a gang was there, over all zones."""
    days = []
    for trace in traces:
        up, ticks = trace.up(machines), round(DAY_H / trace.gap_h)
        whole = len(up) // ticks
        days.append(up[: whole * ticks].reshape(whole, ticks).mean(axis=1))
    return np.concatenate(days)


def drawn_days(law: ZoneLaw, machines: int, zones: int = 200, days: int = DAYS) -> Floats:
    """Draw the share of a day that a gang is there: rows are zones, columns days."""
    rng = np.random.default_rng(20260822)
    a = logistic(law.level(machines) + law.zone_sd * zone_quantiles(zones))[:, None]
    u = law.run_mean(machines)
    shape = (zones, days)
    means = (np.broadcast_to(u * (1 - a) / a, shape), np.full(shape, u))
    sigmas = (law.outage_sigma, law.run_sigma)
    up = rng.random(shape) < a
    now, total = np.zeros(shape), np.zeros(shape)
    first = True
    while np.any(now < DAY_H):
        drawn = [_interval_lengths(rng, m, s, first) for m, s in zip(means, sigmas, strict=True)]
        end = np.minimum(now + np.where(up, drawn[1], drawn[0]), DAY_H)
        total += np.where(up, end - now, 0.0)
        now, up, first = end, ~up, False
    return np.asarray(total / DAY_H, dtype=np.float64)


def _interval_lengths(
    rng: np.random.Generator, mean: Floats, sigma: float, residue: bool
) -> Floats:
    """Draw intervals, or what is left of them at a random moment (long ones are met more often)."""
    angle, radius = rng.random(mean.shape), rng.random(mean.shape)
    normal = np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * angle)
    shift = sigma**2 / 2 if residue else -(sigma**2) / 2
    lengths = np.maximum(mean, 1e-6) * np.exp(shift + sigma * normal)
    share = rng.random(mean.shape) if residue else np.ones(mean.shape)
    return np.asarray(lengths * share, dtype=np.float64)


def fit_runs(seen: Mapping[int, Sequence[GangIntervals]], rho: float) -> ZoneLaw:
    """Fit runs and outages by gang size, the smallest first; zones are not distinguished yet."""
    smallest = seen[min(seen)]
    outages = scaled_outages([zone for gang in seen.values() for zone in gang], 1.0)
    return ZoneLaw(
        run_mean_h=pooled_run_mean(smallest),
        run_sigma=float(np.mean([pooled_run_sigma(gang) for gang in seen.values()])),
        outage_sigma=fitted_shape(OUTAGE_FAMILY, outages, 1.0),
        location=0.0,
        slope=0.0,
        zone_sd=0.0,
        co_interruption=rho,
    )


def pooled_run_sigma(zones: Sequence[GangIntervals]) -> float:
    """Sigma of the runs of all zones, by what is left of them at a random moment."""
    runs = np.concatenate([zone.seen for zone in zones])
    return fitted_shape(RUN_FAMILY, runs, pooled_run_mean(zones))


def mean_availabilities(seen: Mapping[int, Sequence[GangIntervals]]) -> dict[int, float]:
    """Mean over zones of the availability of each size of gang."""
    return {n: float(np.mean([zone.availability for zone in gang])) for n, gang in seen.items()}


def fit_gangs(
    traces: Sequence[Trace],
    sizes: Sequence[int],
    day_sizes: Sequence[int],
    rho: float,
    days: int = DAYS,
) -> ZoneLaw:
    """Fit gangs of these sizes; the days of `day_sizes` tell how much zones differ.

    `days` are drawn per zone for that: fewer are quicker, and blur the spread between zones.
    """
    seen = {n: [gang_intervals(trace, n) for trace in traces] for n in sizes}
    day_sds = {n: float(day_shares(traces, n).std()) for n in day_sizes}
    return fit_zones(fit_runs(seen, rho), mean_availabilities(seen), day_sds, days)


def fit_zones(
    law: ZoneLaw, means: Mapping[int, float], day_sds: Mapping[int, float], days: int = DAYS
) -> ZoneLaw:
    """Fit the zones' levels: mean availabilities by gang size, and the sd of days' shares."""
    low, high = 0.2, 4.0
    for _ in range(7):
        trial = _with_zones(law, means, (low + high) / 2)
        gap = np.mean([drawn_days(trial, n, days=days).std() - sd for n, sd in day_sds.items()])
        low, high = (trial.zone_sd, high) if gap < 0 else (low, trial.zone_sd)
    return _with_zones(law, means, round((low + high) / 2, 1))


def _with_zones(law: ZoneLaw, means: Mapping[int, float], zone_sd: float) -> ZoneLaw:
    location, slope = levels(means, zone_sd)
    return replace(law, location=location, slope=slope, zone_sd=zone_sd)
