"""Lower bounds of clusters, valid for every plan they stand for: what is pruned is proven worse.

A bound needs only sums of prices and speeds and the best run law in use, so it covers every
checkpoint path and every fallback of a cluster. Tests compare it with the full model of every plan
it covers.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.deadline import (
    Completion,
    max_paths_in_time,
    max_reserve_s,
    min_fallback_start,
    min_queue_s,
)
from recommender.optimize.bounds.spot_time import (
    HANDOVER_RATIO,
    min_overhead,
    min_spot_time_ratio,
)
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.space import Site, Space
from recommender.performance.checkpoint import USUAL_S
from recommender.performance.clusters import spreads_of
from recommender.risk.laws import RUN_FAMILY
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import random_numbers, time_factors
from recommender.risk.run_statistics import trimmed_mean

ROUNDING = 1e-6  # paths are simulated in single precision
# Where interrupted first hours are free, at most a quarter of the paths pay for less than
# half of their spot time (runs of 0.6 h and more, work of 0.5 to 64 h),
# so one of any 80 % of them pays for at least half.
MOSTLY_PAID = 0.5
MOSTLY_PAID_RUN_S = 0.6 * 3600.0  # of the gang, at least; shorter runs may all be free
FIRST = 1e-9  # the chance that asks for one path only
LONGEST_INTERVAL_S = float(USUAL_S[-1])  # of checkpoints; 5 TB take longer to save than that
# Share by which a law's expectation may exceed the mean over the common paths.
SAMPLING = 0.85


def min_speed_factor(space: Space, sigma: Floats) -> Floats:
    """Mean over the common paths of true time / predicted time; trimmed if time is the goal.

    A trimmed mean grows with every path, so T >= a·W·factor + d on each of them bounds it.
    """
    key = (space.path_count, space.seed, space.limits.goal == "time")
    return _of_each(sigma, partial(_speed_factor, *key))


def _of_each(sigma: Floats, factor: Callable[[float], float]) -> Floats:
    """A figure of each spread; there are few distinct ones, and it is requested once of each."""
    values, where = np.unique(sigma, return_inverse=True)
    factors = np.array([factor(float(value)) for value in values], dtype=np.float64)
    return factors[where].reshape(sigma.shape)


@lru_cache(maxsize=256)
def _speed_factor(paths: int, seed: int, by_time: bool, sigma: float) -> float:
    factor = time_factors(sigma, random_numbers(paths, 8, seed).speed)
    return float(trimmed_mean(factor) if by_time else factor.mean())


@lru_cache(maxsize=256)
def speed_quantile(paths: int, seed: int, confidence: float, sigma: float) -> float:
    """True over predicted time of the slowest path that must meet a limit; 0 if none must."""
    must = math.ceil((confidence - 1e-12) * paths)
    if must < 1:
        return 0.0
    return float(time_factors(sigma, np.sort(random_numbers(paths, 8, seed).speed)[must - 1]))


def paid_share(run_mean_s: Floats, run_sigma: Floats, free_s: Floats) -> Floats:
    """Smallest share of spot time that is charged if interrupted first hours are free.

    E[X; X >= f]/E[X] of the runs, by Wald's identity a bound on charged per useful time; 1 if
    nothing is free.
    """
    share = RUN_FAMILY.min_long_share(free_s, np.maximum(run_mean_s, 1.0), run_sigma)
    return np.where(free_s > 60.0, SAMPLING * share, 1.0)


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Quantities of a cluster that its lower bound needs; (clusters,), seconds and USD per hour."""

    work_s: Floats
    speed_sigma: Floats
    base_usd_per_hour: Floats
    spot_usd_per_hour: Floats
    spot_price_sigma: Floats
    fixed_usd: Floats
    changeover_s: Floats  # at least
    run_mean_s: Floats  # of the gang, at most
    run_sigma: Floats
    free_s: Floats
    best_fallback_usd_per_hour: Floats  # per hour of this cluster's work on the cheapest fallback
    best_fallback_speed: Floats
    elastic_share: Floats  # speed of the on-demand part alone; 0 for a gang
    at_once: Floats  # chance that the on-demand machines are there at once, at most
    wait_s: Floats  # for them, else; at least
    fallback_start_s: Floats  # at least; so are the next two
    fallback_at_once: Floats
    fallback_wait_s: Floats

    def take(self, rows: Ints) -> "ClusterSums":
        """The sums of some clusters."""
        return ClusterSums(*(getattr(self, name)[rows] for name in ClusterSums.__slots__))


