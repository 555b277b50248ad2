"""Bounds that hold for every plan they stand for: what is pruned was proven worse.

`cluster_floor` needs only sums of prices and speeds, so it covers every plan that could be
made of a cluster; `plan_floor` knows the checkpoint path and fallback as well. Tests compare
both with the full model of every plan below them.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.space import Site, Space
from recommender.risk.draws import draws
from recommender.risk.journey import Journeys

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Share by which a law's expectation may exceed the mean over the common histories.
SAMPLING = 0.85


def least_speed_factor(space: Space, sigma: Floats) -> Floats:
    """Mean over the common histories of true time / predicted time."""
    values, where = np.unique(sigma, return_inverse=True)
    means = [_mean_speed_factor(space.histories, space.seed, float(value)) for value in values]
    return np.array(means)[where]


@lru_cache(maxsize=256)
def _mean_speed_factor(histories: int, seed: int, sigma: float) -> float:
    sample = draws(histories, 8, seed).speed
    return float(np.exp(sigma * sample - 0.5 * sigma**2).mean())


def paid_share(run_mean_s: Floats, run_sigma: Floats, free_s: Floats) -> Floats:
    """Least share of spot time that is charged where interrupted first hours are free.

    E[X; X >= f]/E[X] for lognormal runs, by Wald's identity a bound on charged per useful
    time; 1 where nothing is free.
    """
    with np.errstate(divide="ignore"):
        z = np.log(np.maximum(run_mean_s, 1.0)) + 0.5 * run_sigma**2 - np.log(free_s)
    z = z / run_sigma
    return np.where(free_s > 60.0, SAMPLING * _normal_cdf(z), 1.0)


def _normal_cdf(z: Floats) -> Floats:
    """Lower bound of the standard normal distribution: logistic form, less its largest error."""
    z = np.clip(z, -30.0, 30.0)
    return np.maximum(1.0 / (1.0 + np.exp(-1.5976 * z - 0.07056 * z**3)) - 2e-4, 0.0)


def plan_floor(space: Space, j: Journeys) -> Floats:
    """Least goal of each journey: no interruption, no checkpoint, no waiting.

    cost >= fixed + base·(d + W) + min(spot·paid share, best fallback per work)·W
    time >= d + W, or W over the best fallback's speed where it is faster

    It holds for every fallback, so a plan without one stands for those with one as well.
    """
    factor = least_speed_factor(space, j.speed_sigma)
    work = j.work_s * factor
    netted = np.isfinite(j.best_net_usd) & (j.spot_usd_per_hour > 0)
    quick = np.where(netted, np.maximum(j.best_net_speed, 1.0), 1.0)
    time = work / quick + np.where(netted, 0.0, j.changeover_s)
    if space.limits.goal == "time":
        return time
    paid = paid_share(j.run_mean_s, j.run_sigma, j.free_s)
    spot = j.spot_usd_per_hour * np.where(j.spot_usd_per_hour > 0, paid, 0.0)
    cheapest = np.where(netted, np.minimum(spot, j.best_net_usd), spot)
    return j.fixed_usd + (j.base_usd_per_hour * time + cheapest * work) / 3600.0


def cluster_floor(
    space: Space,
    site: Site,
    step_s: Floats,
    base: Floats,
    spot: Floats,
    sigma: Floats,
    boot_s: Floats,
    fixed_usd: Floats,
) -> Floats:
    """Least goal of every plan made of a cluster; all arguments have shape (clusters,).

    `base` and `spot` are USD per hour; `spot` already holds the least paid share. Work may be
    done on the site's cheapest fallback as well, at its own price per step.
    """
    work = step_s * space.steps_left * least_speed_factor(space, sigma)
    fall = site.fallbacks
    net = len(fall) > 0 and space.limits.deadline_s is not None
    has_net = (spot > 0) & net
    fastest = float(fall.step_s.min()) if net else 1.0
    quick = np.where(has_net, np.maximum(step_s / fastest, 1.0), 1.0)
    time = work / quick + np.where(has_net, 0.0, boot_s + RENDEZVOUS_S)
    if space.limits.goal == "time":
        return time
    per_step = float((fall.usd_per_hour * fall.step_s).min()) if net else np.inf
    with np.errstate(invalid="ignore"):
        cheapest = np.where(has_net, np.minimum(spot * step_s, per_step) / step_s, spot)
    return fixed_usd + (base * time + cheapest * work) / 3600.0


def offer_floor(space: Space, kind: Ints, usd_per_hour: Floats) -> Floats:
    """Least goal of any cluster whose best entry is this one, by cost alone; (offers,).

    price per work at perfect scaling: usd_per_hour·B/R·steps; 0 when time is the goal.
    """
    if space.limits.goal == "time":
        return np.zeros(len(kind))
    columns = space.columns
    step = space.job.global_batch / columns.compute_per_s[kind]
    factor = least_speed_factor(space, columns.speed_sigma[kind])
    cost = usd_per_hour * step * factor * space.steps_left / 3600.0
    per_net = [
        float((s.fallbacks.usd_per_hour * s.fallbacks.step_s).min()) * space.steps_left / 3600.0
        for s in space.sites
        if len(s.fallbacks)
    ]
    return np.minimum(cost, min(per_net, default=np.inf))
