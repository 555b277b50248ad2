"""The first-order approximation of a plan, without simulated runs, for comparison.

Capacity alternates between runs X (mean u) and waits B (mean v). Progress per cycle has mean
a = E[kept(X)], so useful time passes at drift g with variance rate s²:

    g  = a / (u + v)                     s² = Var(kept(X) - g·(X + B)) / (u + v)
    waiting plan   T = d + first passage of W: inverse Gaussian, mean W/g, shape W²/s²
    fallback rule  t' = (D - R - W/f - g·d/f) / (1 - g/f): the slack is used up, the fallback
                   (speed f; R its start and reserve) takes over; done at d + W/g if before t'

The means of zones and of the true speed differ between paths (docs/method.md), so the law is
averaged over the same sample of them that the engine uses; so is the wait for machines that are
rented on demand, which comes before all of it. First order: where in a cycle the
job ends is ignored; the mean is 4-30 % low for jobs of a few cycles.
"""

from collections.abc import Callable

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.plan.simulation import ClosedForm
from recommender.risk.laws import OUTAGE_FAMILY, RunLaw
from recommender.risk.move_after import patient_wait_s, share_moved
from recommender.risk.normal_law import mills_ratio, normal_cdf
from recommender.risk.on_demand_wait import wait_s
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import random_numbers, time_factors
from recommender.risk.spot_capacity import Zones, zones_of

SAMPLE = 1024  # zones and speeds that the law is averaged over
_LOGITS = np.linspace(-20.0, 20.0, 2001)


@dataclass(frozen=True, slots=True)
class Cycle:
    """Means of one cycle of a run and the wait before it; shape (zones,)."""

    length_s: Floats
    drift: Floats
    variance: Floats  # of progress, per second
    billed: Floats  # share of the time that spot is paid
    moved: Floats  # share of the interruptions after which the checkpoint moves


def closed_form(p: PathInputs, deadline_s: float | None, law: RunLaw, seed: int) -> ClosedForm:
    """The first-order law of one plan; `p` holds one row, `law` the shape of its runs."""
    sample = random_numbers(SAMPLE, seed)
    zones = zones_of(p, sample)
    wait, variance = _waits(p, zones)
    moved = share_moved(p, zones.outage_s * p.zone_count[0])[0]
    cycle = _cycle(p, law, wait, variance, moved)
    work = p.work_s[0] * time_factors(float(p.speed_sigma[0]), sample.speed)
    if deadline_s is None or p.fallback_speed[0] <= 0.0:
        queue = wait_s(p.at_once, p.wait_s, sample.supply)
        return _waiting(p, deadline_s, cycle, work, queue)
    delay = wait_s(p.fallback_at_once, p.fallback_wait_s, sample.supply)
    return _net(p, deadline_s, cycle, work, delay)


def _waits(p: PathInputs, zones: Zones) -> tuple[Floats, Floats]:
    """Mean and variance of the wait in each zone.

    With patience the outages that end within it are those of one place, the others' squares are
    taken as they are of the wait without and what the patience adds at most.
    """
    outage, nowhere = zones.outage_s[0], zones.others_down[0]
    wait = patient_wait_s(p, zones.outage_s * p.zone_count[0], zones.others_down)[0]
    square = outage**2 * OUTAGE_FAMILY.mean_square(p.outage_sigma)[0] * nowhere
    square += p.move_after_s[0] * np.maximum(wait - outage * nowhere, 0.0)
    return wait, np.maximum(square - wait**2, 0.0)