def plan_lower_bounds(space: Space, j: PathInputs) -> Floats:
    """Lower bound of each plan, with its own fallback or, without one, with any."""
    own = j.fallback_speed > 0.0
    reserve_s = np.where(own, j.reserve_s, max_reserve_s(space)) if own.any() else None
    return cluster_lower_bounds(space, sums_of_plans(space, j), False, reserve_s)


def sums_of_plans(space: Space, j: PathInputs) -> ClusterSums:
    """Bound quantities of each plan, with its own fallback as the best if it has one."""
    own, speed = j.fallback_speed > 0.0, np.maximum(j.fallback_speed, 1e-12)
    return replace(
        ClusterSums(*(getattr(j, name) for name in ClusterSums.__slots__)),
        best_fallback_usd_per_hour=np.where(
            own, j.fallback_usd_per_hour / speed, j.best_fallback_usd_per_hour
        ),
        best_fallback_speed=np.where(own, speed, j.best_fallback_speed),
        fallback_start_s=np.where(own, j.fallback_start_s, min_fallback_start(space.sites).seconds),
    )


def cluster_lower_bounds(
    space: Space, c: ClusterSums, tight: bool, reserve_s: Floats | None = None
) -> Floats:
    """The lower bound of clusters that exist; inf where too few paths can meet a limit.

    `reserve_s`: what a fallback keeps in hand at most, if it is known; (clusters,).
    (A relaxed cluster stands for faster ones as well, so only `lower_bounds_of` holds for it.)
    """
    late = np.zeros(len(c.work_s), dtype=bool)
    lost = late
    begun = np.where(c.elastic_share > 0.0, 0.0, c.spot_usd_per_hour * c.changeover_s)
    if space.limits.deadline_s is not None:
        late, lost = _too_late(space, c)
    if space.limits.max_overhead is not None:
        over_overhead = surely_over_overhead(space, c)
        late, lost = (
            late | over_overhead,
            lost | (over_overhead & np.isinf(c.best_fallback_usd_per_hour)),
        )
    if space.limits.budget_usd is not None:
        lost = lost | _over_budget(space, c, space.limits.budget_usd)
    return np.where(lost, np.inf, lower_bounds_of(space, c, tight, late, begun, reserve_s))


def _too_late(space: Space, c: ClusterSums) -> tuple[Bools, Bools]:
    """Whether too few paths can meet the deadline: without a fallback, and with any."""
    late = ~enough_in_time(space, c)
    lost = late.copy()
    rows = np.flatnonzero(
        late & np.isfinite(c.best_fallback_usd_per_hour) & (c.spot_usd_per_hour > 0)
    )
    if len(rows):
        n = c.take(rows)
        start_s = np.minimum(n.changeover_s, n.fallback_start_s)
        quick_s = n.work_s / np.maximum(n.best_fallback_speed, 1.0)
        fallback = Completion(quick_s, start_s, n.fallback_at_once, n.fallback_wait_s)
        lost[rows] = ~enough_in_time(space, n, fallback)
    return late, lost


def surely_over_overhead(space: Space, c: ClusterSums) -> Bools:
    """Whether spot gangs exceed `--max-overhead` unless they have a fallback."""
    over_overhead = np.zeros(len(c.work_s), dtype=bool)
    rows = np.flatnonzero((c.spot_usd_per_hour > 0.0) & (c.elastic_share <= 0.0))
    most = space.limits.max_overhead
    if most is not None and np.isfinite(most) and len(rows):
        g = c.take(rows)
        work_s = g.work_s * min_speed_factor(space, g.speed_sigma)
        law = (g.run_mean_s, g.run_sigma, g.changeover_s, work_s)
        least = min_overhead(space.cache.path_count, space.seed, *law)
        over_overhead[rows] = least > most
    return over_overhead


