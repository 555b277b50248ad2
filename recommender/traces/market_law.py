"""The spot law that the planner uses, from the series of one market.

How: docs/research/risk-facts.md.

The likelihood weighs every short interval alike and misses a heavy tail's mean by a third to a
half; a job cares for what is left of an interval at a random moment. So the mean is hours up per
interruption, and σ is fitted to P(more than h left), h = 0.1 ... 6 hours, as for the shipped
classes (docs/research/risk-facts.md). Beyond single intervals, days differ: the sd of the logit of
a day's level is what makes drawn days vary as the seen ones do.
"""

import math

import numpy as np

from recommender.arrays import Floats
from recommender.plan.limits import SHORT_RUN_S
from recommender.risk.laws import OUTAGE_FAMILY, RUN_FAMILY, IntervalFamily, logistic
from recommender.risk.normal_law import normal_quantile
from recommender.risk.random_numbers import uniforms
from recommender.traces.fit_result import MarketLaw, Value
from recommender.traces.intervals import BLOCK_H, FEW_BLOCKS, gang_intervals, states
from recommender.traces.law_fit import Z95
from recommender.traces.statistics import (
    MIN_BLOCKS,
    WatchedMarket,
    co_interruption,
    limits_of,
    ratio,
    slope,
)
from recommender.traces.trace import HOUR, Trace

# How much of a run is left at a random moment is compared at these hours: from a changeover
# (minutes) to the length of a short job.
RESIDUAL_H = np.array([0.1, 0.3, 1.0, 2.0, 6.0])
LEVEL_SDS = np.arange(0.0, 4.01, 0.25)
DAY_H = 24.0
_LEVELS, _DAYS, _SEED = 100, 12, 7
_MAX_INTERVALS = 4000
MIN_INTERRUPTIONS = 5
MIN_OUTAGES = 5
COARSEST_S = 600.0  # sampling every ten minutes distinguishes runs of 20 minutes from longer ones
_SHAPE_REPLICATES = 200


def fitted_shape(family: IntervalFamily, lengths: Floats, mean: float) -> float:
    """Shape of the law of this mean that is nearest to what is left of the seen intervals.

    `lengths` in hours, cut intervals as long as they were seen; least squares over `RESIDUAL_H`.
    """
    shapes = family.candidate_shapes
    left = np.maximum(lengths[:, None] - RESIDUAL_H, 0.0).mean(axis=0) / lengths.mean()
    expected = family.excess(RESIDUAL_H, np.array(mean), shapes[:, None]) / mean
    errors = ((expected - left) ** 2).sum(axis=1)
    return float(shapes[int(errors.argmin())])


def resampled_shapes(
    family: IntervalFamily, lengths: Floats, mean: float, replicates: int, stream: int
) -> Floats:
    """`fitted_shape` of intervals drawn with replacement; (replicates,)."""
    count = len(lengths)
    drawn = uniforms(_SEED, stream, replicates * count).reshape(replicates, count)
    rows = np.floor(drawn * count).astype(np.int64)
    return np.array([_rescaled_shape(family, lengths[row], lengths, mean) for row in rows])


def _rescaled_shape(family: IntervalFamily, drawn: Floats, lengths: Floats, mean: float) -> float:
    return fitted_shape(family, drawn, mean * float(drawn.mean() / lengths.mean()))


def logit(share: float) -> float:
    """The logarithm of the odds, of shares kept off 0 and 1 by one part in ten thousand."""
    kept = min(max(share, 1e-4), 1.0 - 1e-4)
    return float(np.log(kept / (1.0 - kept)))


def quantiles(count: int) -> Floats:
    """Standard normal quantiles at the middle of equal shares."""
    return normal_quantile((np.arange(count) + 0.5) / count)


def location_of_mean(mean: float, level_sd: float) -> float:
    """Mean logit for which the mean availability over levels is `mean` (bisection)."""
    spread = level_sd * quantiles(400)
    low, high = -15.0, 15.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = float(logistic(middle + spread).mean()) < mean
        low, high = (middle, high) if below else (low, middle)
    return 0.5 * (low + high)