def _cycle(
    p: PathInputs, law: RunLaw, wait_s: Floats, wait_variance: Floats, moved: Floats
) -> Cycle:
    """Moments over the quantiles of the run law, weighed by their width."""
    level = 1.0 / (1.0 + np.exp(-_LOGITS))
    weight = level * (1.0 - level)
    weight /= weight.sum()
    runs = p.run_mean_s[0] * law.lengths(level)
    runs *= p.run_mean_s[0] / (weight @ runs)
    interval, stall = p.interval_s[0], p.stall_s[0]
    usable = np.maximum(runs - p.changeover_s[0], 0.0)
    saved = p.notice_saves[0]
    pace = interval / (interval + stall)
    kept = saved * usable * pace
    kept += (1.0 - saved) * interval * np.floor(usable / (interval + stall))
    bill = np.where(runs < p.free_s[0], 0.0, np.maximum(runs, p.minimum_s[0]))
    mean_run, mean_kept = float(weight @ runs), float(weight @ kept)
    # An elastic cluster's on-demand part trains until the spot part has booted, but for a restart.
    joins = weight @ (runs > p.boot_s[0])
    away = wait_s + float(weight @ np.minimum(runs, p.boot_s[0])) - float(joins) * p.resize_s[0]
    away = np.maximum(away, 0.0) * pace
    length = mean_run + wait_s
    drift = np.maximum((mean_kept + p.elastic_share[0] * away) / length, 1e-9)
    spread = weight @ (kept[:, None] - mean_kept - drift * (runs - mean_run)[:, None]) ** 2
    variance = (spread + (drift - p.elastic_share[0]) ** 2 * wait_variance) / length
    return Cycle(length, drift, variance, float(weight @ bill) / length, moved)


def _waiting(
    p: PathInputs, deadline_s: float | None, cycle: Cycle, work: Floats, queue_s: Floats
) -> ClosedForm:
    start = p.changeover_s[0] + queue_s
    time = start + work / cycle.drift
    shape = work**2 / np.maximum(cycle.variance, 1e-6 * work)

    def before(moment: float) -> float:
        return float(_first_passage(moment - start, work / cycle.drift, shape).mean())

    return ClosedForm(
        law="inverse Gaussian",
        time_s=float(time.mean()),
        time_p95_s=_inverse(before, 0.95, float(time.max())),
        cost_usd=float(_spent(p, cycle, time - queue_s).mean()),
        chance=None if deadline_s is None else before(deadline_s),
        drift=float(cycle.drift.mean()),
        fallback_from_s=None,
        fallback_share=0.0,
    )


def _net(
    p: PathInputs, deadline_s: float, cycle: Cycle, work: Floats, delay_s: Floats
) -> ClosedForm:
    f, start = p.fallback_speed[0], p.changeover_s[0]
    slack = deadline_s - p.reserve_s[0] - p.fallback_start_s[0] - work / f - cycle.drift * start / f
    switch = np.maximum(slack / np.maximum(1.0 - cycle.drift / f, 1e-6), 0.0)
    done = start + work / cycle.drift
    needed = switch < done
    left = work - cycle.drift * np.maximum(switch - start, 0.0)
    rest = np.where(needed, p.fallback_start_s[0] + left / f, 0.0)
    first = np.where(needed, switch, done)
    usd = _spent(p, cycle, first)
    usd += rest * (p.fallback_usd_per_hour[0] + p.base_usd_per_hour[0]) / 3600.0
    return ClosedForm(
        law="fallback rule",
        time_s=float((first + rest + np.where(needed, delay_s, 0.0)).mean()),
        time_p95_s=None,
        cost_usd=float(usd.mean()),
        chance=None,
        drift=float(cycle.drift.mean()),
        fallback_from_s=float(switch[needed].mean()) if needed.any() else None,
        fallback_share=float(needed.mean()),
    )


def _spent(p: PathInputs, cycle: Cycle, time_s: Floats) -> Floats:
    """Bill of the first cluster: what runs all the time, spot as far as it is charged, moves."""
    hourly = p.base_usd_per_hour[0] + p.spot_usd_per_hour[0] * cycle.billed
    moves = p.usd_per_move[0] * cycle.moved * time_s / cycle.length_s
    return np.asarray(p.fixed_usd[0] + hourly * time_s / 3600.0 + moves)


def _first_passage(t: Floats, mean: Floats, shape: Floats) -> Floats:
    """P(T ≤ t), inverse Gaussian; the second term by Mills' ratio, as e^(2·shape/mean) overflows.

    Chhikara and Folks (1989), The Inverse Gaussian Distribution, eq. 2.1.
    """
    begun = t > 0.0
    t = np.where(begun, t, 1.0)
    root = np.sqrt(shape / t)
    z = root * (t / mean - 1.0)
    second = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * mills_ratio(root * (t / mean + 1.0))
    return np.where(begun, np.minimum(normal_cdf(z) + second, 1.0), 0.0)


def _inverse(before: Callable[[float], float], level: float, guess: float) -> float:
    low, high = 0.0, max(guess, 1.0)
    while before(high) < level and high < 1e12:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if before(middle) < level else (low, middle)
    return high
