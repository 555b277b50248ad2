"""Bounds of what clusters of several types could gain, computed before any is searched.

A mix costs at least what its best entry would cost at perfect scaling (mediant inequality), and at
least what the best of its types would cost alone with as much compute (`bounds/mixed_spot.py`).
"""

from collections import Counter
from collections.abc import Collection

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import InstanceType
from recommender.market.sites import SitePools
from recommender.optimize.bounds.cluster import min_seconds, offer_lower_bounds, paid_share
from recommender.planner.problem import Problem
from recommender.risk.laws import gang_hazard

MERGED_SETS = 100  # sets of types whose bounds say what a mix could gain, at 1 ms each


@dataclass(frozen=True, slots=True)
class MixRegions:
    """Regions to search for mixes, and lower bounds of their goals."""

    sites: SitePools = SitePools()
    lower_bounds: tuple[float, ...] = ()  # of each site
    of_rest: float = float("inf")  # of the regions that are not searched


def mix_regions(
    problem: Problem,
    cutoff: float,
    most: int | None,
    providers: Collection[str] | None = None,
    pairs: int | None = None,
) -> MixRegions:
    """The regions where some entry could be part of a better mix.

    With `most`, only that many regions, the best first; with `pairs`, as many as have that many
    pairs of offers together, at least one. With `providers`, only theirs.
    """
    if not problem.rows:
        return MixRegions()
    o = problem.catalog.offers
    bounds: dict[tuple[str, str], float] = {}
    offers: Counter[tuple[str, str]] = Counter()
    for row, bound in zip(problem.rows, _row_lower_bounds(problem).tolist(), strict=True):
        key = (o.provider[row], o.region[row])
        if providers is None or key[0] in providers:
            bounds[key] = min(bound, bounds.get(key, np.inf))
            offers[key] += 1
    promising = sorted((bound, key) for key, bound in bounds.items() if bound < cutoff)
    if pairs is not None:
        sums = np.cumsum([offers[key] ** 2 for _, key in promising])
        most = max(1, int((sums <= pairs).sum()))
    bound_of_rest = promising[most][0] if most is not None and len(promising) > most else np.inf
    chosen = {key for _, key in promising[:most]}
    rows = [r for r in problem.rows if (o.provider[r], o.region[r]) in chosen]
    found = problem.site_space.builder.region_sites(rows, problem.single_type_sites)
    each = tuple(bounds[site.provider, site.region] for site in found.sites)
    return MixRegions(found, each, bound_of_rest)


def mix_lower_bound(problem: Problem, cutoff: float, thorough: bool) -> float:
    """Lower bound of any cluster of several types; the cutoff if none is below it.

    Of cost, from simulations of each type alone (`bounds/mixed_spot.py`); of time, from the fastest
    machines at perfect scaling. If thorough, from all regions merged if that is higher, which takes
    half as long as an answer.
    """
    if problem.limits.max_machines == 1:
        return cutoff  # one machine is of one type
    space = problem.space(problem.single_type_sites)
    by_time = problem.limits.goal == "time"
    least = min_seconds(space) if by_time else _min_mix_usd(problem, cutoff)
    if least >= cutoff or not thorough:
        return min(least, cutoff)
    from recommender.optimize.merged_regions import min_mix_goal  # most answers need none

    sites = problem.site_space.builder.regions_of_providers(problem.rows, problem.single_type_sites)
    return max(least, min_mix_goal(space, sites, cutoff, MERGED_SETS))


def _min_mix_usd(problem: Problem, cutoff: float) -> float:
    """Lower bound of the cost of any mix, from the offers of which a better one may consist."""
    from recommender.optimize.bounds.mixed_spot import min_mix_usd  # searched mixes need none

    o, bounds = problem.catalog.offers, _row_lower_bounds(problem)
    if not (bounds < cutoff).any():
        return cutoff
    # All on demand: how much memory they have decides what their work costs.
    rows = [
        row
        for row, bound in zip(problem.rows, bounds.tolist(), strict=True)
        if o.market[row] != "spot" or bound < cutoff
    ]
    sites = problem.site_space.builder.regions_of_providers(rows, problem.single_type_sites)
    space = problem.space(problem.single_type_sites)
    return min_mix_usd(space, sites, cutoff)


def _row_lower_bounds(problem: Problem) -> Floats:
    """Least goal of each allowed offer at perfect scaling, shape (rows,)."""
    o, kinds = problem.catalog.offers, problem.offers.kinds.of
    names = [(o.provider[r], o.instance_type[r]) for r in problem.rows]
    kind = np.array([kinds[name] for name in names], dtype=np.int64)
    spot = np.array([o.market[r] == "spot" for r in problem.rows], dtype=np.bool_)
    price = np.array([problem.facts.planning_price(r) for r in problem.rows], dtype=np.float64)
    share = np.where(spot, _min_shares(problem)[kind], 1.0)
    return offer_lower_bounds(problem.space(problem.single_type_sites), kind, price * share)


def _min_shares(problem: Problem) -> Floats:
    """Least share of spot time that is charged, by instance type."""
    return np.array([_min_share(problem, t) for t in problem.offers.types])


def _min_share(problem: Problem, t: InstanceType) -> float:
    """Of all laws that a machine may follow: the shortest run with every shape."""
    laws, rule = problem.facts.spot_classes(t), problem.facts.billing(t.provider, "spot")
    together = np.array([c.co_interruption for c in laws])
    hazard = gang_hazard(problem.limits.max_machines + 1, together)
    runs = [c.run_mean_s / factor for c, factor in zip(laws, hazard.tolist(), strict=True)]
    sigma = np.array([c.run_sigma for c in laws] or [1.0])
    free = 0.0 if rule is None else rule.free_if_interrupted_within_s
    run = np.full(len(sigma), min(runs, default=1e9))
    return float(paid_share(run, sigma, np.full(len(sigma), free)).min())