def enough_in_time(space: Space, c: ClusterSums, fallback: Completion | None = None) -> Bools:
    """Whether enough paths can meet the deadline, alone or if `fallback` may take over."""
    limits = space.limits
    due_s = (np.inf if limits.deadline_s is None else limits.deadline_s) * (1.0 + ROUNDING)
    own = Completion(c.work_s, c.changeover_s, c.at_once, c.wait_s)
    count = max_paths_in_time(space.path_count, space.seed, c.speed_sigma, due_s, own, fallback)
    enough: Bools = count >= math.ceil((limits.confidence - 1e-12) * space.path_count)
    return enough


def _over_budget(space: Space, c: ClusterSums, budget_usd: float) -> Bools:
    """Whether the slowest path that must meet the budget cannot.

    It pays base for the changeover, and base + spot·(price then / price now) for W·factor at
    least; the joint quantile of speed and price is sought over the common paths. Where
    first hours may be free, only `MOSTLY_PAID` of the spot time counts.
    """
    unpaid = MOSTLY_PAID if space.limits.confidence >= 0.8 else 0.0
    mostly = np.where(c.run_mean_s >= MOSTLY_PAID_RUN_S, unpaid, 0.0)
    spot = np.where(c.free_s > 60.0, mostly, 1.0) * c.spot_usd_per_hour
    spot = np.minimum(spot, c.best_fallback_usd_per_hour)
    key = (space.path_count, space.seed, space.limits.confidence)
    pairs = list(zip(c.speed_sigma.tolist(), c.spot_price_sigma.tolist(), strict=True))
    joint = {pair: joint_quantile(*key, *pair) for pair in set(pairs)}
    factor = np.array([joint[pair] for pair in pairs], dtype=np.float64)
    has_fallback = np.isfinite(c.best_fallback_usd_per_hour) & (c.spot_usd_per_hour > 0)
    quick = np.where(has_fallback, np.maximum(c.best_fallback_speed, 1.0), 1.0)
    rate = c.base_usd_per_hour / quick + spot
    alone = c.base_usd_per_hour / np.maximum(c.elastic_share, 1e-9)
    rate = np.where(c.elastic_share > 0.0, np.minimum(rate, alone), rate)
    away = np.where(has_fallback | (c.elastic_share > 0.0), 0.0, c.changeover_s)
    usd = (rate * c.work_s * factor + c.base_usd_per_hour * away) / 3600.0 + c.fixed_usd
    expensive: Bools = usd * (1.0 - ROUNDING) > budget_usd
    return expensive


def _slowest(space: Space, c: ClusterSums, chance: float) -> Floats:
    """True over predicted time of the slowest path of those that a chance asks for."""
    return _of_each(c.speed_sigma, partial(speed_quantile, space.path_count, space.seed, chance))


@lru_cache(maxsize=4096)
def joint_quantile(
    paths: int, seed: int, confidence: float, speed_sigma: float, price_sigma: float
) -> float:
    """The smallest possible maximum of speed × price over the paths that must meet a limit.

    At least ceil(confidence·K) paths meet it, so one of them reaches that order statistic.
    """
    must = math.ceil((confidence - 1e-12) * paths)
    if must < 1:
        return 0.0
    sample = random_numbers(paths, 8, seed)
    speed = time_factors(speed_sigma, sample.speed)
    price = np.exp(price_sigma * sample.price - 0.5 * price_sigma**2)
    both = np.sort(speed * np.minimum(price, 1.0))
    return float(both[must - 1])


def _start_s(c: ClusterSums, has_fallback: Bools) -> Floats:
    """Least time before anything trains, on the cluster or on the quickest fallback."""
    return np.where(has_fallback, np.minimum(c.changeover_s, c.fallback_start_s), c.changeover_s)


