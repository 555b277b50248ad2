"""Every plan of an offers file, one after the other, simulated on the printed paths.

Written for the tests alone: no bounds, no order, no few paths, every fallback. It shares with the
search what a plan is simulated with (`path_inputs_of`) and the simulation itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from recommender.optimize.evaluate import Plans, path_inputs_of
from recommender.optimize.space import Fallbacks, Site, Space
from recommender.plan.limits import Limits
from recommender.planner.problem import Problem
from recommender.risk.on_demand_wait import OnDemandLaw
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import OutcomeCache

CHECKPOINT_PATHS = range(4)
SAMPLES, OTHER = 8, 1_000_003  # of as many runs, and from one seed to the next
ONE_IN = 20  # paths left out at each end of a typical time


@dataclass(frozen=True, slots=True)
class Followed:
    """A plan in words and what it is worth on the printed paths."""

    words: str
    goal: float
    cost_usd: float
    time_s: float


def every_plan(problem: Problem, sites: tuple[Site, ...] | None = None) -> Iterator[Followed]:
    """The plans of one entry each that meet the limits, with every fallback there is.

    Of the problem's own sites, or of others.
    """
    for site in problem.single_type_sites.sites if sites is None else sites:
        whole = replace(site, fallbacks=_every_fallback(problem, site))
        for entry in range(len(site.entries)):
            for count in range(1, problem.limits.max_machines + 1):
                if _there(site, entry, count):
                    yield from _of_cluster(problem, whole, entry, count)


def _there(site: Site, entry: int, count: int) -> bool:
    """Whether there are so many machines of an offer."""
    used = site.quota_use[:, entry] * count
    return count <= int(site.entries.cap[entry]) and bool((used <= site.quota + 1e-9).all())


def _of_cluster(problem: Problem, site: Site, entry: int, count: int) -> Iterator[Followed]:
    """A cluster with each checkpoint path, and with each fallback where it is of spot machines."""
    fallbacks = [-1]
    if site.entries.spot[entry] and problem.limits.deadline_s is not None:
        fallbacks += range(len(site.fallbacks))
    ways = list(product(CHECKPOINT_PATHS, fallbacks))
    counts = np.zeros((len(ways), len(site.entries)), dtype=np.int64)
    counts[:, entry] = count
    paths, chosen = (np.array(column) for column in zip(*ways, strict=True))
    space = problem.space(problem.single_type_sites).on_printed_paths()
    one = replace(space, sites=(site,))
    inputs, allowed = path_inputs_of(one, site, Plans(counts, paths, chosen))
    rows = np.flatnonzero(allowed)
    if not len(rows):
        return
    found = one.cache.outcomes(inputs.take(rows), problem.limits.deadline_s)
    for place, row in enumerate(rows.tolist()):
        if _meets(problem, one, inputs.take(np.array([row])), float(found.overhead[place])):
            usd, seconds = float(found.expected_usd[place]), _typical(found.time_s[place])
            goal = seconds if problem.limits.goal == "time" else usd
            then = f", then fallback {chosen[row]}" if chosen[row] >= 0 else ""
            yield Followed(f"{count}x entry {entry}{then}", goal, usd, seconds)


def _meets(problem: Problem, space: Space, one: PathInputs, overhead: float) -> bool:
    """Whether enough runs meet the deadline and the budget together, and overhead its limit.

    Near the chance that is asked for more runs decide, each eighth of them of another seed; the
    chance is met within the error of all of them.
    """
    limits, cache = problem.limits, space.cache
    if limits.max_overhead is not None and overhead > limits.max_overhead:
        return False
    asked, found = limits.confidence, [_share(limits, cache, one)]
    if abs(found[0] - asked) <= 2.0 * _error(asked, cache.path_count):
        found += [
            _share(limits, OutcomeCache(cache.path_count, cache.seed + n * OTHER), one)
            for n in range(1, SAMPLES)
        ]
    return float(np.mean(found)) >= asked - _error(asked, SAMPLES * cache.path_count)


def _share(limits: Limits, cache: OutcomeCache, one: PathInputs) -> float:
    runs = cache.outcomes(one, limits.deadline_s)
    met = np.ones(runs.time_s.shape[1], dtype=bool)
    if limits.deadline_s is not None:
        met &= runs.time_s[0] <= limits.deadline_s
    if limits.budget_usd is not None:
        met &= runs.cost_usd[0] <= limits.budget_usd
    return float(met.mean())


def _error(share: float, runs: int) -> float:
    return float(np.sqrt(share * (1.0 - share) / runs)) + 1e-12


def _typical(seconds: np.ndarray) -> float:
    """The mean without the shortest and the longest twentieth."""
    out = len(seconds) // ONE_IN
    return float(np.sort(seconds)[out : len(seconds) - out].mean())


def _every_fallback(problem: Problem, site: Site) -> Fallbacks:
    """Every number of every on-demand offer, however slow or expensive."""
    e, most = site.entries, problem.limits.max_machines
    every = [
        (entry, count)
        for entry in np.flatnonzero(~e.spot).tolist()
        for count in range(1, most + 1)
        if _there(site, entry, count)
        if np.isfinite(problem.step_s[e.kind[entry], count - 1])
        if count * e.usd_per_hour[entry] <= (problem.limits.hourly_usd or np.inf)
    ]
    entry, count = np.array(every, dtype=np.int64).reshape(-1, 2).T
    law = OnDemandLaw(e.at_once[entry], e.wait_s[entry])
    law = law.of_gang(count, e.availability_slope[entry]).of_list(e.zone_count[entry])
    return Fallbacks(
        kind=e.kind[entry],
        count=count,
        offer=e.offer[entry],
        step_s=problem.step_s[e.kind[entry], count - 1],
        usd_per_hour=count * e.usd_per_hour[entry],
        boot_s=e.boot_s[entry],
        at_once=law.at_once,
        wait_s=law.wait_s,
    )