def day_sds(mean: float, run_mean_h: float, run_sigma: float, outage_sigma: float) -> Floats:
    """sd of the share of a day that capacity is there, by sd of levels; (LEVEL_SDS,).

    Drawn days: a level for each, then runs and outages that alternate from a random moment.
    """
    found = []
    for sd in LEVEL_SDS:
        level = logistic(location_of_mean(mean, float(sd)) + sd * quantiles(_LEVELS))
        found.append(float(_days(level, run_mean_h, run_sigma, outage_sigma).std()))
    return np.maximum.accumulate(np.array(found))


def _days(level: Floats, run_mean_h: float, run_sigma: float, outage_sigma: float) -> Floats:
    """Share of a day up; (levels × days,)."""
    a = np.repeat(level, _DAYS)
    outage = run_mean_h * (1.0 - a) / a
    up = uniforms(_SEED, 8000, len(a)) < a
    now, total = np.zeros(len(a)), np.zeros(len(a))
    for number in range(_MAX_INTERVALS):
        uniform = uniforms(_SEED, 8100 + number, len(a))
        runs = run_mean_h * RUN_FAMILY.lengths(RUN_FAMILY.scores(uniform), run_sigma)
        outages = outage * OUTAGE_FAMILY.lengths(OUTAGE_FAMILY.scores(uniform), outage_sigma)
        length = np.where(up, runs, outages)
        if number == 0:  # met at a random moment, when part of it is over
            moment = uniforms(_SEED, 8050, len(a))
            length *= np.where(
                up,
                RUN_FAMILY.residual_factors(runs / run_mean_h, np.array(run_sigma), moment),
                OUTAGE_FAMILY.residual_factors(outages / outage, np.array(outage_sigma), moment),
            )
        end = np.minimum(now + length, DAY_H)
        total += np.where(up, end - now, 0.0)
        now, up = end, ~up
        if np.all(now >= DAY_H):
            break
    return total / DAY_H


def level_sd_of(day_sd: float, table: Floats) -> float:
    """The sd of levels at which drawn days vary as much as seen ones; a look-up in `day_sds`."""
    return float(np.interp(day_sd, table, LEVEL_SDS))


_LOCATIONS = np.linspace(-15.0, 15.0, 601)


def law_of(market: WatchedMarket) -> tuple[MarketLaw | None, str]:
    """The law, or why there is too little for one."""
    up = market.days([c.up_h for c in market.hourly])
    ends = market.days([c.ends for c in market.hourly])
    stopped = int(ends[:, 0].sum())
    if stopped < MIN_INTERRUPTIONS:
        seen = f"{stopped} interruption{'' if stopped == 1 else 's'} seen"
        return None, f"{seen}; a law needs {MIN_INTERRUPTIONS}"
    outages = _outages(market.traces)
    if len(outages) < MIN_OUTAGES:
        return None, f"{len(outages)} whole outages seen; a law needs {MIN_OUTAGES}"
    run_h = market.limited(ratio, np.stack([up[:, 0], ends[:, 0]], axis=1))
    runs = np.concatenate([_seen_runs(trace) for trace in market.traces])
    run_sigma = _shape(RUN_FAMILY, runs, run_h.value, 7500)
    outage_sigma = _shape(OUTAGE_FAMILY, outages, float(outages.mean()), 7501)
    hours = market.days([c.hours for c in market.hourly])
    level_sd = _level_sd(market, up[:, 0], hours, run_h.value, run_sigma, outage_sigma)
    spread = 0.0 if level_sd is None else level_sd.value
    return MarketLaw(
        run_mean_s=_scaled(run_h, HOUR),
        run_sigma=run_sigma,
        outage_sigma=outage_sigma,
        availability=_typical(market, up[:, 0], hours, spread),
        zone_sd=level_sd,
        availability_slope=_slope(market, up, hours, spread),
        co_interruption=gang_co_interruption(market),
        short_runs=_short_runs(market, runs),
        held=any(trace.kind == "hold" for trace in market.traces),
    ), ""


def _scaled(value: Value, factor: float) -> Value:
    low = None if value.low is None else value.low * factor
    high = None if value.high is None else value.high * factor
    return Value(value.value * factor, low, high)


def _seen_runs(trace: Trace) -> Floats:
    """Every run of one machine as long as it was seen, in hours."""
    edges, up = states(trace, 1)
    found: Floats = np.diff(edges)[up] / HOUR
    return found