def _by_time(
    space: Space, c: ClusterSums, work: Floats, has_fallback: Bools, reserve_s: Floats | None
) -> Floats:
    """Least trimmed mean time: d + W, or W on the fastest fallback where one may take over.

    The fallback takes over so late that the job ends within its reserve r of the deadline D, or
    sooner by the work of an interval τ, which is saved first; and it is queued for. With v its
    speed and V >= 1 that of the fastest, every path that is handed over takes

        time >= max(D - r - τ/v, start + W/max(v, 1))
        time >= start + queue + W/V

    Of all v the first is least where its two are equal, start + (D - r - start)/(1 + τ/W), or
    start + W if that is less. Where the slowest path ends before, so do all. Under an overhead
    limit a fallback may take over at any moment: then only the second holds.
    """
    alone = work + c.changeover_s
    if not has_fallback.any():
        return alone
    deadline = np.inf if space.limits.deadline_s is None else space.limits.deadline_s
    due_s = deadline - (max_reserve_s(space) if reserve_s is None else reserve_s)
    slowest, least = (c.work_s * _slowest(space, c, share) for share in (1.0, FIRST))
    slowest, quickest = slowest + c.changeover_s, least + c.changeover_s
    start, faster = _start_s(c, has_fallback), np.maximum(c.best_fallback_speed, 1.0)
    saved = np.minimum(LONGEST_INTERVAL_S / np.maximum(least, 1e-9), 1.0)
    # Before the first step the rule counts with the predicted work, which may be more.
    saved = np.maximum(saved, c.work_s / np.maximum(least, 1e-9) - 1.0)
    room_s = 0.0 if space.limits.max_overhead is not None else due_s - start
    handover_s = start + room_s / (1.0 + saved)
    begun = start + least / faster
    law = (c.fallback_at_once, c.fallback_wait_s, np.maximum(quickest - begun, 0.0))
    queued = begun + min_queue_s(space.path_count, space.seed, *law)
    handed = work / faster + start
    waits = np.maximum(handed, np.minimum(start + least, handover_s) * (1.0 - ROUNDING))
    waits = np.maximum(waits, queued * (1.0 - ROUNDING))
    whole = start + work
    waits = np.where(slowest * (1.0 + ROUNDING) < handover_s, whole, np.minimum(waits, whole))
    return np.where(has_fallback, np.where(c.elastic_share > 0.0, handed, waits), alone)


def min_seconds(space: Space) -> float:
    """A time below that of any cluster or mix: a start-up and all of the fastest machines."""
    columns, n = space.columns, space.limits.max_machines
    fastest = float(columns.compute_per_s.max(initial=0.0)) * n
    boots = [float(site.entries.boot_s.min(initial=np.inf)) for site in space.sites]
    boots += [float(site.fallbacks.boot_s.min(initial=np.inf)) for site in space.sites]
    sigmas = spreads_of(columns, np.arange(len(columns.names)))
    key = (space.path_count, space.seed, space.limits.confidence)
    factor = min((speed_quantile(*key, float(value)) for value in distinct(sigmas)), default=0.0)
    work = space.job.global_batch * space.steps_left / max(fastest, 1e-30)
    return (min(boots, default=0.0) + RENDEZVOUS_S + work * factor) * (1.0 - ROUNDING)


