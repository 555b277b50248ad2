"""The law of a job on capacity that comes and goes: vectorised Monte Carlo.

A *journey* is a plan reduced to what its time and bill depend on: work, prices, the law of
runs and outages, the changeover, checkpoints, billing rules and the fallback. Every history
of the common draws is followed run by run:

    wait B  ->  run X: changeover d, then intervals of tau work + C stall  ->  interruption
    durable progress of a run   tau·floor((X - d)+ / (tau + C)),   or (X - d)+·tau/(tau + C)
                                where the last save beats the notice
    safety net                  rent the fallback at the first t with
                                t + (work - durable(t))/speed + reserve >= deadline

Times are seconds, prices USD per hour. On-demand machines are the same process with long
runs between faults and no waiting.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.risk.draws import SEED, SITES, Draws, draws, factors

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]  # the (plans, paths, cycles) stage: half the memory traffic
Ints = NDArray[np.int64]

_CELLS = 1 << 16  # paths × cycles × plans per batch: stays in the second-level cache
_MOST_CYCLES = 512


@dataclass(frozen=True, slots=True)
class Journeys:
    """Many plans at once; every field has shape (plans,)."""

    work_s: Floats  # training time on the whole cluster, nothing lost
    speed_sigma: Floats
    base_usd_per_hour: Floats  # machines paid from the first to the last second
    spot_usd_per_hour: Floats
    spot_price_sigma: Floats
    fixed_usd: Floats
    usd_per_interruption: Floats
    run_mean_s: Floats  # of the gang
    run_sigma: Floats
    outage_sigma: Floats
    availability_logit: Floats  # of the gang in a typical zone
    zone_sd: Floats
    sites: Floats  # length of the failover list
    correlation: Floats  # of two listed zones being down together
    held: NDArray[np.bool_]  # runs are counted from the machine's start
    changeover_s: Floats
    interval_s: Floats
    stall_s: Floats
    notice_saves: Floats  # chance that the last save beats the notice
    elastic_share: Floats  # speed left while the spot part is away
    minimum_s: Floats  # billing minimum
    free_s: Floats  # an interruption before this age costs nothing
    fallback_speed: Floats  # relative to the cluster; 0 = no fallback
    fallback_usd_per_hour: Floats
    fallback_start_s: Floats  # boot, restore and set-up on the fallback
    fallback_at_once: Floats  # chance that on-demand capacity is there
    fallback_wait_s: Floats  # and the wait otherwise
    reserve_s: Floats  # kept beyond the time to finish on the fallback
    best_net_usd: Floats  # USD per hour of this cluster's work on the cheapest fallback; inf: none
    best_net_speed: Floats  # of the fastest fallback
    at_once: Floats  # chance that the cluster's own on-demand machines are there
    wait_s: Floats  # and the wait otherwise

    def __len__(self) -> int:
        return len(self.work_s)

    def take(self, rows: Ints) -> "Journeys":
        """The journeys of some rows."""
        return Journeys(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Histories:
    """What happened to each plan in each history; every field has shape (plans, paths)."""

    time_s: Floats
    cost_usd: Floats
    expected_usd: Floats  # the same at the expected price: its mean is the expected cost
    net_usd: Floats  # least bill if any fallback could take over after any run
    spot_s: Floats  # spot time paid for
    running_s: Floats  # time with the cluster up, fallback included
    fallback_s: Floats
    waiting_s: Floats
    interruptions: Floats
    restarts_s: Floats  # changeovers after the first
    trained_s: Floats  # useful training on either cluster


def follow(plans: Journeys, deadline_s: float | None, paths: int, seed: int = SEED) -> Histories:
    """Follow every plan through every history."""
    cycles = cycles_needed(plans, deadline_s)
    result = Histories(*(np.empty((len(plans), paths)) for _ in Histories.__slots__))
    for count in np.unique(cycles):
        rows = np.flatnonzero(cycles == count)
        sample = draws(paths, int(count), seed)
        size = max(1, _CELLS // (paths * int(count)))
        for first in range(0, len(rows), size):
            batch = rows[first : first + size]
            found = _follow_batch(plans.take(batch), deadline_s, sample)
            for name in Histories.__slots__:
                getattr(result, name)[batch] = getattr(found, name)
    return result


def cycles_needed(plans: Journeys, deadline_s: float | None) -> Ints:
    """How many runs to draw: enough for nearly every history, in steps of eight."""
    useful = np.maximum(plans.run_mean_s - plans.changeover_s, 0.25 * plans.run_mean_s)
    runs = plans.work_s / useful
    if deadline_s is not None:
        with_net = plans.fallback_speed > 0
        runs = np.where(with_net, np.minimum(runs, deadline_s / plans.run_mean_s), runs)
    wanted = np.clip(1.5 * runs + 6.0, 8, _MOST_CYCLES)
    step = np.where(wanted <= 64, 8, 64)
    return (np.ceil(wanted / step) * step).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of a batch; shape (plans, paths, cycles), seconds."""

    starts: Singles
    lengths: Singles
    usable: Singles
    durable: Singles  # progress when the run begins to train
    live: Singles  # most work that the run can do, saved or not
    waits: Singles


