"""Sets of entries used together: their bound, how they grow, and the clusters they allow.

For a support U (each entry used at least once) and n machines, everything a plan costs is at
least what the lower hull of (speed, price) allows:

    R <= Σ_U R_e + (n - |U|)·max R       step >= max(B/R, communication alone)
    cost >= P·S·step on the hull of the points (R_e, price_e)

The bound never falls when U grows, so only surviving sets are grown.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from recommender.optimize.floors import cluster_floor, paid_share
from recommender.optimize.space import Entries, Site, Space, within_quota
from recommender.performance.step import steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF_ROWS = 4096


def grown(
    space: Space, site: Site, support: list[int], bar: float
) -> list[tuple[float, tuple[int, ...]]]:
    """The support with one more entry each, where the bound is below the bar."""
    first = support[-1] + 1 if support else 0
    result = []
    for entry in range(first, len(site.entries)):
        larger = (*support, entry)
        bound = support_bound(space, site, larger)
        if bound < bar:
            result.append((bound, larger))
    return result


def support_bound(space: Space, site: Site, support: tuple[int, ...]) -> float:
    """Least goal of every cluster that uses at least these entries.

    Work per dollar of a mix is at most that of its best entry (mediant inequality), and a
    machine of each entry of the support is rented from the first second to the last.
    """
    e = site.entries
    price, speed = _price_per_hour(e), space.columns.compute_per_s[e.kind]
    most = space.limits.max_machines
    if len(support) > most or (e.cap[list(support)] < 1).any():
        return np.inf
    chosen = list(support)
    spare = most - len(support)
    bounds = []
    ratio = price / np.maximum(speed, 1e-30)
    fastest = float(speed.max())
    top = float(speed[chosen].sum()) + spare * fastest
    low = float(speed[chosen].sum())
    own = float(price[chosen].sum())
    best = float(ratio.min())
    if space.limits.hourly_usd is not None:
        list_price = e.usd_per_hour
        spare_usd = space.limits.hourly_usd + 1e-9 - float(list_price[chosen].sum())
        cheapest = float((list_price / np.maximum(speed, 1e-30)).min())
        if spare_usd < 0.0:
            return np.inf
        top = min(top, low + spare_usd / max(cheapest, 1e-30))
    for total in (low, top):
        bounds.append(_value(space, site, chosen, own + best * (total - low), total))
    return min(bounds)


def _price_per_hour(e: Entries) -> Floats:
    gang = 1.0 + (np.maximum(e.cap, 1) - 1) * (1.0 - e.co_interruption)
    share = paid_share(e.run_mean_s / gang, e.run_sigma, e.free_s)
    return np.where(e.spot, e.usd_per_hour * share, e.usd_per_hour)


def _value(space: Space, site: Site, chosen: list[int], usd_per_hour: float, speed: float) -> float:
    e = site.entries
    one = np.ones(1)
    has_spot = bool(e.spot.any())
    step = space.job.global_batch / max(speed, 1e-30)
    return float(
        cluster_floor(
            space,
            site,
            one * step,
            one * (0.0 if has_spot else usd_per_hour),
            one * (usd_per_hour if has_spot else 0.0),
            one * space.columns.speed_sigma[e.kind].min(),
            one * e.boot_s.min(),
            one * e.fixed_usd[chosen].max(),
        )[0]
    )


def leaves(space: Space, site: Site, support: tuple[int, ...], bar: float) -> Iterator[Ints]:
    """Clusters of exactly this support whose floor is below the bar, in blocks."""
    sub = site.only(np.array(support))
    for n in range(len(support), space.limits.max_machines + 1):
        for counts in _compositions(n, len(support)):
            counts = counts[within_quota(sub, counts)]
            if not len(counts):
                continue
            floors = counts_floor(space, sub, counts)
            keep = floors < bar
            if keep.any():
                order = np.argsort(floors[keep], kind="stable")
                yield counts[keep][order]


def counts_floor(space: Space, site: Site, counts: Ints) -> Floats:
    """Least goal of every plan made of each cluster of a site; (clusters,)."""
    e = site.entries
    step = steps(space.job, space.columns, space.fleet(site, counts)).step_s
    runs = np.isfinite(step)
    price = _price_per_hour(e)
    used = counts > 0
    floors = cluster_floor(
        space,
        site,
        np.where(runs, step, 1.0),
        counts[:, ~e.spot] @ price[~e.spot],
        counts[:, e.spot] @ price[e.spot],
        np.where(used, space.columns.speed_sigma[e.kind][None], 0.0).max(axis=1),
        np.where(used, e.boot_s[None], 0.0).max(axis=1),
        np.where(used, e.fixed_usd[None], 0.0).max(axis=1),
    )
    return np.where(runs, floors, np.inf)


def _compositions(n: int, parts: int) -> Iterator[Ints]:
    """All ways to write n as an ordered sum of positive parts, in blocks."""
    block: list[tuple[int, ...]] = []
    for cuts in combinations(range(1, n), parts - 1):
        edges = (0, *cuts, n)
        block.append(tuple(edges[i + 1] - edges[i] for i in range(parts)))
        if len(block) == LEAF_ROWS:
            yield np.array(block, dtype=np.int64)
            block = []
    if block:
        yield np.array(block, dtype=np.int64)