def lower_bounds_of(
    space: Space,
    c: ClusterSums,
    tight: bool,
    late: Bools | None = None,
    begun: Floats | None = None,
    reserve_s: Floats | None = None,
) -> Floats:
    """Least goal of every plan of a cluster; (clusters,).

    Without a fallback (impossible where `late`), d the changeover and W the work:

        cost >= fixed + base·(d + W) + spot·S(W),     time >= d + W

    S is the least spot time billed (`bounds/spot_time.py`), the paid share alone unless `tight`.
    The on-demand machines of an elastic cluster may do any part of W alone (`_min_in_part`).
    """
    work = c.work_s * min_speed_factor(space, c.speed_sigma)
    has_spot = c.spot_usd_per_hour > 0
    has_fallback = np.isfinite(c.best_fallback_usd_per_hour) & has_spot
    if space.limits.goal == "time":
        return _by_time(space, c, work, has_fallback, reserve_s)
    paid = paid_share(c.run_mean_s, c.run_sigma, c.free_s)
    ratio = np.where(has_spot, paid, 1.0)
    if tight and has_spot.any():
        law = (c.run_mean_s, c.run_sigma, c.free_s, c.changeover_s)
        tighter = min_spot_time_ratio(space.cache.path_count, space.seed, *law, work)
        ratio = np.maximum(ratio, tighter)
    begun = np.zeros(len(work)) if begun is None else begun
    spot = np.maximum(c.spot_usd_per_hour * ratio * work, c.spot_usd_per_hour * paid * work + begun)
    alone = c.base_usd_per_hour * (work + c.changeover_s) + spot
    if np.any(c.elastic_share > 0.0):
        in_part = c.base_usd_per_hour * c.changeover_s + work * _min_in_part(c, paid, ratio)
        alone = np.where(c.elastic_share > 0.0, np.minimum(alone, in_part), alone)
    usd = alone if late is None else np.where(late, np.inf, alone)
    if has_fallback.any():
        start = np.minimum(begun, min_fallback_start(space.sites).usd_seconds)
        usd_with_fallback = _min_with_fallback(space, c, work, paid, ratio, start)
        usd = np.where(has_fallback, np.minimum(usd, usd_with_fallback), usd)
    return c.fixed_usd + usd / 3600.0


def _min_with_fallback(
    space: Space, c: ClusterSums, work: Floats, paid: Floats, ratio: Floats, start: Floats
) -> Floats:
    """Least cost with a fallback, times 3,600 s.

    The fallback does at least the share ρ of the work that its cluster has no time for:
    ρ·W >= W - (D - d), so with F the bill of the whole work on the cheapest fallback

        cost >= base·W·(1 - ρ + ρ/speed) + spot·paid·W·(1 - ρ) + ρ·F
        cost >= base·W·(1 - ρ + ρ/speed) + spot·(S(W) - κ·ρ·W) + ρ·F     where F >= κ·spot·W

    as S counts κ = `HANDOVER_RATIO` for every second handed over. Both are linear in ρ. They hold
    for each path, and what they say of W is convex, so they hold for its mean.
    """
    deadline = np.inf if space.limits.deadline_s is None else space.limits.deadline_s
    spare = max(deadline, 0.0) * (1.0 + ROUNDING) - c.changeover_s
    least = np.clip(1.0 - np.maximum(spare, 0.0) / np.maximum(work, 1e-9), 0.0, 1.0)
    base, spot = c.base_usd_per_hour, c.spot_usd_per_hour
    faster = 1.0 / np.maximum(c.best_fallback_speed, 1.0)
    fallback = np.where(
        np.isfinite(c.best_fallback_usd_per_hour), c.best_fallback_usd_per_hour, 0.0
    )
    expensive = fallback >= HANDOVER_RATIO * spot

    def usd(spot_usd: Floats, saved: Floats) -> Floats:
        ends = [
            base * (1.0 - rest + rest * faster) + spot_usd - saved * rest + fallback * rest
            for rest in (least, np.ones(len(work)))
        ]
        return np.minimum(*ends)

    plain = work * usd(spot * paid, spot * paid) + start
    tighter = work * usd(spot * ratio, spot * HANDOVER_RATIO)
    both = np.where(expensive, np.maximum(plain, tighter), plain)
    if not np.any(c.elastic_share > 0.0):
        return both
    ratio = np.where(expensive, ratio, paid)
    in_part = work * _min_in_part(c, paid, ratio, least, base * faster + fallback)
    return np.where(c.elastic_share > 0.0, np.minimum(both, in_part), both)