def _follow_batch(p: Journeys, deadline_s: float | None, sample: Draws) -> Histories:
    speed = np.exp(p.speed_sigma[:, None] * sample.speed - 0.5 * p.speed_sigma[:, None] ** 2)
    work = p.work_s[:, None] * speed
    runs = _draw_runs(p, sample)
    done = runs.durable + runs.live >= work.astype(np.float32)[:, :, None]
    last, finished = _first(done)
    left = work - _at(runs.durable, last)
    intervals = np.floor(np.maximum(left - 1e-3, 0.0) / p.interval_s[:, None])
    use = left + p.stall_s[:, None] * intervals
    # An elastic job can end while the spot part is away, even before the last run starts.
    use = np.where(left <= 0.0, left / np.maximum(p.elastic_share[:, None], 1e-3), use)
    use += _ready(p, runs, last)
    use, again = _extrapolate(work, runs, last, finished, use)
    time = _at(runs.starts, last) + use
    net = _safety_net(p, deadline_s, work, runs, last, time, use, sample)
    least = _least_with_net(p, work, runs, last)
    return _account(p, runs, net, again, least, sample)


def _ready(p: Journeys, runs: "_Runs", index: Ints) -> Floats:
    """Seconds from the start of a run until it trains (or ends before that)."""
    return np.minimum(p.changeover_s[:, None], _at(runs.lengths, index))


def _c3(column: Floats) -> Singles:
    return column.astype(np.float32)[:, None, None]


def _at(values: Singles, index: Ints) -> Floats:
    return np.take_along_axis(values, index[:, :, None], axis=2)[:, :, 0].astype(np.float64)


def _first(hit: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.bool_]]:
    """Index of the first hit along the cycles (the last cycle if none), and whether any."""
    index = hit.argmax(axis=2)
    found = np.take_along_axis(hit, index[:, :, None], axis=2)[:, :, 0]
    return np.where(found, index, hit.shape[2] - 1), found


