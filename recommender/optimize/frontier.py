"""The frontier of cost and time over all promising clusters of one type, without limits on either.

All are simulated on the paths of a search: a few hundred plans without fallbacks take a tenth of a
second. Time is the trimmed mean, the median, or the 95 % quantile: what waits seldom and long is on
the frontier of medians only.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from recommender.optimize.bounds.fallback import without_savings
from recommender.optimize.columns import Cluster, counts_table
from recommender.optimize.evaluate import path_inputs_of, plans_without_fallback, values_of
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Space
from recommender.plan.frontier import unbeaten
from recommender.risk.run_statistics import quantiles


def frontier_candidates(space: Space, clusters: Sequence[Cluster]) -> list[Candidate]:
    """Plans without fallbacks that no other beats in cost and time, by any kind of time."""
    found = [each for index in range(len(space.sites)) for each in _at(space, clusters, index)]
    if not found:
        return []
    usd = [candidate.cost_usd for candidate, _ in found]
    kept: set[int] = set()
    for times_s in zip(*((each.time_s, *quantiles_s) for each, quantiles_s in found), strict=True):
        figures = list(zip(usd, times_s, strict=True))
        kept.update(unbeaten(range(len(found)), figures.__getitem__))
    return [found[i][0] for i in sorted(kept)]


def _at(
    space: Space, clusters: Sequence[Cluster], index: int
) -> Iterator[tuple[Candidate, tuple[float, ...]]]:
    """The plans of one site that meet the limits, and the quantiles of their times."""
    mine = [cluster for cluster in clusters if cluster.site == index]
    if not mine:
        return
    rows, counts = counts_table(mine)
    site = space.sites[index].only(rows)
    plans = plans_without_fallback(space, site, counts)
    inputs, allowed = path_inputs_of(space, site, plans)
    plans, inputs = plans.take(allowed), without_savings(space, inputs.take(allowed))
    values = values_of(space, inputs, np.ones(len(plans), dtype=bool))
    paths_s = space.cache.outcomes(inputs, space.limits.deadline_s).time_s
    for row in np.flatnonzero(values.meets_limits):
        used = np.flatnonzero(plans.counts[row])
        yield (
            Candidate(
                site=index,
                entries=tuple(rows[used].tolist()),
                counts=tuple(plans.counts[row, used].tolist()),
                checkpoint_path=int(plans.checkpoint_path[row]),
                fallback=-1,
                goal_value=float(values.cost_usd[row]),
                cost_usd=float(values.cost_usd[row]),
                time_s=float(values.time_s[row]),
                chance=float(values.chance[row]),
            ),
            quantiles(paths_s[row], 0.5, 0.95),
        )