def _min_in_part(
    c: ClusterSums,
    paid: Floats,
    ratio: Floats,
    least: Floats | None = None,
    fallback: Floats | None = None,
) -> Floats:
    """Least USD per hour of work of an elastic cluster.

    Its on-demand machines do a share φ of the work alone, and a fallback ρ >= `least`. Elapsed
    time is at least φ/share + (1 - φ - ρ), and spot billed max(paid·(1 - φ - ρ), S - κ·(φ + ρ)) of
    W: S allows work to be handed over at any moment, to whomever. The maximum of two linear
    functions is least at a corner or where its bend meets an edge.
    """
    none = np.zeros(len(paid)) if least is None else least
    bend = np.clip((ratio - paid) / (HANDOVER_RATIO - paid), none, 1.0)
    points = [(part - none, none) for part in (none, bend, np.ones(len(paid)))]
    if fallback is not None:
        points += [(0.0 * bend, part) for part in (bend, np.ones(len(paid)))]
    found = []
    for part, rest in points:
        other = part + rest
        spot = np.maximum(paid * (1.0 - other), ratio - HANDOVER_RATIO * other)
        base = part / np.maximum(c.elastic_share, 1e-9) + (1.0 - other)
        usd = c.base_usd_per_hour * base + c.spot_usd_per_hour * spot
        found.append(usd if fallback is None else usd + fallback * rest)
    return np.asarray(np.min(found, axis=0))


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """Clusters of a site before their fallbacks; shape (clusters,)."""

    step_s: Floats
    speed_sigma: Floats
    base_usd_per_hour: Floats  # of the on-demand machines
    spot_usd_per_hour: Floats
    spot_price_sigma: Floats
    fixed_usd: Floats
    boot_s: Floats
    run_mean_s: Floats  # of the best runs, as are the next two
    run_sigma: Floats
    free_s: Floats
    elastic_share: Floats  # speed of the on-demand part alone; 0 for a gang
    at_once: Floats  # chance that the on-demand machines are there at once
    wait_s: Floats  # for them, else


def sums_of(space: Space, site: Site, figures: ClusterFigures) -> ClusterSums:
    """Bound quantities of clusters of a site, with the best of all its fallbacks."""
    fall = site.fallbacks
    has_fallback = len(fall) > 0 and space.limits.deadline_s is not None
    step_s = figures.step_s
    best = float((fall.usd_per_hour * fall.step_s).min()) if has_fallback else np.inf
    fastest = float(fall.step_s.min()) if has_fallback else np.inf
    return ClusterSums(
        work_s=step_s * space.steps_left,
        speed_sigma=figures.speed_sigma,
        base_usd_per_hour=figures.base_usd_per_hour,
        spot_usd_per_hour=figures.spot_usd_per_hour,
        spot_price_sigma=figures.spot_price_sigma,
        fixed_usd=figures.fixed_usd,
        changeover_s=figures.boot_s + RENDEZVOUS_S,
        run_mean_s=figures.run_mean_s,
        run_sigma=figures.run_sigma,
        free_s=figures.free_s,
        best_fallback_usd_per_hour=best / step_s,
        best_fallback_speed=step_s / fastest if has_fallback else np.ones_like(step_s),
        elastic_share=figures.elastic_share,
        at_once=figures.at_once,
        wait_s=figures.wait_s,
        fallback_start_s=np.full_like(step_s, min_fallback_start(space.sites).seconds),
        fallback_at_once=np.ones_like(step_s),
        fallback_wait_s=np.zeros_like(step_s),
    )


def offer_lower_bounds(space: Space, kind: Ints, usd_per_hour: Floats) -> Floats:
    """Lower bound of any cluster whose best entry is this one, by cost alone; (offers,).

    The price per work at perfect scaling: usd_per_hour·B/R·steps; 0 if time is the goal.
    """
    if space.limits.goal == "time":
        return np.zeros(len(kind))
    columns = space.columns
    step = space.job.global_batch / columns.compute_per_s[kind]
    factor: Floats = min_speed_factor(space, spreads_of(columns, kind)).min(axis=0)
    cost = usd_per_hour * step * factor * space.steps_left / 3600.0
    per_net = [
        float((s.fallbacks.usd_per_hour * s.fallbacks.step_s).min()) * space.steps_left / 3600.0
        for s in space.sites
        if len(s.fallbacks)
    ]
    every = spreads_of(columns, np.arange(len(columns.names)))
    least = float(min_speed_factor(space, every).min(initial=np.inf))
    return np.minimum(cost, min(per_net, default=np.inf) * least)