def _short_runs(market: WatchedMarket, runs: Floats) -> Value | None:
    """Share of runs of 20 minutes at most; None where gangs were watched, or too seldom looked.

    Limits of Wilson (Journal of the American Statistical Association 22, 1927).
    """
    if len(market.sizes) > 1 or any(trace.step_s > COARSEST_S for trace in market.traces):
        return None
    share, n = short_share(runs), len(runs)
    middle = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + (Z95 / (2 * n)) ** 2) / (1 + Z95**2 / n)
    return Value(share, max(middle - half, 0.0), min(middle + half, 1.0))


def short_share(runs: Floats) -> float:
    """Share of runs of 20 minutes at most; hours."""
    return float((runs * HOUR <= SHORT_RUN_S + 1e-6).mean())


def _outages(traces: tuple[Trace, ...]) -> Floats:
    """Whole outages, those of each series scaled to one mean: levels are fitted apart."""
    found = []
    for trace in traces:
        outages = gang_intervals(trace, 1).outages
        whole = outages.hours[outages.over]
        if len(whole) >= MIN_OUTAGES:
            found.append(whole / whole.mean())
    return np.concatenate(found) if found else np.empty(0)


def _shape(family: IntervalFamily, lengths: Floats, mean: float, stream: int) -> Value:
    drawn = resampled_shapes(family, lengths, mean, _SHAPE_REPLICATES, stream)
    return limits_of(fitted_shape(family, lengths, mean), drawn, len(lengths))


def _level_sd(
    market: WatchedMarket, up: Floats, hours: Floats, run_h: float, run: Value, outage: Value
) -> Value | None:
    """sd of the logit of a day's level; None where less than six days were watched."""
    if any(trace.end_s < FEW_BLOCKS * BLOCK_H * HOUR for trace in market.traces):
        return None
    share = up / hours
    table = day_sds(float(up.sum() / hours.sum()), run_h, run.value, outage.value)
    value = level_sd_of(float(share.std()), table)
    weight = market.drawn / market.drawn.sum(axis=1, keepdims=True)
    mean = weight @ share
    sds = np.sqrt(np.maximum(weight @ share**2 - mean**2, 0.0))
    return limits_of(value, np.array([level_sd_of(float(sd), table) for sd in sds]), len(up))


def _locations(means: Floats, level_sd: float) -> Floats:
    """`location_of_mean` of many means, from a table; any shape."""
    table = logistic(_LOCATIONS[:, None] + level_sd * quantiles(200)).mean(axis=1)
    found: Floats = np.interp(means, table, _LOCATIONS)
    return found


def _typical(market: WatchedMarket, up: Floats, hours: Floats, level_sd: float) -> Value:
    """Availability of the typical (median) level, of which the mean is what was seen."""
    mean = float(up.sum() / hours.sum())
    value = float(logistic(np.array(location_of_mean(mean, level_sd))))
    if len(up) < MIN_BLOCKS:
        return Value(value)
    drawn = (market.drawn @ up) / (market.drawn @ hours)
    return limits_of(value, logistic(_locations(drawn, level_sd)), len(up))


def _slope(market: WatchedMarket, up: Floats, hours: Floats, level_sd: float) -> Value | None:
    """Logits of level lost as the gang grows; None for series of one machine."""
    if len(market.sizes) < 2:
        return None
    value = slope(_locations(up.sum(axis=0) / hours.sum(), level_sd), market.sizes)
    if len(up) < MIN_BLOCKS:
        return Value(value)
    shares = (market.drawn @ up) / (market.drawn @ hours)[:, None]
    places = _locations(shares, level_sd)
    return limits_of(value, np.array([slope(row, market.sizes) for row in places]), len(up))


def gang_co_interruption(market: WatchedMarket) -> Value | None:
    """Co-interruption of a gang's machines; None for series of one machine."""
    if len(market.sizes) < 2:
        return None
    up = market.days([c.up_h for c in market.hourly])
    ends = market.days([c.ends for c in market.hourly])
    count = len(market.sizes)

    def rho(sums: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = sums[:, :count] / sums[:, count:]
        return np.array([co_interruption(row, market.sizes) for row in means])

    found = market.limited(rho, np.concatenate([up, ends], axis=1))
    return found if np.isfinite(found.value) else None
