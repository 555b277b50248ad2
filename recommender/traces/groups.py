"""Machines lost together, and prices: what a series tells beside runs and outages."""

import numpy as np

from recommender.traces.facts import Groups, Prices, Value
from recommender.traces.spells import blocks_of, by_block, edges_of, weights
from recommender.traces.sums import Market, limited, ratio
from recommender.traces.trace import HOUR, TAKEN, Floats, Ints, Trace

TOGETHER_S = 60.0  # named machines taken less than this apart went together
_DAY_H = 24.0


def losses(trace: Trace) -> tuple[Floats, Ints]:
    """Moments at which machines were taken, and how many; both shape (moments,).

    Of a series of counts every fall is a loss; named machines tell losses from returns.
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


def groups_of(market: Market) -> Groups | None:
    """Co-interruption of single machines; None for series of one machine or without a loss."""
    if max(trace.capacity for trace in market.traces) < 2:
        return None
    figures = [_loss_cells(trace) for trace in market.traces]
    sums = market.days(figures)
    lost, moments = sums[:, :2].sum(axis=0).tolist()
    if not lost:
        return None
    named = all(len(trace.events) for trace in market.traces)
    return Groups(
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
    """By hour, (cells, 5): machines lost, moments, lost with another, machine-hours, up then."""
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


def prices_of(trace: Trace) -> Prices | None:
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
    cells = np.stack([np.diff(np.interp(edges, at, paid)), np.diff(edges), changed], axis=1)
    block = blocks_of(edges)
    sums, drawn = by_block(cells, block), weights([int(block.max()) + 1])
    return Prices(
        mean_usd=limited(lambda s: ratio(s[:, [0, 1]]), sums, drawn),
        least_usd=float(usd.min()),
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
    cells = np.stack([np.where(usable, move**2, 0.0), usable], axis=1)
    sums = by_block(cells, blocks_of(edges))
    return limited(lambda s: np.sqrt(ratio(s)), sums, drawn)
