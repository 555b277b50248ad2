"""Fits all figures of a trace: hazards, gangs, group losses, zones, hours, prices, a law."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from recommender.arrays import Floats
from recommender.errors import UsageError
from recommender.traces.fit_result import GangSize, LawFit, TraceFit, Value, Watched, ZoneSpread
from recommender.traces.intervals import gang_intervals, lives
from recommender.traces.law_fit import fit_laws, pool_intervals
from recommender.traces.market_law import gang_co_interruption, law_of
from recommender.traces.statistics import (
    MIN_BLOCKS,
    WatchedMarket,
    groups_of,
    integral,
    limits_of,
    market_of,
    prices_of,
    ratio,
)
from recommender.traces.trace import Place, Trace

PARTS = 32  # of a series' line


def fit(traces: Sequence[Trace]) -> TraceFit:
    """Estimate the law of a spot market from series of the same machines.

    Raises `UsageError` for series that do not belong together: several kinds of machines,
    or probed ones (could be had) with held ones (lived).
    """
    known = [trace for trace in traces if len(trace.t_s)]
    refuse_mixture(known)
    market = market_of(known) if known else None
    watched = tuple(_watched(trace) for trace in traces)
    if market is None:
        return TraceFit(watched, (), (), None, None, None, (), None, "only prices were watched")
    law, why = law_of(market)
    sizes = tuple(fit_size(market, column) for column in range(len(market.sizes)))
    return TraceFit(
        series=watched,
        laws=_laws(known),
        sizes=sizes,
        co_interruption=gang_co_interruption(market),
        groups=groups_of(market),
        zones=_zones(market),
        hours=_hours(market),
        law=law,
        no_law=why,
    )


def watch(traces: Sequence[Trace]) -> TraceFit:
    """Summarise series without fitting a law; series of any kind may be combined."""
    return TraceFit(
        tuple(map(_watched, traces)), (), (), None, None, None, (), None, "only watched, not fitted"
    )


def refuse_mixture(traces: Sequence[Trace]) -> None:
    """Refuse to pool series of different kinds."""
    machines = {machine_of(trace.place) for trace in traces} - {""}
    kinds = {trace.kind for trace in traces} - {""}
    problems = []
    if len(machines) > 1:
        listed = ", ".join(sorted(machines)[:6])
        problems.append(f"the series watch different machines ({listed}); choose with --series")
    if len(kinds) > 1:
        message = "some series were probed and some held, which are different laws"
        problems.append(f"{message}; choose with --series")
    if problems:
        raise UsageError(*problems)


def machine_of(place: Place) -> str:
    """The watched machine: its instance type, or its GPUs."""
    if place.instance_type or not place.gpu:
        return place.instance_type
    return f"{place.gpus}x {place.gpu}" if place.gpus else place.gpu


def _laws(traces: Sequence[Trace]) -> tuple[LawFit, ...]:
    """Laws of runs and outages of one machine, and of the lives of named machines."""
    intervals = [gang_intervals(trace, 1) for trace in traces]
    found = fit_laws("runs", pool_intervals([c.runs for c in intervals]))
    found += fit_laws("outages", pool_intervals([c.outages for c in intervals]))
    return found + fit_laws("lives", pool_intervals([lives(trace) for trace in traces]))


def fit_size(market: WatchedMarket, column: int) -> GangSize:
    """A gang of one size: share of time up and mean run, over all series."""
    up = market.days([c.up_h[:, column] for c in market.hourly])
    ends = market.days([c.ends[:, column] for c in market.hourly])
    hours = market.days([c.hours for c in market.hourly])
    stopped = int(ends.sum())
    run = market.limited(ratio, np.stack([up, ends], axis=1)) if stopped else None
    available = market.limited(ratio, np.stack([up, hours], axis=1))
    return GangSize(market.sizes[column], available, run, stopped)


def _zones(market: WatchedMarket) -> ZoneSpread | None:
    """How availabilities of one machine differ between series that were watched."""
    if len(market.traces) < 2:
        return None
    days_of = np.array([int(c.block.max()) + 1 for c in market.hourly])
    first = np.cumsum(days_of) - days_of  # day of each series
    up = market.days([c.up_h[:, 0] for c in market.hourly])
    hours = market.days([c.hours for c in market.hourly])

    def shares(weight: Floats) -> Floats:
        return np.add.reduceat(weight * up, first) / np.add.reduceat(weight * hours, first)

    found, days = shares(np.ones(len(up))), int(days_of.min())
    drawn = np.array([shares(row).std(ddof=1) for row in market.drawn])
    sd = float(found.std(ddof=1))
    names = [trace.name for trace in market.traces]
    return ZoneSpread(
        lowest=names[int(found.argmin())],
        highest=names[int(found.argmax())],
        sd=limits_of(sd, drawn, days) if days >= MIN_BLOCKS else Value(sd),
        low=float(found.min()),
        high=float(found.max()),
    )


def _hours(market: WatchedMarket) -> tuple[Value, ...]:
    """Availability of one machine by hour of the day; only series whose start is known."""
    if any(int(c.clock.min()) < 0 for c in market.hourly):
        return ()
    by_hour = np.eye(24)
    up = market.days([c.up_h[:, :1] * by_hour[c.clock] for c in market.hourly])
    hours = market.days([c.hours[:, None] * by_hour[c.clock] for c in market.hourly])
    if (hours.sum(axis=0) <= 0).any():
        return ()
    return tuple(
        market.limited(ratio, np.stack([up[:, hour], hours[:, hour]], axis=1)) for hour in range(24)
    )


def _watched(trace: Trace) -> Watched:
    p = trace.place
    begin = trace.start.isoformat().replace("+00:00", "Z") if trace.start else ""
    end = (trace.start + timedelta(seconds=trace.end_s)).isoformat() if trace.start else ""
    available, stopped = None, 0
    shares: tuple[float, ...] = ()
    if len(trace.t_s):
        market = market_of([trace])
        size = fit_size(market, 0)
        available, stopped = size.availability, size.interruptions
        shares = _shares(trace)
    return Watched(
        name=trace.name,
        provider=p.provider,
        region=p.region,
        zone=p.zone,
        machine=machine_of(p),
        gpu=p.gpu,
        gpus=p.gpus,
        kind=trace.kind,
        begin=begin,
        end=end.replace("+00:00", "Z"),
        hours=trace.end_s / 3600.0,
        step_s=trace.step_s,
        capacity=trace.capacity if len(trace.t_s) else 0,
        availability=available,
        interruptions=stopped,
        shares=shares,
        prices=prices_of(trace),
        price_line=_price_line(trace),
    )


def _shares(trace: Trace) -> tuple[float, ...]:
    edges = np.linspace(0.0, trace.end_s, PARTS + 1)
    mean = np.diff(integral(trace, edges)) / np.diff(edges)
    return tuple((mean / max(trace.capacity, 1)).tolist())


def _price_line(trace: Trace) -> tuple[float, ...]:
    usd = trace.usd_per_hour
    if not len(usd) or usd.min() == usd.max():
        return ()
    middle = np.linspace(0.0, trace.end_s, PARTS + 1)[:-1] + 0.5 * trace.end_s / PARTS
    rows = np.maximum(np.searchsorted(trace.price_t_s, middle, side="right") - 1, 0)
    return tuple(((usd[rows] - usd.min()) / (usd.max() - usd.min())).tolist())
