"""Sets of entries used together: their bound, how they grow, and the clusters they allow.

For a support U (each entry used at least once) everything a plan costs is at least what the
best entry of the site would cost at perfect scaling, plus what U itself forces:

    per hour   >= own + best·(R - R_U)        own, R_U: price and speed of one machine of each
    per work   >= that / R, monotone in R, so its least value is at an end of the range of R

The bound never falls when U grows, so only surviving sets are grown.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from recommender.optimize.evaluate import RENDEZVOUS_S, elastic_share, gang_of
from recommender.optimize.floors import (
    cluster_floor,
    floor,
    least_speed_factor,
    paid_share,
    sums_of,
)
from recommender.optimize.space import Site, Space, within_quota
from recommender.optimize.stretch import DEARER, RUN_GRID, least_ratio
from recommender.performance.fleet import spread_of, spreads_of
from recommender.performance.step import steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF_ROWS = 20_000  # clusters of one support looked at in one block
WORK_POINTS = 4  # works at which the least charged share of an entry is sought


@dataclass(frozen=True, slots=True)
class Bounded:
    """A site made ready for bounds; fields have shape (entries,)."""

    space: Space
    site: Site
    usd_per_hour: Floats  # least that an hour of work costs, per machine
    speed: Floats  # samples/s per machine


def bounded(space: Space, site: Site) -> Bounded:
    """Least price of each entry: spot prices times the least share that is charged."""
    e = site.entries
    # A step is never shorter than batch / compute; what small batches and networks add to it
    # in a mix is not bounded by what they add to its types alone.
    speed = np.maximum(space.columns.compute_per_s[e.kind], 1e-30)
    flop = space.job.global_batch * space.steps_left
    slow, fast = flop / speed.min(), flop / (speed.max() * space.limits.max_machines)
    share, tight = _least_shares(space, site, np.geomspace(fast, max(slow, 2 * fast), WORK_POINTS))
    dear = _dear_net(space, site, e.usd_per_hour, speed)
    share = np.where(dear, np.maximum(share, tight), share)
    return Bounded(space, site, np.where(e.spot, e.usd_per_hour * share, e.usd_per_hour), speed)


def _least_shares(space: Space, site: Site, works: Floats) -> tuple[Floats, Floats]:
    """Least share of each entry's spot time that is charged: by its law, and from tables.

    A cluster's runs are shorter than those of its machines and have the shape of any of them.
    Where early interruptions are free, shorter runs lose more but less of them is charged.
    """
    e = site.entries
    share, tight = np.ones(len(e)), np.full(len(e), np.inf)
    if space.limits.goal == "time" or not e.spot.any():
        return share, np.zeros(len(e))
    shortest = np.minimum(_shortest_run(space, site), e.run_mean_s)
    spans = np.log(e.run_mean_s / shortest)[e.spot & (e.free_s > 60.0)]
    points = int(np.ceil(spans.max(initial=0.0) / (2.0 * np.log(RUN_GRID)))) + 1
    rows = np.flatnonzero(e.spot)
    for sigma in np.unique(e.run_sigma[e.spot]):
        shape = np.full(len(e), sigma)
        share = np.minimum(share, paid_share(shortest, shape, e.free_s))
        for down in np.linspace(0.0, 1.0, points):
            between = e.run_mean_s ** (1.0 - down) * shortest**down
            run = np.where(e.free_s > 60.0, between, e.run_mean_s)
            for work in works:
                law = (run, shape, e.free_s, e.boot_s + RENDEZVOUS_S, np.full(len(e), work))
                ratio = least_ratio(space.histories, space.seed, *(column[rows] for column in law))
                tight[rows] = np.minimum(tight[rows], ratio)
    return share, np.where(e.spot, tight, 0.0)


def _shortest_run(space: Space, site: Site) -> float:
    """Mean run of the cluster of the site that is interrupted most often, or less."""
    e, most = site.entries, space.limits.max_machines
    hazard = 1.0 / e.run_mean_s[e.spot]
    first = np.sort(hazard)[::-1][:most].sum()
    more = most * float((hazard * (1.0 - e.co_interruption[e.spot])).max())
    return float(1.0 / (first + more + most * space.job.fault_rate_per_hour / 3600.0))


def _dear_net(space: Space, site: Site, price: Floats, speed: Floats) -> NDArray[np.bool_]:
    """Whether every fallback costs at least `DEARER` times as much per work as an entry."""
    fall = site.fallbacks
    if not len(fall) or space.limits.deadline_s is None:
        return np.ones(len(price), dtype=bool)
    per_work = float((fall.usd_per_hour * fall.step_s).min()) / space.job.global_batch
    dear: NDArray[np.bool_] = per_work >= DEARER * price / speed
    return dear


def grown(b: Bounded, support: tuple[int, ...], bar: float) -> list[tuple[float, tuple[int, ...]]]:
    """The support with one more entry each, where the bound is below the bar."""
    first = support[-1] + 1 if support else 0
    more = np.arange(first, len(b.speed))
    if len(support) >= b.space.limits.max_machines or not len(more):
        return []
    bounds = _support_bounds(b, support, more)
    good = np.flatnonzero(bounds < bar)
    return [(float(bounds[i]), (*support, int(more[i]))) for i in good]


def support_bound(b: Bounded, support: tuple[int, ...]) -> float:
    """Least goal of every cluster that uses at least these entries."""
    return float(_support_bounds(b, support[:-1], np.array(support[-1:]))[0])


def _support_bounds(b: Bounded, support: tuple[int, ...], more: Ints) -> Floats:
    """Bounds of the support with each further entry; (more,)."""
    space, e, chosen = b.space, b.site.entries, list(support)
    price, speed = b.usd_per_hour, b.speed
    low = speed[chosen].sum() + speed[more]
    own = price[chosen].sum() + price[more]
    best = float((price / speed).min())
    top = low + (space.limits.max_machines - len(support) - 1) * float(speed.max())
    fits = (e.cap[more] >= 1) & bool((e.cap[chosen] >= 1).all())
    if space.limits.hourly_usd is not None:
        listed = e.usd_per_hour[chosen].sum() + e.usd_per_hour[more]
        left = space.limits.hourly_usd + 1e-9 - listed
        cheapest = max(float((e.usd_per_hour / speed).min()), 1e-30)
        fits &= left >= 0.0
        top = np.minimum(top, low + np.maximum(left, 0.0) / cheapest)
    fixed = np.maximum(e.fixed_usd[chosen].max(initial=0.0), e.fixed_usd[more])
    at_low = _bound(b, own, low, fixed)
    at_top = _bound(b, own + best * (top - low), top, fixed)
    bounds = np.minimum(at_low, at_top)
    if space.job.elastic and e.spot.any() and not e.spot.all():
        with_spot = e.spot[more] | e.spot[chosen].any()
        lone = int(np.where(e.spot, np.inf, price / speed).argmin())
        alone = _alone(b, price[[lone]], speed[[lone]], fixed)
        bounds = np.where(with_spot, np.minimum(bounds, alone), bounds)
    return np.where(fits, bounds, np.inf)


def _alone(b: Bounded, usd: Floats, speed: Floats, fixed: Floats) -> Floats:
    """Least goal if the on-demand machines of an elastic cluster do all the work alone."""
    work = b.space.job.global_batch * b.space.steps_left / speed * _speed_factor(b)[1]
    return np.asarray(work if b.space.limits.goal == "time" else fixed + usd * work / 3600.0)


def _speed_factor(b: Bounded) -> tuple[float, float]:
    """The spread whose mean factor over the common histories is least, and that factor."""
    sigmas = np.unique(spreads_of(b.space.columns, b.site.entries.kind))
    factors = least_speed_factor(b.space, sigmas)
    return float(sigmas[factors.argmin()]), float(factors.min())


def _bound(b: Bounded, usd: Floats, speed: Floats, fixed: Floats) -> Floats:
    """Floors of imagined clusters; their prices already hold the least share charged."""
    e, one = b.site.entries, np.ones(len(usd))
    spot = bool(e.spot.any())
    sums = sums_of(
        b.space,
        b.site,
        b.space.job.global_batch / speed,
        usd * (not spot),
        usd * spot,
        one * _speed_factor(b)[0],
        one * float(e.boot_s.min()),
        fixed,
        (one * 1e12, one, 0.0 * one),
        0.0 * one,
    )
    return floor(b.space, sums, tight=False)


def leaves(b: Bounded, support: tuple[int, ...], bar: float) -> list[Ints]:
    """Clusters of exactly this support whose floor is below the bar, best first, in blocks."""
    rows = np.array(support)
    sub = b.site.only(rows)
    blocks = []
    for counts in _compositions(b.space.limits.max_machines, len(support)):
        speed = counts @ b.speed[rows]
        fixed = np.full(len(counts), sub.entries.fixed_usd.max())
        own = _bound(b, counts @ b.usd_per_hour[rows], speed, fixed)
        steady = rows[~sub.entries.spot]
        if b.space.job.elastic and 0 < len(steady) < len(rows):
            lone = counts[:, ~sub.entries.spot]
            part = _alone(b, lone @ b.usd_per_hour[steady], lone @ b.speed[steady], fixed)
            own = np.minimum(own, part)
        counts = counts[(own < bar) & within_quota(sub, counts)]
        if not len(counts):
            continue
        counts = counts[counts_floor(b.space, sub, counts) < bar]
        if not len(counts):
            continue
        floors = counts_floor(b.space, sub, counts, tight=True)
        order = np.argsort(floors, kind="stable")
        blocks.append(counts[order[floors[order] < bar]])
    return [block for block in blocks if len(block)]


def counts_floor(space: Space, site: Site, counts: Ints, tight: bool = False) -> Floats:
    """Least goal of every plan made of each cluster of a site; (clusters,)."""
    e = site.entries
    step = steps(space.job, space.columns, space.fleet(site, counts)).step_s
    runs = np.isfinite(step)
    used = counts > 0
    gang = gang_of(space, e, counts)
    sums = sums_of(
        space,
        site,
        np.where(runs, step, 1.0),
        counts[:, ~e.spot] @ e.usd_per_hour[~e.spot],
        counts[:, e.spot] @ e.usd_per_hour[e.spot],
        spread_of(space.columns, e.kind, counts),
        np.where(used, e.boot_s[None], 0.0).max(axis=1),
        np.where(used, e.fixed_usd[None], 0.0).max(axis=1),
        (gang.run_mean_s, gang.run_sigma, gang.free_s),
        gang.price_sigma,
        elastic_share(space, site, counts, step, gang),
    )
    return np.where(runs, cluster_floor(space, sums, tight), np.inf)


@lru_cache(maxsize=32)
def _compositions(most: int, parts: int) -> tuple[Ints, ...]:
    """All positive counts of `parts` entries that sum to at most `most`, in blocks.

    Choosing `parts` cut points among 1 ... most gives each exactly once.
    """
    blocks, block = [], []
    for cuts in combinations(range(1, most + 1), parts):
        block.append(cuts)
        if len(block) == LEAF_ROWS:
            blocks.append(_parts(block))
            block = []
    if block:
        blocks.append(_parts(block))
    return tuple(blocks)


def _parts(cuts: list[tuple[int, ...]]) -> Ints:
    """Differences of neighbouring cut points, the first counted from 0."""
    ends = np.array(cuts, dtype=np.int64)
    starts = np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends[:, :-1]], axis=1)
    parts: Ints = ends - starts
    return parts
