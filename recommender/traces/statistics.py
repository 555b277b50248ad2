"""Figures of a market: machines lost together, prices, and sums over days to resample."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.laws import further_hazard, gang_doublings
from recommender.traces.fit_result import GroupLosses, PriceStatistics, Value
from recommender.traces.intervals import (
    HourlySums,
    blocks_of,
    by_block,
    edges_of,
    hourly_sums,
    sizes_of,
    weights,
)
from recommender.traces.law_fit import Z95
from recommender.traces.trace import HOUR, TAKEN, Trace

Statistic = Callable[[Floats], Floats]  # totals (n, figures) to values (n,)

MIN_BLOCKS = 5  # without which there are no limits
_RHOS = np.arange(0.0, 1.0001, 0.005)
TOGETHER_S = 60.0  # named machines taken less than this apart went together
_DAY_H = 24.0


@dataclass(frozen=True)
class WatchedMarket:
    """The series of one market, cut into hours; gang sizes up to the smallest capacity."""

    traces: tuple[Trace, ...]
    sizes: tuple[int, ...]
    hourly: tuple[HourlySums, ...]

    @cached_property
    def drawn(self) -> Floats:
        """How often each day is drawn; (replicates, days of all series)."""
        return weights([int(c.block.max()) + 1 for c in self.hourly])

    def days(self, values: Sequence[Floats]) -> Floats:
        """One figure per cell of each series, summed over its days; (days of all series, ...)."""
        pairs = zip(values, self.hourly, strict=True)
        return np.concatenate([by_block(v, c.block) for v, c in pairs])

    def limited(self, statistic: Statistic, sums: Floats) -> Value:
        """A statistic of summed figures with its limits; `sums` has shape (days, figures)."""
        return limited(statistic, sums, self.drawn)


def limited(statistic: Statistic, sums: Floats, drawn: Floats) -> Value:
    """A statistic of figures summed over days, and its limits from resampled days."""
    value = float(statistic(sums.sum(axis=0)[None])[0])
    if len(sums) < MIN_BLOCKS:
        return Value(value)
    return limits_of(value, statistic(drawn @ sums), len(sums))


def market_of(traces: Sequence[Trace]) -> WatchedMarket:
    """Cut series of machines into hours."""
    sizes = sizes_of(min(trace.capacity for trace in traces))
    return WatchedMarket(tuple(traces), sizes, tuple(hourly_sums(trace, sizes) for trace in traces))


def limits_of(value: float, replicates: Floats, units: int) -> Value:
    """Limits of a bootstrap over so many units; none where a tenth of it has no value.

    Quantiles of the replicates, further out where units are few: as far as Student's t is
    beyond the normal law, times √(n/(n-1)) (expanded percentile interval; Hesterberg, The
    American Statistician 69, 2015).
    """
    good = replicates[np.isfinite(replicates)]
    if len(good) < 0.9 * len(replicates) or units < 2:
        return Value(value)
    reach = math.sqrt(units / (units - 1.0)) * student(units - 1)
    tail = 0.5 * math.erfc(reach / math.sqrt(2.0))
    low, high = np.quantile(good, (tail, 1.0 - tail))
    return Value(value, min(float(low), value), max(float(high), value))


def student(degrees_of_freedom: int) -> float:
    """The 97.5 % quantile of Student's t (expansion in 1/ν; Abramowitz and Stegun 26.7.5)."""
    z, v = Z95, float(degrees_of_freedom)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