def _draw_runs(p: Journeys, sample: Draws) -> _Runs:
    up = _logistic(p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone[:, 0])
    others_down = _others_down(p, sample)
    mean_run = p.run_mean_s[:, None] * np.ones_like(up)
    mean_outage = mean_run * (1.0 - up) / up / p.sites[:, None]
    lengths = mean_run.astype(np.float32)[:, :, None] * _factors(p.run_sigma, sample, "run")
    waits = mean_outage.astype(np.float32)[:, :, None] * _factors(p.outage_sigma, sample, "outage")
    waits *= sample.moved[None] < others_down.astype(np.float32)[:, :, None]
    _random_start(p, sample, lengths, waits, mean_run, mean_outage, (1.0 - up) * others_down)
    starts = np.cumsum(waits + lengths, axis=2, dtype=np.float32)
    starts -= lengths
    usable = np.maximum(lengths - _c3(p.changeover_s), np.float32(0.0))
    kept, live = _progress(p, usable, sample)
    durable = np.cumsum(kept, axis=2, dtype=np.float32)
    durable -= kept
    if np.any(p.elastic_share > 0.0):
        # The on-demand part trains whenever the spot part is away, once it has started itself.
        away = np.cumsum(waits + np.minimum(lengths, _c3(p.changeover_s)), axis=2)
        durable += _c3(p.elastic_share) * np.maximum(away - _c3(p.changeover_s), np.float32(0.0))
    return _Runs(starts, lengths, usable, durable, live, waits)


def _logistic(value: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-value))


def _factors(sigma: Floats, sample: Draws, which: str) -> Singles:
    """Lognormal factors of mean one for each plan's sigma; plans of a batch often share it."""
    if np.all(sigma == sigma[0]):
        return factors(sample, which, float(sigma[0]))[None]
    return np.stack([factors(sample, which, float(value)) for value in sigma])


def _others_down(p: Journeys, sample: Draws) -> Floats:
    """Chance that no other listed zone is up when this one is not.

    For two zones of equal availability a and correlation c, P(up | other down) = a(1 - c).
    """
    share = np.ones((len(p), sample.zone.shape[0]))
    for site in range(1, SITES):
        level = p.availability_logit[:, None] + p.zone_sd[:, None] * sample.zone[:, site]
        down = 1.0 - _logistic(level) * (1.0 - p.correlation[:, None])
        share = np.where(p.sites[:, None] > site, share * down, share)
    return share


def _random_start(
    p: Journeys,
    sample: Draws,
    lengths: Singles,
    waits: Singles,
    mean_run: Floats,
    mean_outage: Floats,
    down: Floats,
) -> None:
    """The job asks at a random moment: the first run (or outage) is a residue.

    A run met at random is length-biased: for a lognormal, ln X ~ N(mu + sigma², sigma²).
    """
    is_down = sample.start[None] < down
    biased = np.exp(p.run_sigma[:, None] ** 2) * sample.residue[None]
    met = np.where(is_down | p.held[:, None], 1.0, biased)
    lengths[:, :, 0] *= met
    biased = np.exp(p.outage_sigma[:, None] ** 2) * sample.residue[None]
    first = mean_outage * _factors(p.outage_sigma, sample, "outage")[:, :, 0]
    waits[:, :, 0] = np.where(is_down, first * biased, 0.0)


def _progress(p: Journeys, usable: Singles, sample: Draws) -> tuple[Singles, Singles]:
    """Durable progress of each interrupted run, and the most it can do until its end."""
    cycle = _c3(p.interval_s + p.stall_s)
    interval = _c3(p.interval_s)
    whole = np.floor(usable / cycle)
    live = usable - whole * cycle
    whole *= interval
    np.minimum(live, interval, out=live)
    live += whole
    if np.any(p.notice_saves > 0.0):
        saves = sample.notice[None] < _c3(p.notice_saves)
        whole = np.where(saves, usable * (interval / cycle), whole)
    return whole, live


def _extrapolate(
    work: Floats, runs: _Runs, last: Ints, finished: NDArray[np.bool_], use: Floats
) -> tuple[Floats, Floats]:
    """Histories that outlast the draws go on at their own average pace.

    Returns the time used from the start of the last drawn run, and by what factor the drawn
    history is repeated (0 where it was long enough).
    """
    if finished.all():
        return use, np.zeros_like(use)
    elapsed = np.maximum(_at(runs.starts, last), 1.0)
    done = np.maximum(_at(runs.durable, last), 1e-4 * elapsed)
    again = np.maximum(work - _at(runs.durable, last), 0.0) / done
    return np.where(finished, use, again * elapsed), np.where(finished, 0.0, again)


