"""From spells to the law the planner draws: shapes that keep the mean, levels of zones and days.

The likelihood weighs every short spell alike and misses a heavy tail's mean by a third to a
half; a job cares for what is left of a spell at a random moment. So the mean is hours up per
interruption, and σ is fitted to P(more than h left), h = 0.1 ... 6 hours, as for the shipped
classes (docs/risk-facts.md). Beyond single spells, days differ: the sd of the logit of a day's
level is what makes drawn days vary as the seen ones do.
"""

import numpy as np
from numpy.typing import NDArray

from recommender.lognormal import normal_cdf
from recommender.risk.draws import normal, uniforms

Floats = NDArray[np.float64]

RESIDUAL_H = np.array([0.1, 0.3, 1.0, 2.0, 6.0])
SIGMAS = np.arange(0.30, 3.001, 0.01)
LEVEL_SDS = np.arange(0.0, 4.01, 0.25)
DAY_H = 24.0
_LEVELS, _DAYS, _SEED = 100, 12, 7
_MOST_SPELLS = 4000


def residual(mean: float, sigma: Floats, hours: Floats) -> Floats:
    """P(more than `hours` of a lognormal spell is left at a random moment in it); broadcast.

    E[(X - h)+]/E[X] = Φ(σ - z) - h/mean·Φ(-z), z = (ln(h/mean) + σ²/2)/σ.
    """
    z = (np.log(hours / mean) + 0.5 * sigma**2) / sigma
    found: Floats = normal_cdf(sigma - z) - hours / mean * normal_cdf(-z)
    return found


def residual_sigma(lengths: Floats, mean: float) -> float:
    """σ of the lognormal of this mean that is nearest to what is left of the seen spells.

    `lengths` in hours, cut spells as long as they were seen; least squares over `RESIDUAL_H`.
    """
    left = np.maximum(lengths[:, None] - RESIDUAL_H, 0.0).mean(axis=0) / lengths.mean()
    errors = ((residual(mean, SIGMAS[:, None], RESIDUAL_H) - left) ** 2).sum(axis=1)
    return float(SIGMAS[int(errors.argmin())])


def resampled_sigmas(lengths: Floats, mean: float, replicates: int, stream: int) -> Floats:
    """`residual_sigma` of spells drawn with replacement; (replicates,)."""
    count = len(lengths)
    drawn = uniforms(_SEED, stream, replicates * count).reshape(replicates, count)
    rows = np.floor(drawn * count).astype(np.int64)
    return np.array([_scaled_sigma(lengths[row], lengths, mean) for row in rows])


def _scaled_sigma(drawn: Floats, lengths: Floats, mean: float) -> float:
    return residual_sigma(drawn, mean * float(drawn.mean() / lengths.mean()))


def logistic(x: Floats) -> Floats:
    """The inverse of the logit."""
    return 1.0 / (1.0 + np.exp(-x))


def logit(share: float) -> float:
    """The logarithm of the odds, of shares kept off 0 and 1 by one part in ten thousand."""
    kept = min(max(share, 1e-4), 1.0 - 1e-4)
    return float(np.log(kept / (1.0 - kept)))


def quantiles(count: int) -> Floats:
    """Standard normal quantiles at the middle of equal shares."""
    return normal((np.arange(count) + 0.5) / count)


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
    for spell in range(_MOST_SPELLS):
        mean, sigma = np.where(up, run_mean_h, outage), np.where(up, run_sigma, outage_sigma)
        noise = normal(uniforms(_SEED, 8100 + spell, len(a)))
        length = mean * np.exp(sigma * noise - 0.5 * sigma**2)
        if spell == 0:  # met at a random moment: length-biased, and part of it is over
            length *= np.exp(sigma**2) * uniforms(_SEED, 8050, len(a))
        end = np.minimum(now + length, DAY_H)
        total += np.where(up, end - now, 0.0)
        now, up = end, ~up
        if np.all(now >= DAY_H):
            break
    return total / DAY_H


def level_sd_of(day_sd: float, table: Floats) -> float:
    """The sd of levels at which drawn days vary as much as seen ones; a look-up in `day_sds`."""
    return float(np.interp(day_sd, table, LEVEL_SDS))