def ratio(sums: Floats) -> Floats:
    """First figure per second one, infinite where the second is zero; (n, 2) to (n,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.inf)


def co_interruption(run_means: Floats, sizes: Sequence[int]) -> float:
    """ρ of u(n) = u(1)/`gang_hazard`(n, ρ), least squares of ln u over gang sizes.

    Sizes that were never interrupted say nothing; not a number where only one is left.
    """
    n = np.array(sizes, dtype=np.float64)
    known = np.isfinite(run_means) & (run_means > 0) & (n > 1)
    if not known.any() or not np.isfinite(run_means[0]):
        return float("nan")
    fall = np.log(run_means[0] / run_means[known])
    law = np.log1p(further_hazard(n[known][None], _RHOS[:, None]))
    return float(_RHOS[int(((fall - law) ** 2).sum(axis=1).argmin())])


def slope(locations: Floats, sizes: Sequence[int]) -> float:
    """Logits of availability lost per log2(1 + (n-1)/GANG_KNEE), least squares; (sizes,) to one.

    The unit of the classes (`SpotClass.availability_slope`), in whose place it is put.
    """
    doublings = gang_doublings(np.array(sizes, dtype=np.float64))
    centred = doublings - doublings.mean()
    return float((centred * (locations[0] - locations)).sum() / (centred**2).sum())


def losses(trace: Trace) -> tuple[Floats, Ints]:
    """Moments at which machines were taken, and how many; both shape (moments,).

    Of a series of counts every fall is a loss; named machines distinguish losses from returns.
    """
    if not len(trace.events):
        falls = -np.diff(trace.machines)
        return trace.t_s[1:][falls > 0], falls[falls > 0]
    taken = trace.events.t_s[trace.events.change == TAKEN]
    if not len(taken):
        return taken, np.empty(0, dtype=np.int64)
    first = np.ones(len(taken), dtype=np.bool_)
    first[1:] = np.diff(taken) >= max(TOGETHER_S, trace.step_s)
    return taken[first], np.diff(np.append(np.flatnonzero(first), len(taken)))


def groups_of(market: WatchedMarket) -> GroupLosses | None:
    """Co-interruption of single machines; None for series of one machine or without a loss."""
    if max(trace.capacity for trace in market.traces) < 2:
        return None
    figures = [_loss_cells(trace) for trace in market.traces]
    sums = market.days(figures)
    lost, moments = sums[:, :2].sum(axis=0).tolist()
    if not lost:
        return None
    named = all(len(trace.events) for trace in market.traces)
    return GroupLosses(
        lost=int(lost),
        moments=int(moments),
        mean_group=market.limited(lambda s: ratio(s[:, [0, 1]]), sums),
        share_in_groups=market.limited(lambda s: ratio(s[:, [2, 0]]), sums),
        per_machine_hour=market.limited(lambda s: ratio(s[:, [0, 3]]), sums),
        co_interruption=market.limited(_together, sums) if named else None,
    )


def _together(sums: Floats) -> Floats:
    """ρ of named machines: n machines of hazard λ are lost in groups of m = n·λ/Λ(n).

    Λ(n) = λ·(1 + (n - 1)(1 - ρ)), so ρ = 1 - (n/m - 1)/(n - 1); n is the mean number up when
    some are lost.
    """
    group, up = ratio(sums[:, [0, 1]]), ratio(sums[:, [4, 1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(up > 1.0, 1.0 - (up / group - 1.0) / (up - 1.0), np.nan)


def _loss_cells(trace: Trace) -> Floats:
    """By hour, (hours, 5): machines lost, moments, lost with another, machine-hours, up then."""
    edges = edges_of(trace)
    at, many = losses(trace)
    before = trace.machines_at(at - 1e-3) if len(at) else many
    lost, moments, together, up = (
        np.histogram(at, edges, weights=each)[0]
        for each in (many, np.ones(len(many)), np.where(many > 1, many, 0), before)
    )
    hours = np.diff(integral(trace, edges)) / HOUR
    return np.stack([lost, moments, together, hours, up], axis=1).astype(np.float64)


def integral(trace: Trace, at: Floats) -> Floats:
    """Machine-seconds up from 0 to some times; any shape."""
    ends = np.append(trace.t_s, trace.end_s)
    total = np.concatenate([[0.0], np.cumsum(np.diff(ends) * trace.machines)])
    return np.asarray(np.interp(at, ends, total), dtype=np.float64)


def prices_of(trace: Trace) -> PriceStatistics | None:
    """Price facts of one series; None where no price is known."""
    if not len(trace.usd_per_hour):
        return None
    usd, at = trace.usd_per_hour, np.append(trace.price_t_s, trace.end_s)
    edges = edges_of(trace)
    edges = edges[edges >= at[0]]
    if len(edges) < 2:
        edges = np.array([at[0], max(trace.end_s, at[0] + 1.0)])
    paid = np.concatenate([[0.0], np.cumsum(np.diff(at) * usd)])
    changed = np.histogram(trace.price_t_s[1:], edges)[0]
    sums_by_hour = np.stack([np.diff(np.interp(edges, at, paid)), np.diff(edges), changed], axis=1)
    block = blocks_of(edges)
    sums, drawn = by_block(sums_by_hour, block), weights([int(block.max()) + 1])
    return PriceStatistics(
        mean_usd=limited(lambda s: ratio(s[:, [0, 1]]), sums, drawn),
        min_usd=float(usd.min()),
        most_usd=float(usd.max()),
        changes_per_day=limited(lambda s: ratio(s[:, [2, 1]]) * _DAY_H * HOUR, sums, drawn),
        moves_1d=_moves(trace, edges, 1, drawn),
        moves_7d=_moves(trace, edges, 7, drawn),
    )


def _moves(trace: Trace, edges: Floats, days: int, drawn: Floats) -> Value | None:
    """Root mean square of ln(price some days later / price), looked at every hour."""
    lag = days * _DAY_H * HOUR
    times = edges[:-1]
    usable = times + lag <= trace.end_s
    if usable.sum() < _DAY_H:
        return None
    begin = np.searchsorted(trace.price_t_s, times, side="right") - 1
    later = np.searchsorted(trace.price_t_s, times + lag, side="right") - 1
    move = np.log(trace.usd_per_hour[later] / trace.usd_per_hour[begin])
    sums_by_hour = np.stack([np.where(usable, move**2, 0.0), usable], axis=1)
    sums = by_block(sums_by_hour, blocks_of(edges))
    return limited(lambda s: np.sqrt(ratio(s)), sums, drawn)