@dataclass(frozen=True, slots=True)
class _Net:
    """Where each history stopped on the first cluster; shape (plans, paths)."""

    run: Ints
    used_s: Floats  # of the last run; 0 if stopped while waiting
    waiting_s: Floats  # wait of the last run that did not happen
    stop_s: Floats
    rest_s: Floats  # on the fallback: training, restart and restore
    delay_s: Floats  # until the fallback was there
    trained_s: Floats


def _safety_net(
    p: Journeys,
    deadline_s: float | None,
    work: Floats,
    runs: _Runs,
    last: Ints,
    time: Floats,
    use: Floats,
    sample: Draws,
) -> _Net:
    nothing = np.zeros_like(time)
    plain = _Net(last, use, np.maximum(-use, 0.0), time, nothing, nothing, work)
    if deadline_s is None or not np.any(p.fallback_speed > 0.0):
        return plain
    run, start, x, stop, durable = _crossing(p, deadline_s, work, runs)
    net = (p.fallback_speed[:, None] > 0.0) & (stop < time)
    speed = np.maximum(p.fallback_speed[:, None], 1e-9)
    rest = (work - durable) / speed + p.fallback_start_s[:, None]
    late = sample.on_demand[None] >= p.fallback_at_once[:, None]
    return _Net(
        run=np.where(net, run, last),
        used_s=np.where(net, np.maximum(x, 0.0), use),
        waiting_s=np.where(net, np.maximum(start - stop, 0.0), np.maximum(-use, 0.0)),
        stop_s=np.where(net, stop, time),
        rest_s=np.where(net, rest, 0.0),
        delay_s=np.where(net & late, p.fallback_wait_s[:, None], 0.0),
        trained_s=np.where(net, durable + (work - durable) / speed, work),
    )


