"""The safety net: when the fallback takes over, and the least that any fallback could cost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.risk.draws import Draws
from recommender.risk.plans import Journeys
from recommender.risk.runs import Runs, at, first, row

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ready_s(p: Journeys, runs: Runs, index: Ints) -> Floats:
    """Seconds from the start of a run until it trains (or ends before that)."""
    return np.minimum(p.changeover_s[:, None], at(runs.lengths, index))


@dataclass(frozen=True, slots=True)
class Stop:
    """Where each history stopped on the first cluster; shape (plans, paths)."""

    run: Ints
    used_s: Floats  # of the last run; 0 if stopped while waiting
    waiting_s: Floats  # wait of the last run that did not happen
    stop_s: Floats
    rest_s: Floats  # on the fallback: training, restart and restore
    delay_s: Floats  # until the fallback was there
    trained_s: Floats


def safety_net(
    p: Journeys,
    deadline_s: float | None,
    work: Floats,
    runs: Runs,
    last: Ints,
    time: Floats,
    use: Floats,
    sample: Draws,
) -> Stop:
    """Where each history leaves its first cluster: at the end, or for the fallback."""
    nothing = np.zeros_like(time)
    plain = Stop(last, use, np.maximum(-use, 0.0), time, nothing, nothing, work)
    if deadline_s is None or not np.any(p.fallback_speed > 0.0):
        return plain
    run, start, x, stop, durable = _crossing(p, deadline_s, work, runs)
    net = (p.fallback_speed[:, None] > 0.0) & (stop < time)
    speed = np.maximum(p.fallback_speed[:, None], 1e-9)
    rest = (work - durable) / speed + p.fallback_start_s[:, None]
    late = sample.on_demand[None] >= p.fallback_at_once[:, None]
    return Stop(
        run=np.where(net, run, last),
        used_s=np.where(net, np.maximum(x, 0.0), use),
        waiting_s=np.where(net, np.maximum(start - stop, 0.0), np.maximum(-use, 0.0)),
        stop_s=np.where(net, stop, time),
        rest_s=np.where(net, rest, 0.0),
        delay_s=np.where(net & late, p.fallback_wait_s[:, None], 0.0),
        trained_s=np.where(net, durable + (work - durable) / speed, work),
    )


def _crossing(
    p: Journeys, deadline_s: float, work: Floats, runs: Runs
) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """First moment at which the time left is the time to finish on the fallback.

    With speed f, h(t) = f·t - durable(t) never falls; it crosses f·(D - reserve) - work.
    Within a run the durable progress just before a save is used.
    Returns run, its start, time into it (negative: while waiting), moment, durable progress.
    """
    speed = p.fallback_speed[:, None]
    latest = deadline_s - p.reserve_s - p.fallback_start_s
    mark = speed * latest[:, None] - work
    cycle = (p.interval_s + p.stall_s)[:, None]
    pace = (p.interval_s / (p.interval_s + p.stall_s))[:, None]
    height = np.maximum(runs.usable - row(p.interval_s + p.stall_s), np.float32(0.0))
    height *= -row(p.interval_s / (p.interval_s + p.stall_s))
    height += row(p.fallback_speed) * (runs.starts + runs.lengths)
    height -= runs.durable
    run, _ = first(height >= mark.astype(np.float32)[None])
    start, durable = at(runs.starts, run), at(runs.durable, run)
    ready = ready_s(p, runs, run)
    gap = mark - (speed * (start + ready) - durable)
    flat = gap / np.maximum(speed, 1e-9)
    steep = cycle + (gap - speed * cycle) / np.maximum(speed - pace, 1e-9)
    share = p.elastic_share[:, None]
    away = gap / np.maximum(speed - share, 1e-9)
    trains = np.where(gap < 0.0, away, np.where(gap <= speed * cycle, flat, steep))
    kept = durable + trains * np.where(gap < 0.0, share, pace)
    # Before the on-demand part of an elastic job has started, nothing is done.
    earliest = np.minimum(mark / np.maximum(speed, 1e-9), p.changeover_s[:, None])
    stop = np.maximum(np.maximum(start + ready + trains, earliest), 0.0)
    return run, start, stop - start, stop, np.clip(kept, 0.0, work)


def least_with_net(p: Journeys, work: Floats, runs: Runs, last: Ints) -> Floats:
    """Least bill of each history if the best fallback could take over at any moment.

    Bills and progress are linear within a run, so it is enough to look at the starts of runs
    (durable progress) and at their ends (a planned stop saves first). A bound on every plan
    that differs in its fallback only.
    """
    if not np.any(np.isfinite(p.best_net_usd)):
        return np.full(work.shape, np.inf)
    rest = np.maximum(work.astype(np.float32)[None] - runs.durable, np.float32(0.0))
    base, spot = row(p.base_usd_per_hour), row(p.spot_usd_per_hour)
    rate = row(np.minimum(p.best_net_usd, 1e12)) + base / row(np.maximum(p.best_net_speed, 1e-9))
    at_start = spot * runs.billed
    at_end = np.maximum(runs.lengths, runs.bill)
    at_end *= spot
    at_end += at_start
    at_start += rate * rest
    rest -= runs.usable * row(p.interval_s / (p.interval_s + p.stall_s))
    np.maximum(rest, np.float32(0.0), out=rest)
    rest *= rate
    at_end += rest
    if np.any(base > 0.0):
        at_start += base * (runs.starts - runs.waits)
        at_end += base * (runs.starts + runs.lengths)
    usd = np.minimum(at_start, at_end, out=at_start)
    beyond = np.arange(usd.shape[0])[:, None, None] > last[None]
    np.copyto(usd, np.float32(np.inf), where=beyond)
    least: Floats = usd.min(axis=0).astype(np.float64)
    return p.fixed_usd[:, None] + least / 3600.0