def _crossing(
    p: Journeys, deadline_s: float, work: Floats, runs: _Runs
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
    height = np.maximum(runs.usable - _c3(p.interval_s + p.stall_s), np.float32(0.0))
    height *= -_c3(p.interval_s / (p.interval_s + p.stall_s))
    height += _c3(p.fallback_speed) * (runs.starts + runs.lengths)
    height -= runs.durable
    run, _ = _first(height >= mark.astype(np.float32)[:, :, None])
    start, durable = _at(runs.starts, run), _at(runs.durable, run)
    ready = _ready(p, runs, run)
    gap = mark - (speed * (start + ready) - durable)
    flat = gap / np.maximum(speed, 1e-9)
    steep = cycle + (gap - speed * cycle) / np.maximum(speed - pace, 1e-9)
    share = p.elastic_share[:, None]
    away = gap / np.maximum(speed - share, 1e-9)
    trains = np.where(gap < 0.0, away, np.where(gap <= speed * cycle, flat, steep))
    kept = durable + trains * np.where(gap < 0.0, share, pace)
    # Before the on-demand part of an elastic job has started, nothing is done.
    first = np.minimum(mark / np.maximum(speed, 1e-9), p.changeover_s[:, None])
    stop = np.maximum(np.maximum(start + ready + trains, first), 0.0)
    return run, start, stop - start, stop, np.clip(kept, 0.0, work)


def _account(
    p: Journeys, runs: _Runs, net: _Net, again: Floats, least: Floats, sample: Draws
) -> Histories:
    """Time, bill and where the time went."""
    waited, billed = _sums_before(p, runs, net.run)
    again = np.where(net.rest_s > 0.0, 0.0, again)
    used = np.maximum(net.used_s, np.where(net.used_s > 0.0, p.minimum_s[:, None], 0.0))
    waited = np.where(again > 0.0, waited * (1.0 + again), waited - net.waiting_s)
    waiting = np.clip(waited, 0.0, net.stop_s)
    late = sample.on_demand[None] >= p.at_once[:, None]
    queued = np.where(late, p.wait_s[:, None], 0.0)
    time = net.stop_s + net.delay_s + net.rest_s
    up = net.stop_s - waiting
    on_spot = billed + np.where(again > 0.0, billed * again, used)
    interruptions = net.run * (1.0 + again)
    spot_usd = p.spot_usd_per_hour[:, None] * on_spot / 3600.0
    cost = (
        p.fixed_usd[:, None]
        + p.base_usd_per_hour[:, None] * time / 3600.0
        + p.fallback_usd_per_hour[:, None] * net.rest_s / 3600.0
        + p.usd_per_interruption[:, None] * interruptions
    )
    return Histories(
        time_s=time + queued,
        cost_usd=cost + spot_usd * _price_factor(p, sample),
        expected_usd=cost + spot_usd,
        net_usd=np.minimum(cost + spot_usd, least),
        spot_s=on_spot,
        running_s=up + net.rest_s,
        fallback_s=net.rest_s,
        waiting_s=waiting + net.delay_s + queued,
        interruptions=interruptions,
        restarts_s=np.minimum(interruptions * p.changeover_s[:, None], up),
        trained_s=net.trained_s,
    )


def _least_with_net(p: Journeys, work: Floats, runs: _Runs, last: Ints) -> Floats:
    """Least bill of each history if the best fallback could take over at any moment.

    Bills and progress are linear within a run, so it is enough to look at the starts of runs
    (durable progress) and at their ends (a planned stop saves first). A bound on every plan
    that differs in its fallback only.
    """
    if not np.any(np.isfinite(p.best_net_usd)):
        return np.full(work.shape, np.inf)
    bill, billed = _bills(p, runs)
    rest = np.maximum(work.astype(np.float32)[:, :, None] - runs.durable, np.float32(0.0))
    saved = runs.usable * _c3(p.interval_s / (p.interval_s + p.stall_s))
    after = np.maximum(rest - saved, np.float32(0.0))
    base, spot = _c3(p.base_usd_per_hour), _c3(p.spot_usd_per_hour)
    rate = _c3(np.minimum(p.best_net_usd, 1e12)) + base / _c3(np.maximum(p.best_net_speed, 1e-9))
    at_start = spot * billed + rate * rest + base * (runs.starts - runs.waits)
    at_end = spot * (billed + np.maximum(runs.lengths, bill)) + rate * after
    at_end += base * (runs.starts + runs.lengths)
    usd = np.minimum(at_start, at_end)
    beyond = np.arange(usd.shape[2])[None, None] > last[:, :, None]
    least: Floats = np.where(beyond, np.inf, usd).min(axis=2)
    return p.fixed_usd[:, None] + least / 3600.0


def _price_factor(p: Journeys, sample: Draws) -> Floats:
    """How far the spot price has moved: lognormal of mean one, the same in all plans."""
    sigma = p.spot_price_sigma[:, None]
    return np.exp(sigma * sample.price - 0.5 * sigma**2)


def _sums_before(p: Journeys, runs: _Runs, run: Ints) -> tuple[Floats, Floats]:
    """Time waited up to a run, and spot time charged for the runs before it."""
    waited = _at(np.cumsum(runs.waits, axis=2, dtype=np.float32), run)
    return waited, _at(_bills(p, runs)[1], run)


def _bills(p: Journeys, runs: _Runs) -> tuple[Singles, Singles]:
    """Spot seconds charged for each interrupted run, and for all runs before it."""
    free = _c3(p.free_s)
    bill = np.where(runs.lengths < free, np.float32(0.0), runs.lengths)
    np.maximum(bill, _c3(p.minimum_s), out=bill, where=runs.lengths >= free)
    billed = np.cumsum(bill, axis=2, dtype=np.float32)
    billed -= bill
    return bill, billed
